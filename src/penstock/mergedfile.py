"""An open file of `schema.compatibility=UNION`: its schema is the newest among its records, known when it closes.

Until then the raw records wait in the task's budget of memory, or on local disk beyond it.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from penstock.errors import DataError
from penstock.formats.rows import contiguous
from penstock.model import Records, Slices
from penstock.openfile import committed

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from penstock.converters.base import Chunk, Converter
    from penstock.formats.base import Encoder, Rows
    from penstock.model import CommittedObject, CutReason
    from penstock.openfile import Extent
    from penstock.spool import Spool
    from penstock.store.upload import ObjectWriter, StoredObject


@dataclass(slots=True)
class MergedFile:
    """Takes rows of several schemas. `newest`: the newest of some of the converter's codes."""

    key: str
    encoded_partition: str
    converter: Converter
    encoder: Callable[[int], Encoder]
    newest: Callable[[set[int]], int]
    writer: ObjectWriter
    extent: Extent
    raw: Spool
    _codes: set[int] = field(default_factory=set)

    def write(self, records: Records, chunk: Chunk, rows: Rows) -> None:
        """Keep rows, of which there is at least one."""
        self.extent.add(records, rows)
        if chunk.schemas is not None:
            self._codes.update(np.unique(chunk.schemas[rows]).tolist())
        pickle.dump(_taken(records, rows), self.raw, protocol=5)

    @property
    def code(self) -> int:
        """The code of the newest schema so far."""
        return self.newest(self._codes) if self._codes else 0

    def close(self) -> Future[StoredObject]:
        """Encode everything under one schema and let the upload finish.

        Raises:
            DataError: a row cannot be projected to the newest schema.
        """
        encoder, left = self.encoder(self.code), self.extent.records
        raw = self.raw.reader()
        while left:
            records: Records = pickle.load(raw)  # noqa: S301 - written above, in a file without a name
            made = self.converter.project(records, np.arange(len(records)), self.code)
            if made.faults:
                bad = made.faults[0]
                raise DataError(records.tp, int(records.offsets[bad.row]), bad.reason)
            for buffer in encoder.write(made.chunk, slice(0, len(records))):
                self.writer.write(buffer)
            left -= len(records)
        for buffer in encoder.finish():
            self.writer.write(buffer)
        return self.writer.close({"records": str(self.extent.records)}, self.extent.end)

    def abandon(self) -> None:
        """The file is not wanted: nothing of it stays."""
        self.raw.clear()
        self.writer.abandon()

    def committed(self, stored: StoredObject, reason: CutReason) -> CommittedObject:
        """This file as a commit names it."""
        schema = self.converter.schema(self.code)
        return committed(self.key, self.encoded_partition, self.extent, schema, stored, reason)


def _taken(records: Records, rows: Rows) -> Records:
    """Rows of a batch as a batch of their own."""
    data, offsets = contiguous(records.values, rows)
    start = int(offsets[0])
    valid = None if records.values.valid is None else records.values.valid[rows]
    values = Slices(data[start : int(offsets[-1])], offsets - start, valid)
    ids = None if records.schema_ids is None else records.schema_ids[rows]
    return Records(records.tp, records.offsets[rows], records.timestamps[rows], values, records.next_offset, ids)
