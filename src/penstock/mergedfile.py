"""An open file of `schema.compatibility=UNION`: its schema is the newest among its records, known when it closes.

Until then the raw records wait in memory, or on local disk beyond a megabyte.
"""

from __future__ import annotations

import pickle
import tempfile
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

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
    from penstock.store.upload import ObjectWriter, StoredObject

_IN_MEMORY = 1024 * 1024


def _spool() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)


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
    _codes: set[int] = field(default_factory=set)
    _raw: IO[bytes] = field(default_factory=_spool)

    def write(self, records: Records, chunk: Chunk, rows: Rows) -> None:
        """Keep rows, of which there is at least one."""
        self.extent.add(records, rows)
        if chunk.schemas is not None:
            self._codes.update(np.unique(chunk.schemas[rows]).tolist())
        pickle.dump(_taken(records, rows), self._raw, protocol=5)

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
        self._raw.seek(0)
        while left:
            records: Records = pickle.load(self._raw)  # noqa: S301 - written above, in a file without a name
            made = self.converter.project(records, np.arange(len(records)), self.code)
            if made.faults:
                bad = made.faults[0]
                raise DataError(records.tp, int(records.offsets[bad.row]), bad.reason)
            for buffer in encoder.write(made.chunk, slice(0, len(records))):
                self.writer.write(buffer)
            left -= len(records)
        self._raw.close()
        for buffer in encoder.finish():
            self.writer.write(buffer)
        return self.writer.close({"records": str(self.extent.records)}, self.extent.end)

    def abandon(self) -> None:
        """The file is not wanted: nothing of it stays."""
        self._raw.close()
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
