"""How cost grows with what: record size, topic-partitions, open encoded partitions, age of the state log, backlog.

One warm process of ours; each point is the median of a few runs.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from benchmarks.arena import OURS, Arena, Contender
from benchmarks.cases import CASES, Case
from benchmarks.shapes import Shape
from benchmarks.topics import Topic
from penstock.loading import load
from penstock.model import Commit, TopicPartition
from penstock.pipeline import open_log, read_head

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.arena import Run

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the points are."""

    runs: int
    record_bytes: int
    sizes: tuple[int, ...]
    partitions: tuple[int, ...]
    partitions_records: int
    labels: tuple[int, ...]
    labels_records: int
    log_entries: tuple[int, ...]
    backlogs: tuple[int, ...]


FULL = Sizes(
    runs=3,
    record_bytes=1_000_000_000,
    sizes=(10, 30, 100, 300, 1000, 10_000, 100_000, 1_000_000),
    partitions=(1, 4, 16, 64, 256, 1000, 2000),
    partitions_records=4_000_000,
    labels=(1, 10, 100, 1000, 5000),
    labels_records=2_000_000,
    log_entries=(1, 50, 150, 1050, 10_050, 100_050),  # the newest checkpoint is 50 entries old
    backlogs=(1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000),
)
QUICK = Sizes(
    runs=1,
    record_bytes=20_000_000,
    sizes=(10, 1000, 100_000),
    partitions=(1, 64),
    partitions_records=128_000,
    labels=(1, 100),
    labels_records=100_000,
    log_entries=(1, 50, 250),
    backlogs=(200_000, 400_000),
)
_BYTES = CASES["bytes-bytes"]
_AVRO = CASES["avro-avro"]


def all_curves(arena: Arena, sizes: Sizes, tell: Callable[[str], None]) -> dict[str, list[Row]]:
    """Each curve by its name: rows with `x` and what it cost."""
    with Contender.running(OURS, arena, None) as ours:
        _warm(arena, ours)
        found = {}
        for name, curve in _CURVES.items():
            found[name] = curve(arena, ours, sizes)
            for row in found[name]:
                tell(f"{name} {row}")
        return found


def point(arena: Arena, ours: Contender, case: Case, topic: Topic, *, flush: int, runs: int) -> Row:
    """What reading the whole topic costs, objects deleted afterwards."""
    measured: list[Run] = []
    for _ in range(runs):
        measured.append(ours.run(case, topic, flush))
        arena.delete(measured[-1].prefix)
    wall = statistics.median(run.wall_s for run in measured)
    cpu = statistics.median(run.cpu_s for run in measured)
    last = measured[-1]
    return {
        "records": last.records,
        "wall_s": round(wall, 3),
        "cpu_s": round(cpu, 3),
        "records_per_s": round(last.records / wall),
        "records_per_cpu_s": round(last.records / cpu),
        "mb_per_cpu_s": round(last.records * case.shape.size / cpu / 1e6, 1),
        "peak_mb": round(max(run.peak_bytes for run in measured) / 1e6),
        "objects": last.objects,
        "s3_requests": sum(last.requests.values()),
    }


def shaped(arena: Arena, ours: Contender, case: Case, records: int, *, flush: int, runs: int) -> Row:
    """The same on a topic of its own with `records` of the case's shape."""
    topic = Topic.make(arena.info, f"curve-{time.time_ns()}", case.shape)
    topic.fill(records)
    try:
        return point(arena, ours, case, topic, flush=flush, runs=runs)
    finally:
        topic.delete()


def _warm(arena: Arena, ours: Contender) -> None:
    for case in (_BYTES, _AVRO, CASES["avro-avro-field"]):
        shaped(arena, ours, case, 400_000, flush=10_000, runs=1)


