"""Values made one by one in Python, joined to a chunk: the last resort, for pairs that cannot copy."""

from __future__ import annotations

import numpy as np

from penstock.converters.base import Chunk


def joined(lines: list[bytes], rows: int) -> Chunk:
    """Lines (each without its line feed) as a chunk of `rows` rows; rows behind the last line are empty."""
    offsets = np.zeros(rows + 1, dtype=np.int64)
    np.cumsum([len(line) + 1 for line in lines], out=offsets[1 : len(lines) + 1])
    offsets[len(lines) + 1 :] = offsets[len(lines)]
    text = b"\n".join(lines) + b"\n" if lines else b""
    return Chunk(np.frombuffer(text, dtype=np.uint8), offsets)
