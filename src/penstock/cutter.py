"""Where cuts are: a pure function of the records after the last cut and the rules.

The records of one topic-partition arrive as arrays, in any batching; the next cut is the minimum of a few array
searches, so the work is per cut and per batch. Rules: reference s3-sink-connector 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from penstock.model import CutReason


@dataclass(frozen=True, slots=True)
class Rules:
    """What closes files. `flush_size`: records of a topic-partition, over all its encoded partitions."""

    flush_size: int


@dataclass(frozen=True, slots=True)
class Open:
    """What is open since the last cut: how many records, and the schema code of its files (None while empty)."""

    records: int = 0
    schema: int | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows `[start, end)` of the batch go to the open files; then, if `cut` is set, all open files are closed.

    A segment may be empty: a cut that falls on the edge between two batches.
    """

    start: int
    end: int
    cut: CutReason | None


@dataclass(frozen=True, slots=True)
class Columns:
    """What the cutter looks at of a batch: `rows` records, and a schema code for each where they can differ."""

    rows: int
    schemas: NDArray[np.int32] | None = None


def cut(state: Open, columns: Columns, rules: Rules) -> tuple[list[Segment], Open]:
    """The segments of a batch, and what is open behind it.

    Handing over the same records in other batches never changes where the cuts are.
    """
    segments: list[Segment] = []
    changes = _changes(columns.schemas)
    row = 0
    for end, reason in _edges(state, columns, changes, rules):
        segments.append(Segment(row, end, reason))
        row = end
        state = Open()
    if row < columns.rows:
        segments.append(Segment(row, columns.rows, None))
        state = replace(state, records=state.records + columns.rows - row, schema=_schema(columns, row, state))
    return segments, state


def _edges(state: Open, columns: Columns, changes: NDArray[np.intp], rules: Rules) -> Iterator[tuple[int, CutReason]]:
    """Each cut as (the row before which it falls, why)."""
    row, records, schema = 0, state.records, state.schema
    while row < columns.rows:
        by_count = row + max(rules.flush_size - records, 0)
        by_schema = _next_change(columns, changes, row, schema)
        edge = min(by_count, by_schema)
        if edge > columns.rows:
            return
        yield edge, "flush.size" if by_count == edge else "schema.change"
        row, records, schema = edge, 0, None


def _changes(schemas: NDArray[np.int32] | None) -> NDArray[np.intp]:
    """Rows whose schema differs from the row before."""
    if schemas is None or len(schemas) == 0:
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(schemas[1:] != schemas[:-1]) + 1


def _next_change(columns: Columns, changes: NDArray[np.intp], row: int, schema: int | None) -> int:
    """The first row at or after `row` that cannot join files of `schema`; beyond the batch when there is none."""
    if columns.schemas is None:
        return columns.rows + 1
    if schema is not None and int(columns.schemas[row]) != schema:
        return row
    at = int(np.searchsorted(changes, row, side="right"))
    return int(changes[at]) if at < len(changes) else columns.rows + 1


def _schema(columns: Columns, row: int, state: Open) -> int | None:
    if state.records:
        return state.schema
    return int(columns.schemas[row]) if columns.schemas is not None else None
