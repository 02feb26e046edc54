"""Whole files compressed on the way out: gzip and Zstandard around any format whose files may be longer at their end.

A compressor is fed in pieces of one size, so its output depends on the file's bytes alone, never on how the rows came:
zlib and libzstd do not promise that for themselves. gzip members carry neither time nor name.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from penstock.zstandard import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.converters.base import Chunk, FileSchema, Kind
    from penstock.formats.base import Encoder, Format, Rows

PIECE_SIZE = 64 * 1024
_GZIP = 16 + zlib.MAX_WBITS
_ZSTD_LEVEL, _ZSTD_WINDOW_LOG = 3, 20  # a window of 1 MiB: hundreds of files may be open


class Compressor(Protocol):
    """The compressor of one file."""

    def compress(self, data: bytes | memoryview, /) -> bytes:
        """Take bytes; what is ready of the output."""
        ...

    def flush(self) -> bytes:
        """End the file; the rest of the output."""
        ...


def gzip(level: int) -> Compressor:
    """A gzip member. `level`: -1 leaves it to zlib, 0 stores, 9 is smallest."""
    return zlib.compressobj(level, zlib.DEFLATED, _GZIP)


def zstandard(level: int) -> Compressor:
    """A Zstandard frame. `level`: -1 stands for libzstd's own default, else 1 to 9."""
    parameter = zstd.CompressionParameter
    chosen = _ZSTD_LEVEL if level <= 0 else level
    compressor: Compressor = zstd.ZstdCompressor(
        options={parameter.compression_level: chosen, parameter.window_log: _ZSTD_WINDOW_LOG}
    )
    return compressor


@dataclass(frozen=True, slots=True)
class Compression:
    """One value of `s3.compression.type`. `extension`: what it adds to the names of files."""

    extension: str
    start: Callable[[int], Compressor]


COMPRESSIONS: dict[str, Compression] = {
    "gzip": Compression(".gz", gzip),
    "zstd": Compression(".zst", zstandard),
}


@dataclass(frozen=True, slots=True)
class CompressedFormat:
    """A format whose files are compressed whole. `level`: `s3.compression.level`."""

    inner: Format
    compression: Compression
    level: int = -1

    @property
    def accepts(self) -> tuple[Kind, ...]:
        """As the format inside."""
        return self.inner.accepts

    @property
    def extension(self) -> str:
        """That of the format inside, and the compression's."""
        return self.inner.extension + self.compression.extension

    @property
    def separator(self) -> bytes:
        """As the format inside."""
        return self.inner.separator

    def refuses(self, schema: FileSchema) -> str | None:
        """As the format inside."""
        return self.inner.refuses(schema)

    def encoder(self, schema: FileSchema, key: str) -> CompressedEncoder:
        """An encoder with a compressor of its own."""
        return CompressedEncoder(self.inner.encoder(schema, key), Fed(self.compression.start(self.level)))


@dataclass(slots=True)
class Fed:
    """A compressor that gets its bytes in pieces of one size, however they come."""

    compressor: Compressor
    _rest: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes | memoryview) -> Iterator[bytes]:
        """What is ready. Whole pieces go on as they are; what does not fill one waits for more."""
        view = memoryview(data).cast("B")
        if self._rest:
            room = PIECE_SIZE - len(self._rest)
            self._rest += view[:room]
            view = view[room:]
            if len(self._rest) < PIECE_SIZE:
                return
            yield from self._ready(bytes(self._rest))
            self._rest = bytearray()
        whole = len(view) - len(view) % PIECE_SIZE
        for start in range(0, whole, PIECE_SIZE):
            yield from self._ready(view[start : start + PIECE_SIZE])
        self._rest += view[whole:]

    def end(self) -> bytes:
        """The rest of the output."""
        rest, self._rest = bytes(self._rest), bytearray()
        return self.compressor.compress(rest) + self.compressor.flush()

    def _ready(self, piece: bytes | memoryview) -> Iterator[bytes]:
        compressed = self.compressor.compress(piece)
        if compressed:
            yield compressed


@dataclass(slots=True)
class CompressedEncoder:
    """Feeds what the encoder inside gives to the compressor."""

    inner: Encoder
    fed: Fed

    def write(self, chunk: Chunk, rows: Rows) -> Iterator[bytes]:
        """The compressed bytes that are ready."""
        for data in self.inner.write(chunk, rows):
            yield from self.fed.feed(data)

    def finish(self) -> Iterator[bytes]:
        """The end of the file; one without a row is a valid empty one."""
        for data in self.inner.finish():
            yield from self.fed.feed(data)
        yield self.fed.end()

    def abandon(self) -> None:
        """No more than a piece waits here."""
        self.inner.abandon()
