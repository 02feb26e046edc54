"""Where cuts are: a pure function of the records after the last cut and the rules.

The rules are those of reference s3-sink-connector 2.2, read record by record in a compiled loop over arrays: a few
nanoseconds a record, and the same cuts in whatever batches the records arrive (docs/decisions/0005-compiled-cutter.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.compiled import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.model import CutReason

_REASONS: tuple[CutReason, ...] = (
    "flush.size",
    "flush.bytes",
    "rotate.interval.ms",
    "partition.change",
    "schema.change",
    "partitioner.max.open.files",
)
_SIZE, _BYTES, _INTERVAL, _CHANGE, _SCHEMA, _FILES = range(6)
_CLOSED = -1
Numbers = Any
"""Arrays, numbers, or tuples of them, within compiled code."""
MOST_SCHEMAS = 64
"""With `interleave`, schemas with codes from here on never join a file of another."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What closes files; -1 for what does not.

    `flush_size`: records of a topic-partition, over all its encoded partitions. `flush_bytes`: payload bytes of one
    file. `interval_ms`: extracted time since the first record. `on_partition_change`: with an interval, a record of
    another encoded partition than the one before closes too. `max_open_files`: encoded partitions open at once.
    `interleave`: a file takes any schemas as long as the newest of them reads all others.
    """

    flush_size: int
    flush_bytes: int = -1
    interval_ms: int = -1
    on_partition_change: bool = True
    max_open_files: int = -1
    interleave: bool = False

    @property
    def by_content(self) -> bool:
        """Whether values, times or labels can close files before `flush_size` is reached; schemas left out."""
        return self.flush_bytes > 0 or self.interval_ms > 0 or self.max_open_files > 0


@dataclass(frozen=True, slots=True)
class Schemas:
    """How schema codes 0 to n - 1 get on with each other.

    `joins[file, record]`: whether a record may enter a file. `newer[a, b]`: the newer code of two; `reads[a]`: bit b
    is set where a reads data of b. The last two matter with `Rules.interleave` only.
    """

    joins: NDArray[np.bool_]
    newer: NDArray[np.int32]
    reads: NDArray[np.uint64]

    @classmethod
    def distinct(cls, count: int) -> Schemas:
        """Schemas of which each keeps to itself."""
        codes = np.arange(count, dtype=np.int32)
        own = np.uint64(1) << np.minimum(codes, MOST_SCHEMAS - 1).astype(np.uint64)
        return cls(np.eye(count, dtype=np.bool_), np.maximum(codes[:, None], codes[None, :]), own)


@dataclass(frozen=True, slots=True)
class Open:
    """What is open since the last cut.

    `records`: how many. `base_ms`: the first one's time. `label`: the last one's. Per label code: `schemas`, the newest
    schema of its file (-1 where none is open), `sizes`, its payload bytes, `present`, a bit for each of its schemas.
    """

    records: int = 0
    base_ms: int = 0
    label: int = -1
    schemas: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    sizes: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    present: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, dtype=np.uint64))

    @property
    def labels(self) -> NDArray[np.intp]:
        """The labels with an open file."""
        return np.flatnonzero(self.schemas != _CLOSED)

    def renumbered(self) -> Open:
        """With `labels` numbered from 0 in their order, and all others forgotten."""
        kept = self.labels
        label = int(np.searchsorted(kept, self.label)) if self.records and self.label in kept else -1
        return Open(self.records, self.base_ms, label, self.schemas[kept], self.sizes[kept], self.present[kept])


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
    """What the cutter looks at of a batch of `rows` records.

    `labels`: codes of encoded partitions, all 0 if None; the same label has the same code in every batch. `times`:
    extracted ones, where they count. `schemas`: codes, all 0 if None. `sizes`: payload bytes, where they count.
    `kept`: False for rows that enter no file. `lone`: a label that no partition change is seen from or to.
    """

    rows: int
    labels: NDArray[np.int32] | None = None
    times: NDArray[np.int64] | None = None
    schemas: NDArray[np.int32] | None = None
    sizes: NDArray[np.int64] | None = None
    kept: NDArray[np.bool_] | None = None
    lone: int = -2


def cut(state: Open, columns: Columns, rules: Rules, schemas: Schemas | None = None) -> tuple[list[Segment], Open]:
    """The segments of a batch, and what is open behind it.

    Handing over the same records in other batches never changes where the cuts are. `schemas`: how those of
    `Columns.schemas` get on; each keeps to itself if None.
    """
    rows = columns.rows
    if rows == 0:
        return [], state
    labels = _column(columns.labels, rows, np.int32)
    codes = _column(columns.schemas, rows, np.int32)
    if schemas is None:
        schemas = Schemas.distinct(max(int(codes.max()), int(state.schemas.max(initial=0))) + 1)
    files = _files(state, int(labels.max()) + 1)
    edges, reasons = np.empty(2 * rows, dtype=np.int64), np.empty(2 * rows, dtype=np.int64)
    found, (records, base, label) = _walk(
        (labels, _column(columns.times, rows, np.int64), codes, _column(columns.sizes, rows, np.int64)),
        np.ones(rows, dtype=np.bool_) if columns.kept is None else columns.kept,
        (schemas.joins, schemas.newer, schemas.reads),
        (
            max(rules.flush_size, 1),
            rules.flush_bytes,
            rules.interval_ms if columns.times is not None else -1,
            rules.on_partition_change,
            rules.max_open_files,
            rules.interleave,
            columns.lone,
        ),
        files,
        (state.records, state.base_ms, state.label, len(state.labels)),
        (edges, reasons),
    )
    return _segments(rows, edges[:found].tolist(), reasons[:found].tolist()), Open(records, base, label, *files)


def _column(given: NDArray[np.generic] | None, rows: int, kind: type) -> NDArray[np.generic]:
    return np.zeros(rows, dtype=kind) if given is None else np.ascontiguousarray(given, dtype=kind)


def _files(state: Open, labels: int) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint64]]:
    """Copies of a state's arrays, long enough for `labels` codes."""
    size = max(labels, len(state.schemas))
    schemas = np.full(size, _CLOSED, dtype=np.int32)
    sizes, present = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.uint64)
    known = len(state.schemas)
    schemas[:known], sizes[:known], present[:known] = state.schemas, state.sizes, state.present
    return schemas, sizes, present


