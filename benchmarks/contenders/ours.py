"""Penstock as a long-lived process: one Spark, and a new connector for each job."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from benchmarks.contenders.answering import answer
from benchmarks.contenders.reading import to_noop
from penstock import Sink, register
from penstock.errors import PenstockError
from penstock.job import SparkJob
from penstock.kafka import cluster
from penstock.loading import load
from penstock.running import Running
from penstock.spark import context, session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext

    from penstock.summary import Activity

TASKS = int(os.environ["BENCH_TASKS"])
_IDLE_LOOKS = 5


def until_done(job: dict[str, Any], _: SparkContext) -> dict[str, Any]:
    """Everything that is in the topic."""
    summary = Sink.from_properties(job["properties"], job["worker"]).run(until_done=True)
    if summary.faults:
        return {"error": str(summary.faults[0])}
    return {"records": summary.committed.records}


def stay(job: dict[str, Any], _: SparkContext) -> dict[str, Any]:
    """Run on for `seconds`, or until `records` are committed: when how many were, and how often Kafka was asked."""
    told: list[tuple[float, int]] = []
    stop = threading.Event()

    def hear(activity: Activity) -> None:
        if not told or activity.committed.records > told[-1][1]:
            told.append((time.time(), activity.committed.records))
        if activity.committed.records >= job["records"]:
            stop.set()

    timer = threading.Timer(job["seconds"], stop.set)
    timer.start()
    with _counting_requests() as asked:
        Sink.from_properties(job["properties"], job["worker"]).run(stop=stop, tell=hear)
    timer.cancel()
    return {"records": told[-1][1], "told": told, "kafka_requests": asked}


def cycles(job: dict[str, Any], spark: SparkContext) -> dict[str, Any]:
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


def read(job: dict[str, Any], _: SparkContext) -> dict[str, Any]:
    """A DataFrame of ours to its end. What is registered starts Python processes of Spark's own, so not before."""
    spark = session(TASKS, {})
    register(spark)
    return to_noop(job, spark)


@contextlib.contextmanager
def _counting_requests() -> Iterator[list[tuple[float, int]]]:
    """Admin clients made meanwhile report how many requests they have sent: a list that grows while they live."""
    found: list[tuple[float, int]] = []
    plain = cluster.AdminClient

    def heard(text: str) -> None:
        found.append((time.time(), sum(broker["tx"] for broker in json.loads(text)["brokers"].values())))

    def counted(config: dict[str, Any]) -> Any:  # noqa: ANN401 - librdkafka's client
        client = plain({**config, "statistics.interval.ms": 1000, "stats_cb": heard})
        threading.Thread(target=_poll, args=(client,), daemon=True).start()
        return client

    cluster.AdminClient = counted
    try:
        yield found
    finally:
        cluster.AdminClient = plain


def _poll(client: Any) -> None:  # noqa: ANN401
    """Librdkafka hands statistics out while it is polled."""
    while True:
        client.poll(1.0)


_KINDS = {"until_done": until_done, "stay": stay, "cycles": cycles, "read": read}


def main() -> None:
    """Serve jobs with `{"kind": ..., "properties": ..., "worker": ...}`."""
    spark = context(TASKS, {}, rows="BENCH_ROWS" in os.environ)

    def run(job: dict[str, Any]) -> dict[str, Any]:
        try:
            return _KINDS[job["kind"]](job, spark)
        except PenstockError as error:
            return {"error": str(error)}

    answer(run)


if __name__ == "__main__":
    main()
