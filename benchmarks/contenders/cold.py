"""A cold start in its parts: does what `penstock run --until-done` does, and says how long each step took."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.config import SinkConfig
    from penstock.model import Plan, Receipt


def _age() -> float:
    """Seconds since this process was started, by the system's count."""
    began = int(Path("/proc/self/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - began / os.sysconf("SC_CLK_TCK")


class _Timed:
    """A job, and how long each call took."""

    def __init__(self, job: Any) -> None:  # noqa: ANN401 - a penstock.engine.Job
        self.job = job
        self.seconds: list[float] = []

    def __call__(self, plan: Plan, config: SinkConfig, seq: int) -> list[Receipt]:
        began = time.monotonic()
        receipts: list[Receipt] = self.job(plan, config, seq)
        self.seconds.append(time.monotonic() - began)
        return receipts

    def cancel(self) -> None:
        self.job.cancel()


def main() -> None:
    """Print the parts as JSON, in seconds."""
    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    parts = {"python": _age()}
    began = time.monotonic()

    def step(name: str) -> None:
        nonlocal began
        parts[name] = time.monotonic() - began
        began = time.monotonic()

    from penstock.job import SparkJob  # noqa: PLC0415 - imports are a part
    from penstock.loading import load  # noqa: PLC0415
    from penstock.running import Running  # noqa: PLC0415
    from penstock.spark import context  # noqa: PLC0415

    step("imports")
    config, kafka = load(given["properties"], given["worker"], None)
    step("configuration")
    spark = context(config.tasks_max, config.spark)
    step("spark")
    job = _Timed(SparkJob(lambda: spark, kafka, config.tasks_max))
    with Running.open(config, kafka, job) as running:
        step("checks, takeover")
        if running.cycle(running.ends(), thorough=True) is None:
            sys.exit("there was nothing to do")
        step("first cycle")
        parts["first job"] = job.seconds[0]
        parts["plan, intent, commit, mirror"] = parts.pop("first cycle") - job.seconds[0]
        parts["to first commit"] = _age()
    print(json.dumps({name: round(seconds, 3) for name, seconds in parts.items()}))


if __name__ == "__main__":
    main()
