"""What is in the objects, read back by independent readers: every record of a small run, the count of a large one."""

from __future__ import annotations

import gzip
import io
import json
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow.parquet as pq

from benchmarks.shapes import fields, value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.arena import Arena
    from benchmarks.cases import Case
    from benchmarks.shapes import Shape
    from benchmarks.topics import Topic


def records(arena: Arena, case: Case, prefix: str) -> list[str]:
    """Every record below a prefix, as canonical text, sorted: contenders order their files differently."""
    found: list[str] = []
    client = arena.s3
    for key in arena.keys(prefix):
        body = client.get_object(Bucket=arena.info.bucket, Key=key)["Body"].read()
        found += map(_canonical, _read(case, body))
    return sorted(found)


def expected(case: Case, topic: Topic) -> list[str]:
    """What the generator put into the topic, likewise. The topic must be shorter than the template."""
    shape = case.shape
    rows = (_row(shape, number) for count in topic.filled for number in range(count))
    return sorted(map(_canonical, rows))


def count(arena: Arena, case: Case, keys: Sequence[str]) -> int:
    """How many records are in objects, without decoding them where the format allows it."""
    client = arena.s3
    bodies = (client.get_object(Bucket=arena.info.bucket, Key=key)["Body"].read() for key in keys)
    return sum(_count(case, body) for body in bodies)


def _count(case: Case, body: bytes) -> int:
    if case.output == "avro":
        return sum(block.num_records for block in fastavro.block_reader(io.BytesIO(body)))
    if case.output == "parquet":
        return int(pq.read_metadata(io.BytesIO(body)).num_rows)
    return _plain(case, body).count(b"\n")


def _row(shape: Shape, number: int) -> Any:  # noqa: ANN401 - a record of any kind
    made = value(shape, number, 0)
    if shape.kind == "bytes":
        return made.decode()
    if shape.kind == "json":
        return json.loads(made)
    return fields(shape, number)


def _read(case: Case, body: bytes) -> Iterable[Any]:
    if case.output == "avro":
        return fastavro.reader(io.BytesIO(body))
    if case.output == "parquet":
        rows: list[Any] = pq.read_table(io.BytesIO(body)).to_pylist()
        return rows
    lines = _plain(case, body).splitlines()
    return map(json.loads, lines) if case.output == "json" else (line.decode() for line in lines)


def _plain(case: Case, body: bytes) -> bytes:
    return gzip.decompress(body) if case.codec == "gzip" else body


def _canonical(row: Any) -> str:  # noqa: ANN401
    return row if isinstance(row, str) else json.dumps(row, sort_keys=True)
