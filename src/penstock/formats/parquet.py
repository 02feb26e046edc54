"""Parquet files: Avro data as columns under the types of their schema, JSON documents under types found in them.

Rows wait in the task's budget of memory until there are enough for a row group. Where groups end depends on the rows
alone; the file's columns are those of its Avro schema, or those that fit all its documents (docs/formats.md).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.columnar.arrays import batch
from penstock.columnar.schema import Columns, NoColumnsError
from penstock.formats.inference import Shape
from penstock.formats.rows import contiguous
from penstock.spool import Budget, Spool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from penstock.converters.base import Chunk, FileSchema, Kind
    from penstock.formats.base import Encoder, Rows

GROUP_SIZE = 32 * 1024 * 1024
"""Bytes of Avro data, or of JSON, in a row group."""
_PIECE_SIZE = 4 * 1024 * 1024  # of a row group, what is decoded at once
_CODECS: dict[str, tuple[str, str]] = {
    "none": ("NONE", ".parquet"),
    "snappy": ("SNAPPY", ".snappy.parquet"),
    "gzip": ("GZIP", ".gz.parquet"),
    "brotli": ("BROTLI", ".br.parquet"),
    "lz4": ("LZ4", ".lz4raw.parquet"),
    "lz4_raw": ("LZ4", ".lz4raw.parquet"),
    "zstd": ("ZSTD", ".zstd.parquet"),
}
CODECS = tuple(_CODECS)
_LENGTH = np.dtype("<i4")


@functools.lru_cache(maxsize=256)
def columns_of(schema: str) -> Columns | str:
    """What data of an Avro schema are read with, or why columns cannot hold them."""
    try:
        return Columns.compile(schema)
    except NoColumnsError as error:
        return str(error)


@dataclass(frozen=True, slots=True)
class ParquetFormat:
    """`format.class` parquet. `codec`: `parquet.codec`."""

    codec: str = "snappy"
    budget: Budget = field(default_factory=Budget, compare=False)
    group_size: int = GROUP_SIZE
    accepts: tuple[Kind, ...] = ("avro", "json")
    separator: bytes = b""

    @property
    def extension(self) -> str:
        """With the codec's name, as the connector has it."""
        return _CODECS[self.codec][1]

    def refuses(self, schema: FileSchema) -> str | None:
        """Records within themselves and records without a field have no columns."""
        found = columns_of(schema.text) if schema.text else None
        return found if isinstance(found, str) else None

    def encoder(self, schema: FileSchema, key: str) -> Encoder:  # noqa: ARG002 - nothing of the key enters the file
        """For Avro data where there is a schema, for JSON documents where there is none."""
        codec = _CODECS[self.codec][0]
        if not schema.text:
            return DocumentsEncoder(codec, self.group_size, self.budget.spool())
        columns = columns_of(schema.text)
        if isinstance(columns, str):
            raise NoColumnsError(columns)
        return ColumnsEncoder(_File(codec, columns.arrow, schema.text), columns, self.group_size, self.budget.spool())


class _Sink:
    """What pyarrow writes to: keeps bytes until they are taken."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self.closed = False

    def write(self, data: Any) -> int:  # noqa: ANN401 - a buffer
        piece = bytes(data)
        self._pieces.append(piece)
        self._size += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        self.closed = True

    def taken(self) -> list[bytes]:
        pieces, self._pieces = self._pieces, []
        return pieces


class _File:
    """A Parquet file on its way: row groups in, bytes out."""

    def __init__(self, codec: str, schema: pa.Schema, avro: str) -> None:
        self._sink = _Sink()
        self._writer = pq.ParquetWriter(self._sink, schema, compression=codec, store_schema=False)
        self._avro = avro

    def group(self, rows: pa.Table) -> list[bytes]:
        """Write a row group."""
        self._writer.write_table(rows, row_group_size=max(rows.num_rows, 1))
        return self._sink.taken()

    def end(self) -> list[bytes]:
        """Write the footer, with the Avro schema under the name that Java's writer uses."""
        if self._avro:
            self._writer.add_key_value_metadata({"parquet.avro.schema": self._avro})
        self._writer.close()
        return self._sink.taken()


