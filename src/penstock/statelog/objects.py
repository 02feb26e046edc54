"""The objects that a run of entries committed, as one columnar file: a year of history in few requests."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.model import CommittedObject

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.model import TopicPartition
    from penstock.statelog.entries import Entry

SCHEMA = pa.schema(
    [
        ("entry", pa.int64()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        *((each.name, pa.int64() if each.type == "int" else pa.string()) for each in fields(CommittedObject)),
    ]
)


def rows(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """A row of `SCHEMA` per committed object, in the order of the log."""
    return [
        object_row(entry.seq, commit.tp, each)
        for entry in entries
        for commit in entry.commits
        for each in commit.objects
    ]


def object_row(seq: int, tp: TopicPartition, committed: CommittedObject) -> dict[str, Any]:
    """One row: what entry `seq` committed."""
    return {"entry": seq, "topic": tp.topic, "partition": tp.partition, **asdict(committed)}


def object_table(entries: Iterable[Entry]) -> bytes:
    """A Parquet file of what `entries` committed, which may be nothing."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows(entries), schema=SCHEMA), sink, compression="zstd")
    return bytes(sink.getvalue())
