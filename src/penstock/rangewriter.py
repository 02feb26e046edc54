"""One planned range's records into objects: convert, label, cut, encode, upload; and a receipt of it.

The files of a cut are closed together. Uploads go on while later records are encoded; a receipt covers the cuts up to
the first that failed, so what a commit says is always a prefix.
"""

from __future__ import annotations

import itertools
from concurrent.futures import wait
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from penstock import cutter
from penstock.batch import RecordBatch
from penstock.coding import LabelCodes, SchemaCodes, SchemaRules
from penstock.converters.base import NULL_VALUE
from penstock.errors import DataError, PenstockError, UnavailableError
from penstock.mergedfile import MergedFile
from penstock.model import Commit, CommittedObject, Fault, Receipt
from penstock.openfile import Extent, OpenFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from penstock.converters.base import Converted, Converter
    from penstock.formats.base import Format, Rows
    from penstock.keys import Layout
    from penstock.model import CutReason, Gather, PlannedRange, Records
    from penstock.partitioners.base import Extractor, Labels, Partitioner
    from penstock.store.upload import ObjectWriter, StoredObject

    AnyFile = OpenFile | MergedFile


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The parts that every range of a job shares. `open_object`: (key, its first offset) -> a writer for it.

    `extractor`: None where no time is needed. `null_values`: what a record without a value does. `keys`, `headers`:
    whether anything looks at them.
    """

    converter: Converter
    format: Format
    partitioner: Partitioner
    layout: Layout
    rules: cutter.Rules
    open_object: Callable[[str, int], ObjectWriter]
    extractor: Extractor | None = None
    schema_rules: SchemaRules = field(default_factory=SchemaRules)
    null_values: Literal["fail", "ignore"] = "fail"
    keys: bool = False
    headers: bool = False

    @property
    def gather(self) -> Gather:
        """What the reader has to lay out."""
        return replace(self.converter.gather, keys=self.keys, headers=self.headers)


@dataclass(frozen=True, slots=True)
class _Cut:
    """A closed cut whose uploads may still be under way. `end`: the offset behind its last record."""

    end: int
    reason: CutReason
    files: tuple[tuple[AnyFile, Future[StoredObject]], ...]
    skipped: int


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch on its way into files: its rows in the format's kind, with the codes of their encoded partitions."""

    records: Records
    converted: Converted
    labels: NDArray[np.int32]
    kept: NDArray[np.bool_] | None = None


