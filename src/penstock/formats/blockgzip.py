"""Block-GZIP (seed 003; reference peers A.4, A.5): gzip members one behind the other, and an index of where each lies.

A member ends before the record that would take it beyond `compressed_block_size` bytes uncompressed; a larger record
has a member of its own. The whole object is a valid gzip file, and every member can be read by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from penstock.formats.compression import Fed, gzip
from penstock.formats.rows import contiguous

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.converters.base import Chunk, FileSchema, Kind
    from penstock.formats.base import Rows

INDEX_EXTENSION = ".index.json"
_LEVEL = 6  # Java's and zlib's own default: members have the lengths that the connector's have


class Member(msgspec.Struct):
    """Where a member lies and what it holds; the names and their order are the connector's, the last is ours.

    `next_record_offset`: the offset behind its last record, since offsets may have gaps.
    """

    byte_length_uncompressed: int
    num_records: int
    byte_length: int
    byte_offset: int
    first_record_offset: int
    next_record_offset: int


class Index(msgspec.Struct):
    """An index object."""

    chunks: list[Member]


@dataclass(frozen=True, slots=True)
class BlockGzipFormat:
    """`format.class` block_gzip. `block_size`: `compressed_block_size`; `separator`: `format.value.delimiter`."""

    block_size: int = 64 * 1024 * 1024
    separator: bytes = b"\n"
    accepts: tuple[Kind, ...] = ("text", "bytes", "json")
    extension: str = ".gz"

    def refuses(self, schema: FileSchema) -> None:
        """Nothing."""

    def encoder(self, schema: FileSchema, key: str) -> BlockGzipEncoder:  # noqa: ARG002 - neither enters the file
        """An encoder before its first member."""
        return BlockGzipEncoder(self.block_size)


@dataclass(slots=True)
class BlockGzipEncoder:
    """Fills members."""

    block_size: int
    _open: Fed | None = None
    _raw: int = 0
    _records: int = 0
    _first: int = 0
    _next: int = 0
    _members: list[Member] = field(default_factory=list)
    _written: int = 0
    _begun: int = 0

    def write(self, chunk: Chunk, rows: Rows) -> Iterator[bytes]:
        """The compressed bytes that are ready."""
        assert chunk.positions is not None  # noqa: S101 - set for every batch
        data, offsets = contiguous(chunk, rows)
        positions, row, count = chunk.positions[rows], 0, len(offsets) - 1
        while row < count:
            room = offsets[row] + self.block_size - self._raw
            end = int(np.searchsorted(offsets, room, side="right")) - 1
            if end <= row and self._records:
                yield from self._ended()
                continue
            end = min(max(end, row + 1), count)
            yield from self._fed(data[offsets[row] : offsets[end]].data, end - row, int(positions[row]))
            self._next = int(positions[end - 1]) + 1
            row = end

    def finish(self) -> Iterator[bytes]:
        """The end of the last member."""
        if self._records:
            yield from self._ended()

    def abandon(self) -> None:
        """No more than a piece waits."""
        self._open = None

    def index(self) -> bytes:
        """The index object, once the file is finished."""
        return msgspec.json.encode(Index(self._members))

    def _fed(self, data: memoryview, records: int, first: int) -> Iterator[bytes]:
        if self._open is None:
            self._open, self._first, self._begun = Fed(gzip(_LEVEL)), first, self._written
        self._raw += len(data)
        self._records += records
        for piece in self._open.feed(data):
            self._written += len(piece)
            yield piece

    def _ended(self) -> Iterator[bytes]:
        assert self._open is not None  # noqa: S101 - it has records
        rest = self._open.end()
        self._written += len(rest)
        length = self._written - self._begun
        self._members.append(Member(self._raw, self._records, length, self._begun, self._first, self._next))
        self._open, self._raw, self._records = None, 0, 0
        yield rest
