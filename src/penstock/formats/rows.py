"""Rows of a chunk as bytes: a slice costs nothing, scattered rows are gathered run by run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.converters.base import Chunk
    from penstock.formats.base import Rows


def contiguous(chunk: Chunk, rows: Rows) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of the rows, one behind the other, and n + 1 offsets into them."""
    if isinstance(rows, slice):
        offsets = chunk.offsets[rows.start : rows.stop + 1]
        return chunk.data, offsets
    sizes = chunk.offsets[rows + 1] - chunk.offsets[rows]
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    places = np.arange(int(offsets[-1])) + np.repeat(chunk.offsets[rows] - offsets[:-1], sizes)
    return chunk.data[places], offsets
