"""One planned range's records into objects: sift, cut, encode, upload; and a receipt of it.

The files of a cut are closed together. Uploads go on while later records are encoded; a receipt covers the cuts up to
the first that failed, so what a commit says is always a prefix.
"""

from __future__ import annotations

from concurrent.futures import wait
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from penstock import cutter
from penstock.coding import LabelCodes, SchemaCodes, SchemaRules
from penstock.companions import CompanionFile, companion_key
from penstock.errors import DataError, PenstockError, UnavailableError
from penstock.formats.base import Indexed
from penstock.formats.blockgzip import INDEX_EXTENSION
from penstock.indexfile import IndexFile
from penstock.keylength import too_long
from penstock.mergedfile import MergedFile
from penstock.model import Commit, CommittedObject, Fault, Receipt
from penstock.openfile import Extent, OpenFile
from penstock.rejects import ClosedRejects, ErrorPolicy, Rejects
from penstock.sifting import sift
from penstock.spool import Budget

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from penstock.formats.base import Encoder, Format, Rows
    from penstock.keys import Layout
    from penstock.model import CutReason, Gather, PlannedRange, Records
    from penstock.rejects import RejectFile
    from penstock.sifting import Sieve, Sifted
    from penstock.store.upload import ObjectWriter, StoredObject

    ValueFile = OpenFile | MergedFile
    AnyFile = ValueFile | CompanionFile | RejectFile | IndexFile


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The parts that every range of a job shares. `open_object`: (key, its first offset) -> a writer for it.

    `keys`, `headers`: whether anything looks at those of the records.
    """

    sieve: Sieve
    format: Format
    layout: Layout
    rules: cutter.Rules
    open_object: Callable[[str, int], ObjectWriter]
    schema_rules: SchemaRules = field(default_factory=SchemaRules)
    errors: ErrorPolicy = field(default_factory=ErrorPolicy)
    keys: bool = False
    headers: bool = False
    budget: Budget = field(default_factory=Budget)

    @property
    def gather(self) -> Gather:
        """What the reader has to lay out."""
        return replace(self.sieve.converter.gather, keys=self.keys, headers=self.headers)


@dataclass(slots=True)
class _Open:
    """The open files of one encoded partition: of the values (not for tombstones), and beside it."""

    value: ValueFile | None
    companions: tuple[CompanionFile, ...]

    @property
    def files(self) -> list[ValueFile | CompanionFile]:
        return [*(() if self.value is None else (self.value,)), *self.companions]

    def write(self, sifted: Sifted, rows: Rows) -> None:
        """Append rows, of which there is at least one."""
        if self.value is not None:
            self.value.write(sifted.records, sifted.converted.chunk, rows)
        for file, prepared in zip(self.companions, sifted.prepared, strict=True):
            file.write(sifted.records, prepared, rows)


@dataclass(frozen=True, slots=True)
class _Cut:
    """A closed cut whose uploads may still be under way.

    `end`: the offset behind its last record; `taken`: how many records of the range stand before it.
    """

    end: int
    taken: int
    reason: CutReason
    files: tuple[tuple[AnyFile, Future[StoredObject]], ...]
    rejects: ClosedRejects


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
    _rejects: Rejects = field(init=False)
    _files: dict[str, _Open] = field(default_factory=dict)
    _cuts: list[_Cut] = field(default_factory=list)
    _last_offset: int = -1
    _seen: int = 0
    _taken: int = 0
    _ignored: int = 0

    def __post_init__(self) -> None:
        self._schemas = SchemaCodes(self.pipeline.sieve.converter.schema, self.pipeline.schema_rules)
        self._rejects = Rejects(self.pipeline.errors, self.pipeline.budget)

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
        try:
            self._end()
        except DataError as error:
            self.stop(error, error.offset)
        for opened in self._files.values():
            for file in opened.files:
                file.abandon()
        self._rejects.abandon()
        objects: list[CommittedObject] = []
        position, taken, skipped = self.planned.start, 0, 0
        wait([upload for cut in self._cuts for _, upload in cut.files])
        for cut in self._cuts:
            try:
                stored = [(file, upload.result()) for file, upload in cut.files]
                self._rejects.send(cut.rejects)
            except PenstockError as error:
                self.stop(error)
                return self._receipt(Commit(self.planned.tp, position, tuple(objects), skipped), taken)
            objects.extend(file.committed(result, cut.reason) for file, result in stored)
            position, taken, skipped = cut.end, cut.taken, skipped + cut.rejects.count
        if self.fault is None and not self._open.records:
            position, taken, skipped = max(position, self._seen), self._taken, skipped + self._ignored
        return self._receipt(Commit(self.planned.tp, position, tuple(objects), skipped), taken)

    def _end(self) -> None:
        """Close what the plan closes, and what is left of rejects where no record is open."""
        if self.fault is not None:
            return
        if self.planned.closing is not None and self._open.records:
            self._close_all(self.planned.closing)
        elif not self._open.records and self._rejects.count:
            self._close_all("flush")

    def _receipt(self, commit: Commit, taken: int) -> Receipt:
        has_times = self.pipeline.sieve.extractor is not None and self._open.records > 0
        return Receipt(
            replace(commit, hidden=commit.position - self.planned.start - taken),
            max(self._seen, commit.position),
            self._open.records,
            self._open.base_ms if has_times else None,
            self.fault,
            tuple(self._rejects.told),
        )

    def _write(self, records: Records) -> None:
        self._open = self._labels.tidied(self._open)
        sifted = sift(records, self.pipeline.sieve, self._labels, self.planned, self.now_ms)
        stop = None
        if sifted.reasons and not self.pipeline.errors.tolerate:
            stop = next((row for row, reason in sifted.reasons.items() if not reason.null), None)
        rows = len(records) if stop is None else stop
        if rows:
            self._cut_and_append(sifted, rows)
        if stop is not None:
            raise DataError(records.tp, int(records.offsets[stop]), sifted.reasons[stop].text)

    def _cut_and_append(self, sifted: Sifted, rows: int) -> None:
        """Rows before `rows` into files, closed where the rules say so."""
        chunk, kept = sifted.converted.chunk, sifted.kept()
        schemas = None if chunk.schemas is None else self._schemas.codes(chunk.schemas[:rows])
        columns = cutter.Columns(
            rows,
            sifted.labels[:rows],
            None if sifted.times is None else sifted.times[:rows],
            schemas,
            np.diff(chunk.offsets[: rows + 1]) if self.pipeline.rules.flush_bytes > 0 else None,
            None if kept is None else kept[:rows],
            sifted.tomb_label,
        )
        table = None if schemas is None else self._schemas.table()
        segments, self._open = cutter.cut(self._open, columns, self.pipeline.rules, table)
        for segment in segments:
            if segment.start < segment.end:
                self._append(sifted, kept, segment)
            if segment.cut is not None:
                if segment.cut == "schema.change" and segment.end < rows:
                    self._check_versions(sifted, segment.end)
                self._close_all(segment.cut)

    def _check_versions(self, sifted: Sifted, row: int) -> None:
        """Raise `DataError` where nobody can say whether a record may enter the file it would go to."""
        opened, codes = self._files.get(self._labels.names[sifted.labels[row]]), sifted.converted.chunk.schemas
        lacks = self.pipeline.schema_rules.lacks_version
        if lacks is None or opened is None or opened.value is None or codes is None:
            return
        schema = self.pipeline.sieve.converter.schema
        if lacks(schema(opened.value.code), schema(int(codes[row]))):
            reason = (
                "its schema has no version in the registry's subject, so schema.compatibility cannot compare it with "
                "that of the open file; register it there, or set schema.compatibility=NONE"
            )
            raise DataError(sifted.records.tp, int(sifted.records.offsets[row]), reason)

    def _append(self, sifted: Sifted, kept: NDArray[np.bool_] | None, segment: cutter.Segment) -> None:
        """Rows of a segment to the file of each label, in the order in which the labels appear."""
        for rows in _by_label(sifted.labels, kept, segment):
            first = rows.start if isinstance(rows, slice) else int(rows[0])
            self._opened(sifted, first).write(sifted, rows)
        within = {row: why for row, why in sifted.reasons.items() if segment.start <= row < segment.end}
        if within:
            self._rejects.add(sifted.records, within, self.pipeline.sieve.converter.gather)
        if sifted.ignored is not None:
            self._ignored += int(np.count_nonzero(sifted.ignored[segment.start : segment.end]))
        self._last_offset = int(sifted.records.offsets[segment.end - 1])
        self._taken += segment.end - segment.start

    def _opened(self, sifted: Sifted, row: int) -> _Open:
        """The open files of a row's encoded partition; the row is their first where there are none yet."""
        label = self._labels.names[sifted.labels[row]]
        opened = self._files.get(label)
        if opened is None:
            tomb = sifted.tombs is not None and bool(sifted.tombs[row])
            opened = self._files[label] = self._open_files(self._labels.shown(label), sifted, row, tomb=tomb)
        return opened

    def _open_files(self, label: str, sifted: Sifted, row: int, *, tomb: bool) -> _Open:
        pipeline, start = self.pipeline, int(sifted.records.offsets[row])
        key = self._checked(pipeline.layout.key(self.planned.tp, label, start), start)
        beside = []
        for companion, prepared in zip(pipeline.sieve.companions, sifted.prepared, strict=True):
            its_key = self._checked(companion_key(key, pipeline.layout.extension, companion), start)
            codes = prepared.converted.chunk.schemas
            code, writer = 0 if codes is None else int(codes[row]), pipeline.open_object(its_key, start)
            beside.append(
                CompanionFile(its_key, label, companion, code, writer, Extent(start), pipeline.budget.spool())
            )
        return _Open(None if tomb else self._open_value(key, label, sifted, row), tuple(beside))

    def _checked(self, key: str, start: int) -> str:
        """The key, if S3 takes it."""
        if (why := too_long(key)) is not None:
            raise DataError(self.planned.tp, start, why)
        return key

    def _open_value(self, key: str, label: str, sifted: Sifted, row: int) -> ValueFile:
        pipeline, converter, codes = self.pipeline, self.pipeline.sieve.converter, sifted.converted.chunk.schemas
        start = int(sifted.records.offsets[row])
        writer, extent = pipeline.open_object(key, start), Extent(start)

        def encoder(code: int) -> Encoder:
            return pipeline.format.encoder(converter.schema(code), key)

        if pipeline.schema_rules.interleave:
            return MergedFile(
                key, label, converter, encoder, self._schemas.newest, writer, extent, pipeline.budget.spool()
            )
        code = 0 if codes is None else int(codes[row])
        return OpenFile(key, label, code, converter, encoder(code), writer, extent)

    def _index(self, file: ValueFile | None) -> list[tuple[AnyFile, Future[StoredObject]]]:
        """The index object beside a closed file, where its format has one."""
        if file is None or not isinstance(file.encoder, Indexed):
            return []
        key = file.key.removesuffix(self.pipeline.layout.extension) + INDEX_EXTENSION
        index = IndexFile(key, file.encoded_partition, self.pipeline.open_object(key, file.extent.start), file.extent)
        return [(index, index.send(file.encoder.index()))]

    def _close_all(self, reason: CutReason) -> None:
        """Close every open file of the topic-partition together."""
        files: list[tuple[AnyFile, Future[StoredObject]]] = [
            (file, file.close()) for opened in self._files.values() for file in opened.files
        ]
        files += [each for opened in self._files.values() for each in self._index(opened.value)]
        rejects = self._rejects.close()
        rejects = replace(rejects, count=rejects.count + self._ignored)
        self._cuts.append(_Cut(self._last_offset + 1, self._taken, reason, (*files, *rejects.files), rejects))
        self._files, self._ignored = {}, 0
        if reason == self.planned.closing:
            self._open = cutter.Open()


def _by_label(labels: NDArray[np.int32], kept: NDArray[np.bool_] | None, segment: cutter.Segment) -> list[Rows]:
    """The rows of a segment that are kept, apart by label, in the order in which the labels appear."""
    codes = labels[segment.start : segment.end]
    if kept is None and (codes == codes[0]).all():
        return [slice(segment.start, segment.end)]
    rows = np.arange(segment.start, segment.end)
    if kept is not None:
        rows = rows[kept[rows]]
        codes = labels[rows]
    if not len(rows):
        return []
    order = np.argsort(codes, kind="stable")
    groups = np.split(rows[order], np.flatnonzero(np.diff(codes[order])) + 1)
    return [_slice_if_whole(group) for group in sorted(groups, key=lambda group: int(group[0]))]


def _slice_if_whole(rows: NDArray[np.intp]) -> Rows:
    """Ascending row numbers as a slice where none is missing between the first and the last."""
    first, last = int(rows[0]), int(rows[-1])
    return slice(first, last + 1) if last - first + 1 == len(rows) else rows
