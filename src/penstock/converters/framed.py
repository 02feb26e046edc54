"""Records of block-GZIP with keys or lengths: frames around another converter's values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.compiled import compiled, memcpy
from penstock.converters.base import Chunk, Converted
from penstock.converters.lines import taken
from penstock.frames import LENGTH

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.columns import Field
    from penstock.converters.base import Converter, FileSchema
    from penstock.frames import Frames
    from penstock.model import Gather, Records

    Bytes = NDArray[np.uint8]
    Longs = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FramedConverter:
    """Gives the frames of what another converter gives as `text` or `bytes` without a separator."""

    inner: Converter
    frames: Frames

    @property
    def gather(self) -> Gather:
        """As the values' converter."""
        return self.inner.gather

    def schema(self, code: int) -> FileSchema:
        """As the values' converter."""
        return self.inner.schema(code)

    def convert(self, records: Records) -> Converted:
        """The frames, one for each record."""
        made = self.inner.convert(records)
        return Converted(self._framed(records, made.chunk), made.faults, made.nulls)

    def field(self, records: Records, path: str) -> Field:
        """As the values' converter."""
        return self.inner.field(records, path)

    def project(self, records: Records, rows: NDArray[np.int64], code: int) -> Converted:  # noqa: ARG002 - one schema
        """There is one schema only."""
        chunk = self.convert(records).chunk
        data, offsets = taken(chunk.data, chunk.offsets, rows)
        return Converted(Chunk(data, offsets))

    def _framed(self, records: Records, values: Chunk) -> Chunk:
        frames, rows = self.frames, len(records)
        keys = Chunk(np.empty(0, dtype=np.uint8), np.zeros(rows + 1, dtype=np.int64))
        if frames.keys:
            assert records.keys is not None  # noqa: S101 - the reader was asked for them
            keys = Chunk(records.keys.data, records.keys.offsets)
        before, behind = _text(frames.key_delimiter), _text(frames.value_delimiter)
        heads = LENGTH if frames.lengths else 0
        most = np.diff(values.offsets) + heads + (0 if frames.lengths else len(behind))
        if frames.keys:
            most += np.diff(keys.offsets) + heads + (0 if frames.lengths else len(before))
        out = np.empty(int(most.sum()), dtype=np.uint8)
        offsets = np.zeros(rows + 1, dtype=np.int64)
        how = (frames.keys, frames.lengths, frames.once)
        _frame(out, offsets, (keys.data, keys.offsets), (values.data, values.offsets), (before, behind), how)
        return Chunk(out, offsets)


def _text(delimiter: bytes) -> Bytes:
    text: Bytes = np.frombuffer(delimiter, dtype=np.uint8).copy()
    return text


@compiled
def _put(out: Bytes, at: int, source: Bytes, start: int, size: int, lengths: bool) -> int:
    """A piece, with its length in front where there are lengths; the place behind it."""
    if lengths:
        for i in range(LENGTH):
            out[at + i] = (size >> (8 * (LENGTH - 1 - i))) & 0xFF
        at += LENGTH
    if size > 0:
        memcpy(out, at, source, start, size)
    return at + size


@compiled
def _ends_with(source: Bytes, start: int, end: int, delimiter: Bytes) -> bool:
    if len(delimiter) == 0 or end - start < len(delimiter):
        return False
    same = True
    for i in range(len(delimiter)):
        same = same and source[end - len(delimiter) + i] == delimiter[i]
    return same


@compiled
def _frame(
    out: Bytes,
    offsets: Longs,
    keys: tuple[Bytes, Longs],
    values: tuple[Bytes, Longs],
    delimiters: tuple[Bytes, Bytes],
    how: tuple[bool, bool, bool],
) -> None:
    """Fill `out`, which has room for all, and `offsets`."""
    has_keys, lengths, once = how
    at = np.int64(0)
    for row in range(len(offsets) - 1):
        if has_keys:
            start, end = keys[1][row], keys[1][row + 1]
            at = _put(out, at, keys[0], start, end - start, lengths)
            if not lengths:
                at = _put(out, at, delimiters[0], 0, len(delimiters[0]), False)
        start, end = values[1][row], values[1][row + 1]
        at = _put(out, at, values[0], start, end - start, lengths)
        if not lengths and not (once and _ends_with(values[0], start, end, delimiters[1])):
            at = _put(out, at, delimiters[1], 0, len(delimiters[1]), False)
        offsets[row + 1] = at


def warm() -> None:
    """Compile, or load from numba's cache, what frames records."""
    empty, longs = np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    _frame(empty, longs, (empty, longs), (empty, longs), (empty, empty), (False, False, False))
