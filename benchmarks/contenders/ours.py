"""Penstock as a long-lived process: one Spark session, and a new connector for each job."""

from __future__ import annotations

import os
from typing import Any

from benchmarks.contenders.answering import answer
from penstock import Sink
from penstock.errors import PenstockError
from penstock.spark import session


def main() -> None:
    """Serve jobs with `{"properties": ..., "worker": ...}`."""
    spark = session(int(os.environ["BENCH_TASKS"]), {})

    def run(job: dict[str, Any]) -> dict[str, Any]:
        try:
            summary = Sink.from_properties(job["properties"], job["worker"]).run(spark, until_done=True)
        except PenstockError as error:
            return {"error": str(error)}
        if summary.faults:
            return {"error": str(summary.faults[0])}
        return {"records": summary.committed.records}

    answer(run)


if __name__ == "__main__":
    main()
