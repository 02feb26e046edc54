"""Byte strings as Avro data of type "string" or "bytes": each behind its length as a zigzag varint, columnar."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.converters.base import Chunk

if TYPE_CHECKING:
    from penstock.model import Slices

_LONGEST = 5  # bytes of a varint: a Kafka record is smaller than 2 GiB


def length_prefixed(values: Slices) -> Chunk:
    """Every item with its length in front; a null item is an empty one."""
    sizes = np.diff(values.offsets)
    zigzag = sizes.astype(np.uint64) << np.uint64(1)
    heads = np.ones(len(sizes), dtype=np.int64)
    for more in range(1, _LONGEST):
        heads += zigzag >= np.uint64(1 << (7 * more))
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes + heads, out=offsets[1:])
    data = np.empty(int(offsets[-1]), dtype=np.uint8)
    for place in range(int(heads.max(initial=0))):
        mine = np.flatnonzero(heads > place)
        byte = (zigzag[mine] >> np.uint64(7 * place)) & np.uint64(0x7F)
        data[offsets[mine] + place] = byte + np.where(heads[mine] > place + 1, 0x80, 0)
    shift = np.repeat(offsets[:-1] + heads - values.offsets[:-1], sizes)
    start = int(values.offsets[0])
    data[np.arange(start, start + len(shift)) + shift] = values.data[start : start + len(shift)]
    return Chunk(data, offsets)
