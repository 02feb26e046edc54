"""Values made one by one in Python, joined to a chunk: the last resort, for pairs that cannot copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.columns import Part
from penstock.converters.base import Chunk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.columns import Field


def joined(lines: list[bytes], rows: int) -> Chunk:
    """Lines (each without its line feed) as a chunk of `rows` rows; rows behind the last line are empty."""
    offsets = np.zeros(rows + 1, dtype=np.int64)
    np.cumsum([len(line) + 1 for line in lines], out=offsets[1 : len(lines) + 1])
    offsets[len(lines) + 1 :] = offsets[len(lines)]
    text = b"\n".join(lines) + b"\n" if lines else b""
    return Chunk(np.frombuffer(text, dtype=np.uint8), offsets)


def spliced(chunk: Chunk, rows: NDArray[np.intp], lines: list[bytes]) -> Chunk:
    """A chunk whose `rows`, which are empty in it, are `lines` (each with its line feed)."""
    pieces, begin = [], 0
    for row, line in zip(rows.tolist(), lines, strict=True):
        pieces += [chunk.data[begin : chunk.offsets[row]], np.frombuffer(line, dtype=np.uint8)]
        begin = int(chunk.offsets[row])
    sizes = np.diff(chunk.offsets)
    sizes[rows] = [len(line) for line in lines]
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return Chunk(np.concatenate([*pieces, chunk.data[begin:]]), offsets)


def taken(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of some rows, one behind the other, and offsets into them."""
    pieces = [data[offsets[row] : offsets[row + 1]] for row in rows.tolist()]
    ends = np.zeros(len(pieces) + 1, dtype=np.int64)
    np.cumsum([len(piece) for piece in pieces], out=ends[1:])
    return (np.concatenate(pieces) if pieces else data[:0]), ends


def no_field(rows: int) -> Field:
    """What a value without fields answers when asked for one."""
    return (Part("absent", np.arange(rows), by_schema=True),)