def _record_size(arena: Arena, ours: Contender, sizes: Sizes) -> list[Row]:
    """The same bytes in records of another size, at most 10 M of them; a file holds 10 MB or 100,000 records."""
    rows = []
    for size in sizes.sizes:
        flush = max(1, min(100_000, 10_000_000 // size))
        step = flush * 4
        records = max(1, min(10_000_000, sizes.record_bytes // size) // step) * step
        case = replace(_BYTES, shape=Shape(kind="bytes", size=size))
        rows.append({"x": size, **shaped(arena, ours, case, records, flush=flush, runs=sizes.runs)})
    return rows


def _topic_partitions(arena: Arena, ours: Contender, sizes: Sizes) -> list[Row]:
    """The same records in more partitions, each of them in files of at most 100,000 records."""
    rows = []
    for partitions in sizes.partitions:
        each = sizes.partitions_records // partitions
        case = replace(_AVRO, shape=Shape(partitions=partitions))
        row = shaped(arena, ours, case, each * partitions, flush=min(each, 100_000), runs=sizes.runs)
        rows.append({"x": partitions, **row, **_small_cycles(arena, ours, case)})
    return rows


def _small_cycles(arena: Arena, ours: Contender, case: Case) -> Row:
    """With so many partitions: a cycle with 3 records in each, and a look at Kafka when there is nothing to do."""
    topic = Topic.make(arena.info, f"small-{time.time_ns()}", case.shape)
    topic.fill(3 * case.shape.partitions)
    run = ours.new_name(case)
    found = ours.ask("cycles", arena.properties(case, topic.name, run, 3, {}))
    arena.delete(f"{run}/")
    topic.delete()
    return {
        "three_records_s": round(sum(found["cycles_s"]), 3),
        "idle_cycle_s": round(statistics.median(found["idle_s"]), 3),
        "open_s": round(found["open_s"], 3),
    }


def _encoded_partitions(arena: Arena, ours: Contender, sizes: Sizes) -> list[Row]:
    """Records whose field has more and more values, one cut for all of a partition's records."""
    rows = []
    for labels in sizes.labels:
        case = replace(CASES["avro-avro-field"], shape=Shape(partitions=2, labels=labels))
        flush = sizes.labels_records // 2
        rows.append({"x": labels, **shaped(arena, ours, case, sizes.labels_records, flush=flush, runs=sizes.runs)})
    return rows


def _state_log(arena: Arena, _: Contender, sizes: Sizes) -> list[Row]:
    """How long a start takes to know the positions (read the log, append its takeover), by entries in the log."""
    rows = []
    name = f"log-{time.time_ns()}"
    worker = {"bootstrap.servers": arena.info.bootstrap_servers}
    config, _settings = load(arena.properties(_AVRO, "t", name, 1000, {}), worker, None)
    tps = [TopicPartition("t", number) for number in range(10)]
    for entries in sizes.log_entries:
        log = open_log(config)
        while (seq := log.head.seq) < entries:
            log.append(commits=(Commit(tps[seq % 10], seq),))
        before = arena.proxy.counts()
        times = []
        for _run in range(max(sizes.runs, 3)):
            began = time.monotonic()
            read_head(config)
            times.append(time.monotonic() - began)
        requests = sum((arena.proxy.counts() - before).values()) / len(times)
        rows.append({"x": entries, "read_s": round(statistics.median(times), 4), "s3_requests": round(requests, 1)})
    arena.delete(f"{config.state_dir}/{name}/")
    return rows


def _backlog(arena: Arena, ours: Contender, sizes: Sizes) -> list[Row]:
    """One topic that grows, read from its beginning each time."""
    rows = []
    topic = Topic.make(arena.info, f"backlog-{time.time_ns()}", _AVRO.shape)
    for records in sizes.backlogs:
        topic.fill(records - topic.records)
        flush = min(100_000, records // 8)
        rows.append({"x": records, **point(arena, ours, _AVRO, topic, flush=flush, runs=min(sizes.runs, 2))})
    topic.delete()
    return rows


_CURVES = {
    "record-size": _record_size,
    "topic-partitions": _topic_partitions,
    "encoded-partitions": _encoded_partitions,
    "state-log": _state_log,
    "backlog": _backlog,
}
