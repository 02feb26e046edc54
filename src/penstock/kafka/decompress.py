"""Bodies of compressed record batches, decompressed into one reused buffer of bounded size."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import cramjam
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)  # the lowest three bits of a batch's attributes
_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
_XERIAL = b"\x82SNAPPY\x00"  # Java's framing of snappy: magic, two versions, then blocks with their sizes
_XERIAL_HEADER = 16
_FIRST_SIZE = 4 << 20


class BodyError(Exception):
    """A body that cannot be decompressed; the text says why."""


class Arena:
    """Holds the decompressed bodies of consecutive batches side by side, until it is cleared.

    `limit`: the most that one body may grow to, so that a few crafted bytes cannot exhaust the memory.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._space = np.empty(min(_FIRST_SIZE, limit), np.uint8)
        self.used = 0

    @property
    def data(self) -> Bytes:
        """What it holds, read-only; valid until the next clear()."""
        view = self._space[: self.used]
        view.flags.writeable = False
        return view

    def clear(self) -> None:
        """Forget all bodies."""
        self.used = 0

    def add(self, codec: int, body: Bytes) -> bool:
        """Decompress one more body behind the others; False if it finds no room beside them.

        Raises:
            BodyError: it cannot be decompressed, or not within the limit.
        """
        while True:
            try:
                self.used += _decompress(codec, body.data, self._space[self.used :].data)
            except (cramjam.DecompressionError, BodyError) as error:
                if self.used:
                    return False
                self._grow(codec, error)
            else:
                return True

    def _grow(self, codec: int, error: Exception) -> None:
        """Make room for a body that failed alone; the library does not tell damage from lack of room."""
        if len(self._space) >= self._limit or isinstance(error, BodyError):
            self._space = np.empty(min(_FIRST_SIZE, self._limit), np.uint8)
            msg = f"cannot be decompressed ({_name(codec)}) to at most `{self._limit}` bytes: {error}"
            raise BodyError(msg) from None
        self._space = np.empty(min(4 * len(self._space), self._limit), np.uint8)


def _decompress(codec: int, body: memoryview, out: memoryview) -> int:
    """Decompress `body` into `out`; returns how many bytes it became."""
    if codec == NONE:
        if len(body) > len(out):
            raise cramjam.DecompressionError
        out[: len(body)] = body
        return len(body)
    if codec not in _DECOMPRESS:
        msg = "no such codec"
        raise BodyError(msg)
    return _DECOMPRESS[codec](body, out)


def _unsnap(body: memoryview, out: memoryview) -> int:
    """Snappy, plain as librdkafka writes it or in the framing of the Java client."""
    if body[: len(_XERIAL)] != _XERIAL:
        return cramjam.snappy.decompress_raw_into(body, out)
    at, filled = _XERIAL_HEADER, 0
    while at < len(body):
        if len(body) - at < 4:  # noqa: PLR2004 - a block's size
            msg = "a block of its framing is cut off"
            raise BodyError(msg)
        (size,) = struct.unpack_from(">i", body, at)
        at += 4
        if not 0 < size <= len(body) - at:
            msg = f"its framing names a block of {size} bytes where {len(body) - at} are left"
            raise BodyError(msg)
        filled += cramjam.snappy.decompress_raw_into(body[at : at + size], out[filled:])
        at += size
    return filled


_DECOMPRESS: dict[int, Callable[[memoryview, memoryview], int]] = {
    GZIP: cramjam.gzip.decompress_into,
    SNAPPY: _unsnap,
    LZ4: cramjam.lz4.decompress_into,
    ZSTD: cramjam.zstd.decompress_into,
}


def _name(codec: int) -> str:
    return _NAMES[codec] if codec < len(_NAMES) else f"codec {codec}"
