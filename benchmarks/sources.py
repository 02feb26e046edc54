"""Spark on both sides: Kafka as a DataFrame, a transformation beside the plain copy, committed objects read back."""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from benchmarks.arena import OURS, SPARK, Arena, Contender
from benchmarks.cases import CASES
from benchmarks.shapes import SCHEMA
from benchmarks.topics import Topic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.arena import Run
    from benchmarks.spark_peer import SparkPeer

Row = dict[str, Any]
_AVRO = CASES["avro-avro"]
_FLUSH = 100_000
_ROWS = {"BENCH_ROWS": "1"}
_HASHED = "SELECT id, country, amount, sha2(note, 256) AS note_hash FROM records WHERE country < 'C'"
_ALL = "SELECT * FROM records"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many records Kafka holds, how many objects hold, and how often each is measured."""

    kafka_records: int
    object_records: int
    runs: int


FULL = Sizes(8_000_000, 1_000_000, 3)
QUICK = Sizes(800_000, 400_000, 1)


def sources(
    arena: Arena, sizes: Sizes, found: Mapping[str, SparkPeer | None], tell: Callable[[str], None]
) -> list[Row]:
    """Rows with what was read, by whom, and what it cost. Every reading is checked for its number of rows."""
    rows: list[Row] = []
    topic = Topic.make(arena.info, f"sources-{time.time_ns()}", _AVRO.shape)
    topic.fill(_whole(sizes.object_records))
    with Contender.running(OURS, arena, None) as ours:
        written = ours.run(_AVRO, topic, _FLUSH)
    for name in (OURS, SPARK):
        if name not in found:
            continue
        with Contender.running(name, arena, found[name], _ROWS) as contender:
            for what, job in _objects(arena, written.prefix)[name].items():
                rows.append(_measured(contender, what, job, topic.records, sizes.runs))
                tell(str(rows[-1]))
    topic.fill(_whole(sizes.kafka_records) - topic.records)
    for name in (OURS, SPARK):
        if name not in found:
            continue
        with Contender.running(name, arena, found[name], _ROWS) as contender:
            for what, job in _kafka(arena, topic)[name].items():
                rows.append(_measured(contender, what, job, topic.records, sizes.runs))
                tell(str(rows[-1]))
    rows += _transformed(arena, topic, sizes.runs, tell)
    topic.delete()
    arena.delete("")
    return rows


def _whole(records: int) -> int:
    """So many that every partition ends with a full file."""
    step = _FLUSH * _AVRO.shape.partitions
    return -(-records // step) * step


def _kafka(arena: Arena, topic: Topic) -> dict[str, dict[str, Row]]:
    servers = arena.info.bootstrap_servers
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic.name, "startingOffsets": "earliest"}
    plain = {"options": {**options, "endingOffsets": "latest"}, "selects": []}
    value = {**plain, "selects": [["value"]]}
    registry = {"value.converter": "avro", "value.converter.schema.registry.url": arena.info.schema_registry_url}
    typed = {**plain, "options": {**plain["options"], **registry}, "selects": [["value.*"]]}
    decoded = f"from_avro(substring(value, 6), '{json.dumps(SCHEMA)}') AS record"
    by_hand = {**plain, "selects": [[decoded], ["record.*"]]}
    return {
        OURS: {
            "Kafka, all columns": {"format": "penstock.kafka", **plain},
            "Kafka, the value alone": {"format": "penstock.kafka", **value},
            "Kafka, Avro fields as columns": {"format": "penstock.kafka", **typed},
        },
        SPARK: {
            "Kafka, all columns": {"format": "kafka", **plain},
            "Kafka, the value alone": {"format": "kafka", **value},
            "Kafka, Avro fields as columns": {"format": "kafka", **by_hand},
        },
    }


def _objects(arena: Arena, prefix: str) -> dict[str, dict[str, Row]]:
    info = arena.info
    ours = {
        "format": "penstock",
        "path": f"s3://{info.bucket}/_penstock/{prefix.removesuffix('/')}",
        "selects": [["id", "country", "amount", "note"]],
        "options": {
            "store.url": arena.proxy.url,
            "s3.region": info.region,
            "aws.access.key.id": info.access_key_id,
            "aws.secret.access.key": info.secret_access_key,
        },
    }
    peer = {"format": "avro", "path": f"s3a://{info.bucket}/{prefix}", "selects": ours["selects"]}
    return {
        OURS: {"committed Avro objects": ours},
        SPARK: {"committed Avro objects": {**peer, "options": {"recursiveFileLookup": "true"}}},
    }


def _measured(contender: Contender, what: str, job: Row, records: int, runs: int) -> Row:
    costs = []
    for _ in range(runs + 1):  # the first one warms
        cost = contender.cost_of({"kind": "read", **job})
        if cost.answer["records"] != records:
            msg = f"{what}: {contender.name} gave {cost.answer['records']} rows of {records}"
            raise RuntimeError(msg)
        costs.append(cost)
    return _row(what, contender.name, records, costs[1:])


def _transformed(arena: Arena, topic: Topic, runs: int, tell: Callable[[str], None]) -> list[Row]:
    """The plain copy, every record through Spark unchanged, and a filter with a hash; by turns."""
    cases = {
        "copied (no transformation)": _AVRO,
        "`SELECT *`": replace(_AVRO, properties={**_AVRO.properties, "transform.sql": _ALL}),
        "filtered and hashed": replace(_AVRO, properties={**_AVRO.properties, "transform.sql": _HASHED}),
    }
    with Contender.running(OURS, arena, None) as plain, Contender.running(OURS, arena, None, _ROWS) as ours:
        found: dict[str, list[Run]] = {what: [] for what in cases}
        for number in range(runs + 1):
            for what, case in cases.items():
                run = (plain if case is _AVRO else ours).run(case, topic, _FLUSH)
                arena.delete(run.prefix)
                if number:
                    found[what].append(run)
    rows = [_row(f"sink, {what}", OURS, topic.records, each) for what, each in found.items()]
    for row in rows:
        tell(str(row))
    return rows


def _row(what: str, contender: str, records: int, costs: list[Any]) -> Row:
    cpu = [round(cost.cpu_s, 2) for cost in costs]
    return {
        "what": what,
        "contender": contender,
        "records": records,
        "wall_s": [round(cost.wall_s, 2) for cost in costs],
        "cpu_s": cpu,
        "records_per_cpu_s": round(records / statistics.median(cpu)),
        "peak_mb": round(max(cost.peak_bytes for cost in costs) / 1e6),
    }
