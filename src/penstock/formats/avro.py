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
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import cramjam
import numpy as np

from penstock.formats.rows import contiguous
from penstock.spool import Budget
from penstock.zstandard import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from penstock.converters.base import Chunk, FileSchema, Kind
    from penstock.formats.base import Rows
    from penstock.spool import Spool

Block: TypeAlias = bytes | memoryview
BLOCK_SIZE = 64 * 1024
_ZSTD_LEVEL = 3
_MAGIC = b"Obj\x01"


def _deflate(block: Block) -> bytes:
    compressor = zlib.compressobj(6, zlib.DEFLATED, -15)
    return compressor.compress(block) + compressor.flush()


def _snappy(block: Block) -> bytes:
    return bytes(cramjam.snappy.compress_raw(block)) + zlib.crc32(block).to_bytes(4, "big")


def _zstandard(block: Block) -> bytes:
    return zstd.compress(block, _ZSTD_LEVEL)


def _xz(block: Block) -> bytes:
    """The dictionary need not be larger than a block: with xz's usual 8 MiB every block would cost 94 MB of memory."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 2 * BLOCK_SIZE}]
    return lzma.compress(block, lzma.FORMAT_XZ, filters=filters)


CODECS: dict[str, Callable[[Block], bytes] | None] = {
    "null": None,
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
    """Collects rows into blocks. `before`: what stands before the next one, the header or the marker of the last."""

    before: bytes
    marker: bytes
    compress: Callable[[Block], bytes] | None
    pending: Spool
    _rows: int = 0

    def write(self, chunk: Chunk, rows: Rows) -> Iterator[Block]:
        """The blocks that are full with these rows; a view is gone when the next one is asked for."""
        data, offsets = contiguous(chunk, rows)
        row, count = 0, len(offsets) - 1
        while row < count:
            end = _block_end(offsets, row, len(self.pending))
            part = data[offsets[row] : offsets[min(end, count)]].data
            self._rows += min(end, count) - row
            if end > count:
                self.pending.write(part)
                return
            row = end
            yield from self._block(part)

    def finish(self) -> Iterator[Block]:
        """The last block; a file without a record is still a file."""
        if self._rows:
            yield from self._block(memoryview(b""))
        yield self.before

    def abandon(self) -> None:
        """No more than a block waits."""
        self.pending.clear()

    def _block(self, last: memoryview) -> Iterator[Block]:
        """The block of what waits and of `last`. Without a codec nothing is copied here."""
        parts: Iterable[Block]
        if self.compress is None:
            size = len(self.pending) + len(last)
            parts = chain(self.pending.pieces(), (last,))
        else:
            waiting = len(self.pending) > 0
            body = self.compress(b"".join([*map(bytes, self.pending.pieces()), last]) if waiting else last)
            parts, size = (body,), len(body)
        yield self.before + long_bytes(self._rows) + long_bytes(size)
        yield from parts
        self.before, self._rows = self.marker, 0


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
