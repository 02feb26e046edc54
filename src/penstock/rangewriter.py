"""One planned range's records into objects: convert, label, cut, encode, upload; and a receipt of it.

The files of a cut are closed together. Uploads go on while later records are encoded; a receipt covers the cuts up to
the first that failed, so what a commit says is always a prefix.
"""

from __future__ import annotations

from concurrent.futures import wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from penstock import cutter
from penstock.errors import PenstockError, UnavailableError
from penstock.model import Commit, CommittedObject, Fault, Receipt

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from penstock.converters.base import Chunk, Converter
    from penstock.formats.base import Encoder, Format
    from penstock.keys import Layout
    from penstock.model import CutReason, PlannedRange, Records
    from penstock.partitioners.base import Labels, Partitioner
    from penstock.store.upload import ObjectWriter, StoredObject


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The parts that every range of a job shares. `open_object`: (key, its first offset) -> a writer for it."""

    converter: Converter
    format: Format
    partitioner: Partitioner
    layout: Layout
    rules: cutter.Rules
    open_object: Callable[[str, int], ObjectWriter]


@dataclass(slots=True)
class _File:
    """An open file: one encoded partition between two cuts."""

    key: str
    encoded_partition: str
    schema: str
    encoder: Encoder
    writer: ObjectWriter
    start: int
    end: int = 0
    records: int = 0
    min_timestamp: int = np.iinfo(np.int64).max
    max_timestamp: int = np.iinfo(np.int64).min

    def write(self, records: Records, chunk: Chunk, rows: slice | NDArray[np.int64], count: int) -> None:
        """Append rows, of which there is at least one."""
        for buffer in self.encoder.write(chunk, rows):
            self.writer.write(buffer)
        timestamps = records.timestamps[rows]
        self.min_timestamp = min(self.min_timestamp, int(timestamps.min()))
        self.max_timestamp = max(self.max_timestamp, int(timestamps.max()))
        self.records += count
        self.end = int(records.offsets[rows][-1]) + 1

    def close(self) -> Future[StoredObject]:
        """Write the format's end and let the upload finish."""
        for buffer in self.encoder.finish():
            self.writer.write(buffer)
        return self.writer.close({"records": str(self.records)}, self.end)

    def committed(self, stored: StoredObject, reason: CutReason) -> CommittedObject:
        """This file as a commit names it."""
        return CommittedObject(
            self.key,
            self.start,
            self.end,
            self.records,
            stored.size,
            stored.etag,
            stored.crc32c,
            self.encoded_partition,
            self.schema,
            self.min_timestamp,
            self.max_timestamp,
            reason,
        )


@dataclass(frozen=True, slots=True)
class _Cut:
    """A closed cut whose uploads may still be under way. `end`: the offset behind its last record."""

    end: int
    reason: CutReason
    files: tuple[tuple[_File, Future[StoredObject]], ...]


@dataclass(slots=True)
class RangeWriter:
    """Takes a range's records in offset order, in any batches, and reports what became of them."""

    planned: PlannedRange
    pipeline: Pipeline
    fault: Fault | None = None
    _open: cutter.Open = field(default_factory=cutter.Open)
    _open_timestamp: int | None = None
    _files: dict[str, _File] = field(default_factory=dict)
    _cuts: list[_Cut] = field(default_factory=list)
    _last_offset: int = -1
    _seen: int = 0

    def write(self, records: Records) -> None:
        """The next records of the range. Nothing happens any more once a fault stopped it."""
        if self.fault is not None:
            return
        try:
            if len(records):
                self._write(records)
        except PenstockError as error:
            self.stop(error)
        if self.fault is None:
            self._seen = records.next_offset

    def stop(self, error: PenstockError, offset: int | None = None) -> None:
        """End the range here: what is cut already counts, the rest does not."""
        self.fault = Fault(str(error), isinstance(error, UnavailableError) and error.transient, offset)

    def finish(self) -> Receipt:
        """Wait for the uploads and report; the tail that no cut closed is dropped."""
        if self.planned.forced and self.fault is None and self._open.records:
            self._cut("forced")
        for file in self._files.values():
            file.writer.abandon()
        objects: list[CommittedObject] = []
        position = self.planned.start
        wait([upload for cut in self._cuts for _, upload in cut.files])
        for cut in self._cuts:
            try:
                stored = [(file, upload.result()) for file, upload in cut.files]
            except PenstockError as error:
                self.stop(error)
                return self._receipt(position, objects)
            objects.extend(file.committed(result, cut.reason) for file, result in stored)
            position = cut.end
        if self.fault is None and not self._open.records:
            position = max(position, self._seen)
        return self._receipt(position, objects)

    def _receipt(self, position: int, objects: list[CommittedObject]) -> Receipt:
        return Receipt(
            Commit(self.planned.tp, position, tuple(objects)),
            max(self._seen, position),
            self._open.records,
            self._open_timestamp,
            self.fault,
        )

    def _write(self, records: Records) -> None:
        converted = self.pipeline.converter.convert(records)
        rows = converted.faults[0].row if converted.faults else len(records)
        labels = self.pipeline.partitioner.encode(records)
        schemas = converted.chunk.schemas
        columns = cutter.Columns(rows, None if schemas is None else schemas[:rows])
        segments, self._open = cutter.cut(self._open, columns, self.pipeline.rules)
        for segment in segments:
            if segment.start < segment.end:
                self._append(records, converted.chunk, labels, segment)
            if segment.cut is not None:
                self._cut(segment.cut)
        if self._open.records == 0:
            self._open_timestamp = None
        if converted.faults:
            bad = converted.faults[0]
            offset = int(records.offsets[bad.row])
            self.fault = Fault(f"{records.tp}@{offset}: {bad.reason}", passing=False, offset=offset)

    def _append(self, records: Records, chunk: Chunk, labels: Labels, segment: cutter.Segment) -> None:
        """Rows of a segment to the file of each label, in the order in which the labels appear."""
        whole = slice(segment.start, segment.end)
        if self._open_timestamp is None:
            self._open_timestamp = int(records.timestamps[segment.start])
        if labels.codes is None:
            self._file(labels.names[0], records, chunk, segment.start).write(
                records, chunk, whole, segment.end - segment.start
            )
        else:
            codes = labels.codes[whole]
            _, first = np.unique(codes, return_index=True)
            for at in np.sort(first):
                rows = np.flatnonzero(codes == codes[at]) + segment.start
                file = self._file(labels.names[codes[at]], records, chunk, int(rows[0]))
                file.write(records, chunk, rows, len(rows))
        self._last_offset = int(records.offsets[segment.end - 1])

    def _file(self, encoded_partition: str, records: Records, chunk: Chunk, row: int) -> _File:
        file = self._files.get(encoded_partition)
        if file is None:
            start = int(records.offsets[row])
            key = self.pipeline.layout.key(self.planned.tp, encoded_partition, start)
            schema = self.pipeline.converter.schema(0 if chunk.schemas is None else int(chunk.schemas[row]))
            encoder = self.pipeline.format.encoder(schema, key)
            writer = self.pipeline.open_object(key, start)
            file = _File(key, encoded_partition, schema.fingerprint, encoder, writer, start)
            self._files[encoded_partition] = file
        return file

    def _cut(self, reason: CutReason) -> None:
        """Close every open file of the topic-partition together."""
        files = tuple((file, file.close()) for file in self._files.values())
        self._cuts.append(_Cut(self._last_offset + 1, reason, files))
        self._files = {}
        self._open_timestamp = None
        if reason == "forced":
            self._open = cutter.Open()
