"""Penstock as a long-lived process: one Spark session, and a new connector for each job."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from benchmarks.contenders.answering import answer
from penstock import Sink
from penstock.errors import PenstockError
from penstock.job import SparkJob
from penstock.kafka import cluster
from penstock.loading import load
from penstock.running import Running
from penstock.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.summary import Activity

_IDLE_LOOKS = 5


def until_done(job: dict[str, Any], spark: SparkSession) -> dict[str, Any]:
    """Everything that is in the topic."""
    summary = Sink.from_properties(job["properties"], job["worker"]).run(spark, until_done=True)
    if summary.faults:
        return {"error": str(summary.faults[0])}
    return {"records": summary.committed.records}


def stay(job: dict[str, Any], spark: SparkSession) -> dict[str, Any]:
    """Run on for `seconds`, or until `records` are committed: when how many were, and how often Kafka was asked."""
    told: list[tuple[float, int]] = []
    stop, asked = threading.Event(), _counting_requests()

    def hear(activity: Activity) -> None:
        if not told or activity.committed.records > told[-1][1]:
            told.append((time.time(), activity.committed.records))
        if activity.committed.records >= job["records"]:
            stop.set()

    timer = threading.Timer(job["seconds"], stop.set)
    timer.start()
    Sink.from_properties(job["properties"], job["worker"]).run(spark, stop=stop, tell=hear)
    timer.cancel()
    return {"records": told[-1][1], "told": told, "kafka_requests": asked}


def cycles(job: dict[str, Any], spark: SparkSession) -> dict[str, Any]:
    """Cycle by cycle: how long opening took, each cycle, and a look at Kafka when there is nothing to do."""
    config, kafka = load(job["properties"], job["worker"], None)
    began = time.monotonic()
    with Running.open(config, kafka, SparkJob(lambda: spark, kafka, config.tasks_max)) as running:
        opened, busy, records = time.monotonic() - began, [], 0
        while True:
            at = time.monotonic()
            cycle = running.cycle(running.ends(), thorough=True)
            if cycle is None:
                break
            busy.append(time.monotonic() - at)
            records += sum(o.records for commit in cycle.commits for o in commit.objects)
        idle = []
        for _ in range(_IDLE_LOOKS):
            at = time.monotonic()
            running.discover()
            running.cycle(running.ends())
            idle.append(time.monotonic() - at)
    return {"records": records, "open_s": opened, "cycles_s": busy, "idle_s": idle}


def _counting_requests() -> list[tuple[float, int]]:
    """From now on, admin clients report how many requests they have sent: a list that grows while they run."""
    found: list[tuple[float, int]] = []
    plain = cluster.AdminClient

    def heard(text: str) -> None:
        found.append((time.time(), sum(broker["tx"] for broker in json.loads(text)["brokers"].values())))

    def counted(config: dict[str, Any]) -> Any:  # noqa: ANN401 - librdkafka's client
        return plain({**config, "statistics.interval.ms": 1000, "stats_cb": heard})

    cluster.AdminClient = counted
    return found


_KINDS = {"until_done": until_done, "stay": stay, "cycles": cycles}


def main() -> None:
    """Serve jobs with `{"kind": ..., "properties": ..., "worker": ...}`."""
    spark = session(int(os.environ["BENCH_TASKS"]), {})

    def run(job: dict[str, Any]) -> dict[str, Any]:
        try:
            return _KINDS[job["kind"]](job, spark)
        except PenstockError as error:
            return {"error": str(error)}

    answer(run)


if __name__ == "__main__":
    main()
