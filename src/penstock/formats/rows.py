"""Rows of a chunk as bytes: a slice costs nothing, scattered rows are copied together by a compiled loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.compiled import compiled, memcpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.converters.base import Chunk
    from penstock.formats.base import Rows
    from penstock.model import Slices


def contiguous(chunk: Chunk | Slices, rows: Rows) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of the rows, one behind the other, and n + 1 offsets into them."""
    if isinstance(rows, slice):
        return chunk.data, chunk.offsets[rows.start : rows.stop + 1]
    starts = chunk.offsets[rows]
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(chunk.offsets[rows + 1] - starts, out=offsets[1:])
    data = np.empty(int(offsets[-1]), dtype=np.uint8)
    _gather(data, offsets, chunk.data, starts)
    return data, offsets


@compiled
def _gather(
    target: NDArray[np.uint8], offsets: NDArray[np.int64], source: NDArray[np.uint8], starts: NDArray[np.int64]
) -> None:
    """Copy each row to its place; the caller's offsets lie within both arrays."""
    for row in range(len(starts)):
        memcpy(target, offsets[row], source, starts[row], offsets[row + 1] - offsets[row])


def warm() -> None:
    """Compile, or load from numba's cache, what `contiguous` calls."""
    empty, none = np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    for source in (empty, np.frombuffer(b"", dtype=np.uint8)):  # arrays that must not be written to are another type
        _gather(empty, none, source, none[:0])
