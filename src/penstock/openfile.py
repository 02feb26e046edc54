"""An open file: one encoded partition between two cuts, on its way into an object."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from penstock.errors import DataError
from penstock.model import CommittedObject

if TYPE_CHECKING:
    from concurrent.futures import Future

    from penstock.converters.base import Chunk, Converter, FileSchema
    from penstock.formats.base import Encoder, Rows
    from penstock.model import CutReason, Records
    from penstock.store.upload import ObjectWriter, StoredObject


@dataclass(slots=True)
class Extent:
    """What a file holds: offsets `[start, end)`, how many records, between which Kafka timestamps."""

    start: int
    end: int = 0
    records: int = 0
    min_timestamp: int = np.iinfo(np.int64).max
    max_timestamp: int = np.iinfo(np.int64).min

    def add(self, records: Records, rows: Rows) -> None:
        """Count rows, of which there is at least one."""
        timestamps = records.timestamps[rows]
        self.min_timestamp = min(self.min_timestamp, int(timestamps.min()))
        self.max_timestamp = max(self.max_timestamp, int(timestamps.max()))
        self.records += len(timestamps)
        self.end = int(records.offsets[rows][-1]) + 1


@dataclass(slots=True)
class OpenFile:
    """Takes rows, encodes them and hands the bytes to the upload.

    `code`: the converter's code of the file's schema; rows of another one are projected to it.
    """

    key: str
    encoded_partition: str
    code: int
    converter: Converter
    encoder: Encoder
    writer: ObjectWriter
    extent: Extent

    def write(self, records: Records, chunk: Chunk, rows: Rows) -> None:
        """Append rows, of which there is at least one.

        Raises:
            DataError: a row cannot be projected to the file's schema.
        """
        self.extent.add(records, rows)
        for part, mine in projected(self.converter, records, chunk, rows, self.code):
            for buffer in self.encoder.write(part, mine):
                self.writer.write(buffer)

    def close(self) -> Future[StoredObject]:
        """Write the format's end and let the upload finish."""
        for buffer in self.encoder.finish():
            self.writer.write(buffer)
        return self.writer.close({"records": str(self.extent.records)}, self.extent.end)

    def abandon(self) -> None:
        """The file is not wanted: nothing of it stays."""
        self.encoder.abandon()
        self.writer.abandon()

    def committed(self, stored: StoredObject, reason: CutReason) -> CommittedObject:
        """This file as a commit names it."""
        schema = self.converter.schema(self.code)
        return committed(self.key, self.encoded_partition, self.extent, schema, stored, reason)


def committed(
    key: str, encoded_partition: str, extent: Extent, schema: FileSchema, stored: StoredObject, reason: CutReason
) -> CommittedObject:
    """An object as a commit names it."""
    return CommittedObject(
        key,
        extent.start,
        extent.end,
        extent.records,
        stored.size,
        stored.etag,
        stored.crc32c,
        encoded_partition,
        schema.fingerprint,
        extent.min_timestamp,
        extent.max_timestamp,
        reason,
    )


def projected(converter: Converter, records: Records, chunk: Chunk, rows: Rows, code: int) -> list[tuple[Chunk, Rows]]:
    """The rows under the schema of `code`: as they are where they have it, projected where they do not."""
    if chunk.schemas is None or not (differs := chunk.schemas[rows] != code).any():
        return [(chunk, rows)]
    numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    edges = [0, *(np.flatnonzero(differs[1:] != differs[:-1]) + 1).tolist(), len(numbers)]
    parts: list[tuple[Chunk, Rows]] = []
    for start, end in pairwise(edges):
        mine = numbers[start:end]
        if not differs[start]:
            parts.append((chunk, mine))
            continue
        made = converter.project(records, mine, code)
        if made.faults:
            bad = made.faults[0]
            raise DataError(records.tp, int(records.offsets[mine[bad.row]]), bad.reason)
        parts.append((made.chunk, slice(0, len(mine))))
    return parts
