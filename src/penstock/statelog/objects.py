"""The objects that a run of entries committed, as one columnar file: a year of history in few requests."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.statelog.entries import Entry


def object_table(entries: Sequence[Entry]) -> bytes | None:
    """A Parquet file with a row per object, in the order of the log; None where the entries committed none."""
    rows = [
        {"entry": entry.seq, "topic": commit.tp.topic, "partition": commit.tp.partition, **asdict(each)}
        for entry in entries
        for commit in entry.commits
        for each in commit.objects
    ]
    if not rows:
        return None
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), sink, compression="zstd")
    return bytes(sink.getvalue())