def _segments(rows: int, edges: list[int], reasons: list[int]) -> list[Segment]:
    segments, row = [], 0
    for edge, reason in zip(edges, reasons, strict=True):
        segments.append(Segment(row, edge, _REASONS[reason]))
        row = edge
    if row < rows:
        segments.append(Segment(row, rows, None))
    return segments


@compiled
def _may_join(current: int, schema: int, present: Numbers, reads: Numbers) -> bool:
    """With `interleave`: whether a file whose newest schema is `current` takes a record of `schema`."""
    if schema >= MOST_SCHEMAS or current >= MOST_SCHEMAS:
        return False
    wanted = present | (np.uint64(1) << np.uint64(schema))
    return bool((wanted & ~reads) == np.uint64(0))


@compiled
def _walk(  # noqa: C901, PLR0912 - one loop
    columns: Numbers, kept: Numbers, tables: Numbers, numbers: Numbers, files: Numbers, scalars: Numbers, found: Numbers
) -> tuple[int, tuple[int, int, int]]:
    """Fill `found` (edges, reasons) and leave in `files` and `scalars` what stays open; how many cuts there are."""
    (labels, times, codes, payload), (joins, newer, reads), (schemas, sizes, present) = columns, tables, files
    (edges, reasons), (flush_size, flush_bytes, interval, on_change, most_open, interleave, lone) = found, numbers
    (records, base, previous, opened), count = scalars, 0
    for row in range(len(kept)):
        if not kept[row]:
            continue
        label, schema, reason = labels[row], codes[row], -1
        current = schemas[label]
        if records > 0:
            if interval > 0 and times[row] - base >= interval:
                reason = _INTERVAL
            elif interval > 0 and on_change and label != previous and lone != label and lone != previous:  # noqa: PLR1714 - compiled
                reason = _CHANGE
            elif current == _CLOSED:
                reason = _FILES if 0 < most_open <= opened else -1
            elif current != schema:
                newest = newer[current, schema]
                joined = joins[current, schema]
                if interleave:
                    joined = _may_join(current, schema, present[label], reads[newest])
                reason = -1 if joined else _SCHEMA
            if reason >= 0:
                edges[count], reasons[count] = row, reason
                count, records = count + 1, 0
        if records == 0:
            schemas[:] = _CLOSED
            base, opened, current = times[row], 0, _CLOSED
        if current == _CLOSED:
            schemas[label], sizes[label], present[label], opened = schema, 0, 0, opened + 1
        elif interleave:
            schemas[label] = newer[current, schema]
        present[label] |= np.uint64(1) << np.uint64(min(schema, MOST_SCHEMAS - 1))
        sizes[label] += payload[row]
        records, previous = records + 1, label
        if records >= flush_size or 0 < flush_bytes <= sizes[label]:
            edges[count], reasons[count] = row + 1, _SIZE if records >= flush_size else _BYTES
            count, records = count + 1, 0
    if records == 0:
        schemas[:] = _CLOSED
    return count, (records, base, previous)


def warm() -> None:
    """Compile, or load from numba's cache, what `cut` calls."""
    cut(Open(), Columns(1), Rules(1))
