"""Avro object container files, made by concatenating data that are encoded already.

The sync marker is derived from the object's key, and a block ends with the record that fills it to 64 KiB: the same
records under the same key are the same bytes, however they arrive.
"""

from __future__ import annotations

import bz2
import hashlib
import lzma
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import cramjam
import numpy as np

from penstock.formats.rows import contiguous
from penstock.spool import Budget
from penstock.zstandard import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from penstock.converters.base import Chunk, FileSchema, Kind
    from penstock.formats.base import Rows
    from penstock.spool import Spool

BLOCK_SIZE = 64 * 1024
_ZSTD_LEVEL = 3
_MAGIC = b"Obj\x01"


def _null(block: bytes) -> bytes:
    return block


def _deflate(block: bytes) -> bytes:
    compressor = zlib.compressobj(6, zlib.DEFLATED, -15)
    return compressor.compress(block) + compressor.flush()


def _snappy(block: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(block)) + zlib.crc32(block).to_bytes(4, "big")


def _zstandard(block: bytes) -> bytes:
    return zstd.compress(block, _ZSTD_LEVEL)


def _xz(block: bytes) -> bytes:
    """The dictionary need not be larger than a block: with xz's usual 8 MiB every block would cost 94 MB of memory."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 2 * BLOCK_SIZE}]
    return lzma.compress(block, lzma.FORMAT_XZ, filters=filters)


CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": _null,
    "deflate": _deflate,
    "snappy": _snappy,
    "bzip2": bz2.compress,
    "zstandard": _zstandard,
    "xz": _xz,
}


@dataclass(frozen=True, slots=True)
class AvroFormat:
    """`format.class` avro. `codec`: `avro.codec`."""

    codec: str = "null"
    budget: Budget = field(default_factory=Budget, compare=False)
    accepts: tuple[Kind, ...] = ("avro",)
    extension: str = ".avro"
    separator: bytes = b""

    def refuses(self, schema: FileSchema) -> None:
        """Nothing."""

    def encoder(self, schema: FileSchema, key: str) -> AvroEncoder:
        """An encoder whose header is still to be written."""
        marker = hashlib.blake2b(key.encode(), digest_size=16).digest()
        header = _header(schema.text, self.codec, marker)
        return AvroEncoder(header, marker, CODECS[self.codec], self.budget.spool())


@dataclass(slots=True)
class AvroEncoder:
    """Collects rows into blocks."""

    header: bytes
    marker: bytes
    compress: Callable[[bytes], bytes]
    pending: Spool
    _rows: int = 0

    def write(self, chunk: Chunk, rows: Rows) -> Iterator[bytes]:
        """The blocks that are full with these rows."""
        data, offsets = contiguous(chunk, rows)
        row, count = 0, len(offsets) - 1
        while row < count:
            end = _block_end(offsets, row, len(self.pending))
            self.pending.write(data[offsets[row] : offsets[min(end, count)]].data)
            self._rows += min(end, count) - row
            if end > count:
                return
            row = end
            yield from self._block()

    def finish(self) -> Iterator[bytes]:
        """The last block; a file without a record is still a file."""
        if self._rows:
            yield from self._block()
        if self.header:
            yield self.header

    def abandon(self) -> None:
        """No more than a block waits."""
        self.pending.clear()

    def _block(self) -> Iterator[bytes]:
        body = self.compress(b"".join(self.pending.take()))
        yield self.header + long_bytes(self._rows) + long_bytes(len(body))
        yield body
        yield self.marker
        self.header, self._rows = b"", 0


def _block_end(offsets: NDArray[np.int64], row: int, size: int) -> int:
    """The row behind the one that fills a block which holds `size` bytes; beyond the last if none does."""
    full = int(np.searchsorted(offsets, offsets[row] + BLOCK_SIZE - size, side="left"))
    return max(full, row + 1)


def _header(schema: str, codec: str, marker: bytes) -> bytes:
    """The file header: magic, metadata map, sync marker."""
    pairs = ((b"avro.schema", schema.encode()), (b"avro.codec", codec.encode()))
    metadata = b"".join(long_bytes(len(part)) + part for pair in pairs for part in pair)
    return _MAGIC + long_bytes(len(pairs)) + metadata + long_bytes(0) + marker


def long_bytes(number: int) -> bytes:
    """Avro's zigzag varint of a number that is not negative."""
    number <<= 1
    out = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits a byte
        out.append((number & 0x7F) | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
