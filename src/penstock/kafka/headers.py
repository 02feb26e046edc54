"""Header areas of many records as three columns: how many each record has, their names, their values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.compiled import compiled, memcpy
from penstock.kafka.walk import varint
from penstock.model import Slices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Ints = NDArray[np.int64]


def header_columns(headers: Slices) -> tuple[Ints, Slices, Slices]:
    """(n + 1 offsets into the headers of all records, names, values); the walk has checked the areas."""
    ends = np.empty(len(headers) + 1, np.int64)
    name_bytes, value_bytes = _measure(headers.data, headers.offsets, ends)
    total = int(ends[-1])
    names, values = np.empty(name_bytes, np.uint8), np.empty(value_bytes, np.uint8)
    name_ends, value_ends = np.zeros(total + 1, np.int64), np.zeros(total + 1, np.int64)
    valid = np.ones(total, np.bool_)
    _fill(headers.data, headers.offsets, (names, values), (name_ends, value_ends), valid)
    return ends, Slices(names, name_ends), Slices(values, value_ends, None if valid.all() else valid)


@compiled
def _measure(data: Bytes, offsets: Ints, ends: Ints) -> tuple[int, int]:
    """Fill `ends`; the bytes of all names and of all values."""
    names, values = np.int64(0), np.int64(0)
    ends[0] = 0
    for row in range(len(offsets) - 1):
        at, end, seen = offsets[row], offsets[row + 1], 0
        count, at = varint(data, at, end)
        while seen < count and at >= 0:
            size, at = varint(data, at, end)
            if at < 0 or size < 0 or size > end - at:
                break
            value_size, behind = varint(data, at + size, end)
            if behind < 0 or value_size > end - behind:
                break
            names += size
            values += max(value_size, 0)
            at = behind + max(value_size, 0)
            seen += 1
        ends[row + 1] = ends[row] + seen
    return names, values


@compiled
def _fill(
    data: Bytes, offsets: Ints, out: tuple[Bytes, Bytes], ends: tuple[Ints, Ints], valid: NDArray[np.bool_]
) -> None:
    """Copy what `_measure` measured, by the same steps."""
    item = 0
    for row in range(len(offsets) - 1):
        at, end, seen = offsets[row], offsets[row + 1], 0
        count, at = varint(data, at, end)
        while seen < count and at >= 0 and item < len(valid):
            size, at = varint(data, at, end)
            if at < 0 or size < 0 or size > end - at:
                break
            value_size, behind = varint(data, at + size, end)
            if behind < 0 or value_size > end - behind:
                break
            memcpy(out[0], ends[0][item], data, at, size)
            ends[0][item + 1] = ends[0][item] + size
            kept = max(value_size, 0)
            memcpy(out[1], ends[1][item], data, behind, kept)
            ends[1][item + 1] = ends[1][item] + kept
            valid[item] = value_size >= 0
            at = behind + kept
            item += 1
            seen += 1


def warm() -> None:
    """Compile all of it, or load it from numba's cache."""
    header_columns(Slices(np.zeros(1, np.uint8), np.array([0, 1])))
