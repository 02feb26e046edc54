"""Loads that could fall off a cliff, a row each; S3 at a distance; latency and what idling costs; a cold start."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from benchmarks.arena import OURS, Arena, Contender
from benchmarks.cases import CASES
from benchmarks.curves import point, shaped
from benchmarks.measuring import cpu_seconds
from benchmarks.shapes import Shape
from benchmarks.topics import Topic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.spark_peer import SparkPeer

Row = dict[str, Any]
_BYTES, _AVRO = CASES["bytes-bytes"], CASES["avro-avro"]
_AWAY_MS, _AWAY_FLUSH = 30, 10_000


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large everything is."""

    runs: int
    odd_bytes: int
    away_records: int
    latency_records: int
    idle_seconds: float
    starts: int


FULL = Sizes(5, 1_000_000_000, 8_000_000, 400, 60.0, 5)
QUICK = Sizes(1, 40_000_000, 160_000, 10, 6.0, 1)


def odd_loads(arena: Arena, sizes: Sizes) -> list[Row]:
    """Many small partitions, one huge one beside many small ones, very large records, content that shrinks or not."""
    big = 20_000_000
    loads = {
        "even, 4 topic-partitions (for comparison)": (Shape(), 100_000),
        "1,000 small topic-partitions": (Shape(partitions=1000), 1000),
        "one huge topic-partition (90 %) beside 99 small ones": (Shape(partitions=100, skew=0.9), 1000),
        "records of 20 MB": (Shape(kind="bytes", size=big, partitions=2, content="same"), 1),
        "highly compressible": (Shape(size=1000, content="same"), 10_000),
        "incompressible": (Shape(size=1000, content="random"), 10_000),
        "producer batches of 10 records": (Shape(batch=10), 10_000),
        "keys and three headers": (Shape(keys=True, headers=3), 10_000),
    }
    rows = []
    with Contender.running(OURS, arena, None) as ours:
        shaped(arena, ours, _AVRO, 400_000, flush=10_000, runs=1)
        for name, (shape, flush) in loads.items():
            case = replace(_BYTES if shape.kind == "bytes" else _AVRO, shape=shape)
            step = flush * shape.partitions
            records = max(1, sizes.odd_bytes // shape.size // step) * step
            rows.append({"load": name, **shaped(arena, ours, case, records, flush=flush, runs=min(sizes.runs, 3))})
    return rows


def distance(arena: Arena, sizes: Sizes, found: Mapping[str, SparkPeer | None]) -> list[Row]:
    """Each request to S3 delayed by 30 ms, beside none: wall seconds with `flush.size=10000`."""
    rows = []
    for name in (each for each, peer in found.items() if peer is None):
        with Contender.running(name, arena, None) as contender, arena.behind(_AWAY_MS) as far:
            for case in (_BYTES, _AVRO):
                records = sizes.away_records if name == OURS else sizes.away_records // 8
                topic = Topic.make(arena.info, f"away-{time.time_ns()}", case.shape)
                topic.fill(max(1, records // (4 * _AWAY_FLUSH)) * 4 * _AWAY_FLUSH)
                measured: dict[int, list[Row]] = {0: [], _AWAY_MS: []}
                for number in range(sizes.runs + 1):  # the first one warms
                    for delay, place in ((0, arena), (_AWAY_MS, far)):
                        contender.arena = place
                        row = point(place, contender, case, topic, flush=_AWAY_FLUSH, runs=1)
                        if number:
                            measured[delay].append(row)
                topic.delete()
                for delay, each in measured.items():
                    walls = [row["wall_s"] for row in each]
                    rows.append({"case": case.name, "contender": name, "delay_ms": delay, **each[-1], "wall_s": walls})
    return rows


def latency(arena: Arena, sizes: Sizes) -> list[Row]:
    """From produce to committed object with `flush.size=1`, records coming one by one."""
    rows = []
    with Contender.running(OURS, arena, None) as ours:
        for interval in (1000, 100):
            topic = Topic.make(arena.info, f"latency-{time.time_ns()}", Shape(kind="bytes", partitions=1))
            _one_by_one(arena, ours, topic, interval, 5)  # warms
            topic = Topic.make(arena.info, f"latency-{time.time_ns()}", Shape(kind="bytes", partitions=1))
            waits = sorted(_one_by_one(arena, ours, topic, interval, sizes.latency_records))
            rows.append(
                {
                    "cycle.interval.ms": interval,
                    "records": len(waits),
                    "p50_ms": round(1000 * statistics.median(waits)),
                    "p99_ms": round(1000 * waits[min(len(waits) - 1, int(len(waits) * 0.99))]),
                    "max_ms": round(1000 * waits[-1]),
                }
            )
            topic.delete()
    return rows


def _one_by_one(arena: Arena, ours: Contender, topic: Topic, interval_ms: int, records: int) -> list[float]:
    """Seconds from each record's produce call to the moment its commit was told."""
    sent: list[float] = []
    more = {"cycle.interval.ms": str(interval_ms)}
    properties = arena.properties(_BYTES, topic.name, ours.new_name(_BYTES), 1, more)
    producer = Producer({"bootstrap.servers": arena.info.bootstrap_servers, "linger.ms": 0})

    def produce() -> None:
        for number in range(records + 1):
            sent.append(time.time())
            producer.produce(topic.name, f"record {number}".encode(), partition=0)
            producer.flush()
            if number == 0:
                _await_objects(arena, f"{properties['name']}/", 1)
            time.sleep(0.05 + 0.37 * (number % 7) / 7)  # out of step with the cycles

    thread = threading.Thread(target=produce)
    thread.start()
    told = ours.ask("stay", properties, records=records + 1, seconds=120 + 3 * records)["told"]
    thread.join()
    return [next(at for at, count in told if count > n) - sent[n] for n in range(1, records + 1)]


def _await_objects(arena: Arena, prefix: str, count: int) -> None:
    """Until so many are there."""
    deadline = time.monotonic() + 120
    while len(arena.keys(prefix)) < count:
        if time.monotonic() > deadline:
            msg = f"there are no {count} objects under {prefix} after two minutes"
            raise RuntimeError(msg)
        time.sleep(0.2)


def idle(arena: Arena, sizes: Sizes) -> Row:
    """What a minute costs in which nothing comes: CPU of all processes, requests to Kafka and to S3."""
    with Contender.running(OURS, arena, None) as ours:
        topic = Topic.make(arena.info, f"idle-{time.time_ns()}", Shape(kind="bytes"))
        topic.fill(4000)
        properties = arena.properties(_BYTES, topic.name, ours.new_name(_BYTES), 1000, {})
        answers: list[dict[str, Any]] = []
        settle = 5.0
        seconds = sizes.idle_seconds + settle + 30
        thread = threading.Thread(
            target=lambda: answers.append(ours.ask("stay", properties, records=1 << 60, seconds=seconds))
        )
        thread.start()
        _await_objects(arena, f"{properties['name']}/", 4)
        time.sleep(settle)
        cpu, requests, began = cpu_seconds(ours.pid), arena.proxy.counts(), time.time()
        time.sleep(sizes.idle_seconds)
        cpu, requests, ended = cpu_seconds(ours.pid) - cpu, arena.proxy.counts() - requests, time.time()
        thread.join()
        topic.delete()
        per_minute = 60 / (ended - began)
        asked = [count for at, count in answers[0]["kafka_requests"] if began <= at <= ended]
        return {
            "seconds": round(ended - began, 1),
            "cpu_s_per_minute": round(cpu * per_minute, 2),
            "kafka_requests_per_minute": round((asked[-1] - asked[0]) * per_minute) if asked else None,
            "s3_requests_per_minute": {name: round(count * per_minute, 1) for name, count in requests.items()},
        }


def cold_start(arena: Arena, sizes: Sizes, tell: Callable[[str], None]) -> list[Row]:
    """From nothing to the first commit: the parts, by a program that does what `penstock run` does."""
    rows = []
    for _ in range(sizes.starts):
        topic = Topic.make(arena.info, f"cold-{time.time_ns()}", Shape())
        topic.fill(4000)
        properties = arena.properties(_AVRO, topic.name, f"cold-{time.time_ns()}", 1000, {})
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            job = {"properties": properties, "worker": {"bootstrap.servers": arena.info.bootstrap_servers}}
            json.dump(job, file)
            file.flush()
            command = [sys.executable, "-m", "benchmarks.contenders.cold", file.name]
            root = Path(__file__).resolve().parents[1]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=root)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        tell(f"cold start {rows[-1]}")
        topic.delete()
    return rows