@dataclass(slots=True)
class RangeWriter:
    """Takes a range's records in offset order, in any batches, and reports what became of them."""

    planned: PlannedRange
    pipeline: Pipeline
    now_ms: int
    fault: Fault | None = None
    _open: cutter.Open = field(default_factory=cutter.Open)
    _labels: LabelCodes = field(default_factory=LabelCodes)
    _schemas: SchemaCodes = field(init=False)
    _files: dict[str, AnyFile] = field(default_factory=dict)
    _cuts: list[_Cut] = field(default_factory=list)
    _last_offset: int = -1
    _seen: int = 0
    _skipped: int = 0

    def __post_init__(self) -> None:
        self._schemas = SchemaCodes(self.pipeline.converter.schema, self.pipeline.schema_rules)

    def write(self, records: Records) -> None:
        """The next records of the range. Nothing happens any more once a fault stopped it."""
        if self.fault is not None:
            return
        try:
            if len(records):
                self._write(records)
        except DataError as error:
            self.stop(error, error.offset)
        except PenstockError as error:
            self.stop(error)
        if self.fault is None:
            self._seen = records.next_offset

    def stop(self, error: PenstockError, offset: int | None = None) -> None:
        """End the range here: what is cut already counts, the rest does not."""
        self.fault = Fault(str(error), isinstance(error, UnavailableError) and error.transient, offset)

    def finish(self) -> Receipt:
        """Wait for the uploads and report; the tail that no cut closed is dropped."""
        if self.planned.closing is not None and self.fault is None and self._open.records:
            self._close_all(self.planned.closing)
        for file in self._files.values():
            file.abandon()
        objects: list[CommittedObject] = []
        position, skipped = self.planned.start, 0
        wait([upload for cut in self._cuts for _, upload in cut.files])
        for cut in self._cuts:
            try:
                stored = [(file, upload.result()) for file, upload in cut.files]
            except PenstockError as error:
                self.stop(error)
                return self._receipt(position, objects, skipped)
            objects.extend(file.committed(result, cut.reason) for file, result in stored)
            position, skipped = cut.end, skipped + cut.skipped
        if self.fault is None and not self._open.records:
            position, skipped = max(position, self._seen), skipped + self._skipped
        return self._receipt(position, objects, skipped)

    def _receipt(self, position: int, objects: list[CommittedObject], skipped: int) -> Receipt:
        has_times = self.pipeline.extractor is not None and self._open.records > 0
        return Receipt(
            Commit(self.planned.tp, position, tuple(objects), skipped),
            max(self._seen, position),
            self._open.records,
            self._open.base_ms if has_times else None,
            self.fault,
        )

    def _write(self, records: Records) -> None:
        pipeline = self.pipeline
        converted = pipeline.converter.convert(records)
        batch = RecordBatch(records, converted, pipeline.converter, self.planned, self.now_ms, pipeline.extractor)
        labels = pipeline.partitioner.encode(batch)
        nulls = converted.nulls
        row, reason = _first_bad(converted, labels, ignored=pipeline.null_values == "ignore")
        rows = len(records) if row is None else row
        self._open = self._labels.tidied(self._open)
        kept = None if nulls is None else ~nulls
        taken = _Batch(records, converted, self._labels.codes(labels, len(records)), kept)
        if rows:
            self._cut_and_append(taken, batch, rows)
        if row is not None:
            raise DataError(records.tp, int(records.offsets[row]), reason)

    def _cut_and_append(self, taken: _Batch, batch: RecordBatch, rows: int) -> None:
        """Rows before `rows` into files, closed where the rules say so."""
        pipeline, chunk = self.pipeline, taken.converted.chunk
        schemas = None if chunk.schemas is None else self._schemas.codes(chunk.schemas[:rows])
        columns = cutter.Columns(
            rows,
            taken.labels[:rows],
            None if pipeline.extractor is None else batch.times.ms[:rows],
            schemas,
            np.diff(chunk.offsets[: rows + 1]) if pipeline.rules.flush_bytes > 0 else None,
            None if taken.kept is None else taken.kept[:rows],
        )
        table = None if schemas is None else self._schemas.table()
        segments, self._open = cutter.cut(self._open, columns, pipeline.rules, table)
        for segment in segments:
            if segment.start < segment.end:
                self._append(taken, segment)
            if segment.cut is not None:
                self._close_all(segment.cut)

    def _append(self, taken: _Batch, segment: cutter.Segment) -> None:
        """Rows of a segment to the file of each label, in the order in which the labels appear."""
        for rows in _by_label(taken, segment):
            first = rows.start if isinstance(rows, slice) else int(rows[0])
            self._file(taken, first).write(taken.records, taken.converted.chunk, rows)
        if taken.kept is not None:
            self._skipped += int(np.count_nonzero(~taken.kept[segment.start : segment.end]))
        self._last_offset = int(taken.records.offsets[segment.end - 1])

    def _file(self, taken: _Batch, row: int) -> AnyFile:
        """The open file of a row's encoded partition; the row is its first where there is none yet."""
        label = self._labels.names[taken.labels[row]]
        file = self._files.get(label)
        if file is None:
            file = self._files[label] = self._open_file(label, taken, row)
        return file

    def _open_file(self, label: str, taken: _Batch, row: int) -> AnyFile:
        pipeline, chunk = self.pipeline, taken.converted.chunk
        start = int(taken.records.offsets[row])
        key = pipeline.layout.key(self.planned.tp, label, start)
        writer, extent = pipeline.open_object(key, start), Extent(start)
        if pipeline.schema_rules.interleave:

            def encoder(code: int):  # type: ignore[no-untyped-def]  # noqa: ANN202
                return pipeline.format.encoder(pipeline.converter.schema(code), key)

            return MergedFile(key, label, pipeline.converter, encoder, self._schemas.newest, writer, extent)
        code = 0 if chunk.schemas is None else int(chunk.schemas[row])
        own = pipeline.format.encoder(pipeline.converter.schema(code), key)
        return OpenFile(key, label, code, pipeline.converter, own, writer, extent)

    def _close_all(self, reason: CutReason) -> None:
        """Close every open file of the topic-partition together."""
        files = tuple((file, file.close()) for file in self._files.values())
        self._cuts.append(_Cut(self._last_offset + 1, reason, files, self._skipped))
        self._files, self._skipped = {}, 0
        if reason == self.planned.closing:
            self._open = cutter.Open()


def _by_label(taken: _Batch, segment: cutter.Segment) -> list[Rows]:
    """The rows of a segment that are kept, apart by label, in the order in which the labels appear."""
    codes = taken.labels[segment.start : segment.end]
    if taken.kept is None and (codes == codes[0]).all():
        return [slice(segment.start, segment.end)]
    rows = np.arange(segment.start, segment.end)
    if taken.kept is not None:
        rows = rows[taken.kept[rows]]
        codes = taken.labels[rows]
    if not len(rows):
        return []
    order = np.argsort(codes, kind="stable")
    groups = np.split(rows[order], np.flatnonzero(np.diff(codes[order])) + 1)
    return [_slice_if_whole(group) for group in sorted(groups, key=lambda group: int(group[0]))]


def _slice_if_whole(rows: NDArray[np.intp]) -> Rows:
    """Ascending row numbers as a slice where none is missing between the first and the last."""
    first, last = int(rows[0]), int(rows[-1])
    return slice(first, last + 1) if last - first + 1 == len(rows) else rows


def _first_bad(converted: Converted, labels: Labels, *, ignored: bool) -> tuple[int | None, str]:
    """The first row that cannot be written, and why. `ignored`: null values are left out, and not asked for more."""
    nulls, found = converted.nulls, []
    if nulls is not None and not ignored:
        found.append((int(np.argmax(nulls)), NULL_VALUE))
    found += [(each.row, each.reason) for each in converted.faults[:1]]
    refused = (each for each in labels.refusals if nulls is None or not nulls[each.row])
    found += [(each.row, each.reason) for each in itertools.islice(refused, 1)]
    return min(found, key=lambda each: each[0], default=(None, ""))
