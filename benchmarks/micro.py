"""Micro-benchmarks of what is done to every record: `python -m benchmarks.micro` runs them under pyperf.

`tests/benchmarks/test_ratios.py` gates the same subjects against a yardstick in plain Python, measured in the same run:
machines and neighbours change both alike, a regression changes one.
"""

from __future__ import annotations

import functools
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.shapes import SCHEMA, Shape, batch, stamped
from penstock import cutter
from penstock.converters.avro_check import checker
from penstock.converters.base import SCHEMALESS, Chunk, FileSchema
from penstock.converters.json import JsonConverter
from penstock.fields.avro import AvroField
from penstock.formats import FORMATS, FormatOptions
from penstock.kafka.batches import Fetched, decode, tabulate
from penstock.kafka.decompress import Arena
from penstock.model import Gather, PlannedRange, Records, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_TP = TopicPartition("t", 0)
_BATCHES, _PER_BATCH = 20, 500
_ARENA_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Subject:
    """Something that is done to `records` records at a call."""

    work: Callable[[], object]
    records: int


def subjects() -> dict[str, Subject]:
    """All of them by name, with their inputs made: 10,000 records of about 100 bytes."""
    avro, lines = _response(Shape(codec="none")), _response(Shape(kind="json", size=143, codec="none"))
    strip, line = Gather(strip=5), Gather(separator=b"\n")
    rows = _decoded(avro, strip)
    text = _decoded(lines, line)
    count = len(rows)
    every = np.arange(count)
    labels = (every % _BATCHES).astype(np.int32)
    chunk = Chunk(rows.values.data, rows.values.offsets)
    field = AvroField.compile(SCHEMA, "country")
    hourly = cutter.Rules(100_000, interval_ms=3_600_000)
    schema = FileSchema(json.dumps(SCHEMA))
    check = checker(schema.text)
    numbered = Chunk(text.values.data, text.values.offsets, positions=text.offsets)
    work: dict[str, Callable[[], object]] = {
        "walk": lambda: _decoded(avro, strip),
        "walk, lz4": functools.partial(_decoded, _response(Shape()), strip),
        "cutter, flush.size": lambda: cutter.cut(cutter.Open(), cutter.Columns(count), cutter.Rules(1000)),
        "cutter, hourly": lambda: cutter.cut(
            cutter.Open(), cutter.Columns(count, times=rows.timestamps, labels=labels * 0), hourly
        ),
        "field of Avro": lambda: field.read(rows.values.data, rows.values.offsets, every),
        "JSON validated": lambda: JsonConverter().convert(text),
        "Avro checked": lambda: check(rows.values.data, rows.values.offsets, every),
        "encode avro": lambda: _encoded("avro", FormatOptions(), schema, chunk),
        "encode avro, snappy": lambda: _encoded("avro", FormatOptions(avro_codec="snappy"), schema, chunk),
        "encode avro, every other row": lambda: _encoded("avro", FormatOptions(), schema, chunk, every[::2]),
        "encode parquet": lambda: _encoded("parquet", FormatOptions(), schema, chunk),
        "encode block-gzip": lambda: _encoded("block_gzip", FormatOptions(), SCHEMALESS, numbered),
        "encode json": lambda: _encoded(
            "json", FormatOptions(), SCHEMALESS, Chunk(text.values.data, text.values.offsets)
        ),
    }
    return {name: Subject(each, count) for name, each in work.items()}


def yardstick() -> Subject:
    """The same walk over the records of a batch in plain Python. It must never be changed: the gates count in it."""
    body = _response(Shape(codec="none"))[61:]  # behind the header of the first batch
    count = _PER_BATCH
    return Subject(lambda: _plain_walk(body, count), count)


def seconds_per_record(subject: Subject, calls: int = 1) -> float:
    """CPU time of this thread, the best of a few calls: what others on the machine do is not in it."""
    best = float("inf")
    for _ in range(calls):
        began = time.thread_time_ns()
        subject.work()
        best = min(best, time.thread_time_ns() - began)
    return best / 1e9 / subject.records


def _response(shape: Shape) -> bytes:
    """Record batches of one partition as a broker sends them."""
    parts = []
    for index in range(_BATCHES):
        made = bytearray(stamped(batch(shape, 7, index * _PER_BATCH, _PER_BATCH), index * _PER_BATCH * 72))
        made[:8] = (index * _PER_BATCH).to_bytes(8, "big")
        parts.append(bytes(made))
    return b"".join(parts)


def _decoded(response: bytes, gather: Gather) -> Records:
    data = np.frombuffer(response, np.uint8)
    table, fault = tabulate(_TP, data, 0, len(data), 0)
    assert fault is None
    planned = PlannedRange(_TP, 0, _BATCHES * _PER_BATCH)
    (records,) = decode(Fetched(planned, data, table), 0, gather, Arena(_ARENA_BYTES))
    return records


def _encoded(
    name: str, options: FormatOptions, schema: FileSchema, chunk: Chunk, rows: slice | np.ndarray | None = None
) -> int:
    encoder = FORMATS[name](options).encoder(schema, "topics/t/partition=0/t+0+0000000000")
    chosen = slice(0, len(chunk.offsets) - 1) if rows is None else rows
    size = sum(len(part) for part in encoder.write(chunk, chosen))
    return size + sum(len(part) for part in encoder.finish())


def _plain_walk(body: bytes, count: int) -> int:
    at = total = 0
    for _ in range(count):
        size, at = _plain_varint(body, at)
        end = at + size
        _, at = _plain_varint(body, at + 1)
        _, at = _plain_varint(body, at)
        key, at = _plain_varint(body, at)
        value, at = _plain_varint(body, at + max(key, 0))
        total += len(body[at : at + value])
        at = end
    return total


def _plain_varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = body[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:  # noqa: PLR2004 - the continuation bit
            return (value >> 1) ^ -(value & 1), at
        shift += 7


def read(path: Path) -> list[dict[str, Any]]:
    """Nanoseconds per record of each subject in a file of pyperf's."""
    import pyperf  # noqa: PLC0415 - the tests need the subjects only

    rows = []
    for each in pyperf.BenchmarkSuite.load(str(path)).get_benchmarks():
        name, _, count = each.get_name().rpartition(" (")
        scale = 1e9 / int(count.split()[0])
        spread = each.stdev() if each.get_nvalue() > 1 else 0.0
        rows.append({"name": name, "ns_per_record": each.mean() * scale, "spread_ns": spread * scale})
    return rows


def main() -> None:
    """Run under pyperf, which has the options."""
    import pyperf  # noqa: PLC0415 - the tests need the subjects only

    runner = pyperf.Runner()
    for name, subject in {**subjects(), "yardstick": yardstick()}.items():
        runner.bench_func(f"{name} ({subject.records} records)", subject.work)


if __name__ == "__main__":
    main()