@dataclass(slots=True)
class _Group:
    """Rows that wait for their row group: their bytes, and their lengths."""

    spool: Spool
    lengths: list[NDArray[np.int32]] = field(default_factory=list)

    def add(self, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        """Append rows."""
        self.spool.write(data[offsets[0] : offsets[-1]].data)
        self.lengths.append(np.diff(offsets).astype(_LENGTH))

    def take(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """All rows: their bytes, and offsets into them."""
        lengths = np.concatenate([*self.lengths, np.empty(0, dtype=_LENGTH)])
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        self.lengths = []
        data, at = np.empty(len(self.spool), dtype=np.uint8), 0
        for piece in self.spool.pieces():
            data[at : at + len(piece)] = piece
            at += len(piece)
        return data, offsets


def groups(offsets: NDArray[np.int64], size: int, limit: int) -> Iterator[tuple[int, int, bool]]:
    """Rows `[start, end)` of one group after the other, and whether the group is full with them.

    A group ends with the row that fills it to `limit` bytes. `size`: what the group has before the first row.
    """
    row, count = 0, len(offsets) - 1
    while row < count:
        end = max(int(np.searchsorted(offsets, offsets[row] + limit - size, side="left")), row + 1)
        yield row, min(end, count), end <= count
        row, size = end, 0


def _pieces(lines: bytes) -> Iterator[bytes]:
    """Whole lines, so many at once as may become Python values."""
    at = 0
    while at < len(lines):
        end = lines.find(b"\n", min(at + _PIECE_SIZE, len(lines)) - 1) + 1
        yield lines[at:end]
        at = end


@dataclass(slots=True)
class ColumnsEncoder:
    """Avro data as columns."""

    file: _File
    columns: Columns
    limit: int
    spool: Spool
    _group: _Group = field(init=False)

    def __post_init__(self) -> None:
        self._group = _Group(self.spool)

    def write(self, chunk: Chunk, rows: Rows) -> Iterator[bytes]:
        """The row groups that are full with these rows."""
        data, offsets = contiguous(chunk, rows)
        for start, end, full in groups(offsets, len(self.spool), self.limit):
            self._group.add(data, offsets[start : end + 1])
            if full:
                yield from self._written()

    def finish(self) -> Iterator[bytes]:
        """The last row group and the footer."""
        if self._group.lengths:
            yield from self._written()
        yield from self.file.end()

    def abandon(self) -> None:
        """The file is not wanted."""
        self.spool.clear()

    def _written(self) -> list[bytes]:
        data, offsets = self._group.take()
        pieces = [np.arange(start, end) for start, end, _ in groups(offsets, 0, _PIECE_SIZE)]
        batches = [batch(self.columns, data, offsets, rows) for rows in pieces]
        return self.file.group(pa.Table.from_batches(batches, self.columns.arrow))


@dataclass(slots=True)
class DocumentsEncoder:
    """JSON documents as columns: all of them wait, since any may have another type for a column."""

    codec: str
    limit: int
    spool: Spool
    _shape: Shape = field(default_factory=Shape)
    _ends: list[int] = field(default_factory=list)
    _size: int = 0

    def write(self, chunk: Chunk, rows: Rows) -> tuple[()]:
        """Nothing is ready before the end."""
        data, offsets = contiguous(chunk, rows)
        for start, end, full in groups(offsets, self._size, self.limit):
            lines = data[offsets[start] : offsets[end]]
            self._shape.see(lines.tobytes())
            self.spool.write(lines.data)
            self._size = 0 if full else self._size + len(lines)
            if full:
                self._ends.append(len(self.spool))
        return ()

    def finish(self) -> Iterator[bytes]:
        """All row groups and the footer."""
        file, lines = _File(self.codec, self._shape.schema(), ""), self.spool.reader()
        start = 0
        for end in (*self._ends, None):
            part = lines.read(end - start) if end is not None else lines.read()
            start = end or start
            if part:
                yield from file.group(pa.concat_tables([self._shape.table(piece) for piece in _pieces(part)]))
        yield from file.end()

    def abandon(self) -> None:
        """The file is not wanted."""
        self.spool.clear()
