"""Arrow columns as Avro data: each column by a compiled loop, then woven together row by row.

The schema is that of `penstock.transform.types.avro`: every field, item and map value is a union of null and its type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.compiled import compiled, inlined, memcpy
from penstock.model import Slices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Longs = NDArray[np.int64]

_NULL, _VALUE = 0, 2  # branches of a union of null and a type, as Avro writes them
_MOST = 10  # bytes of a number
_DECIMAL = 16
_BARE = -1  # no union around


@dataclass(frozen=True, slots=True)
class _Piece:
    """The data of one column: row i is `data[offsets[i]:offsets[i + 1]]`."""

    data: Bytes
    offsets: Longs


def encoded(batch: pa.RecordBatch) -> Slices:
    """The rows as data of a record of their columns."""
    made = _woven([_column(each) for each in batch.columns], batch.num_rows, None)
    return Slices(made.data, made.offsets)


def _column(array: pa.Array, *, bare: bool = False) -> _Piece:
    """A column; `bare`: without a union around, for the keys of maps, which are never null."""
    kind, count = array.type, len(array)
    valid = np.full(count, _BARE, np.int8) if bare else _valid(array)
    if pa.types.is_struct(kind):
        return _woven([_column(array.field(at)) for at in range(kind.num_fields)], count, valid)
    if pa.types.is_map(kind):
        items = _woven([_column(array.keys, bare=True), _column(array.items)], len(array.keys), None)
        return _listed(items, array.offsets, valid)
    if pa.types.is_list(kind):
        return _listed(_column(array.values), array.offsets, valid)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _texts(array, valid)
    if pa.types.is_floating(kind):
        numbers = np.ascontiguousarray(array.fill_null(0).to_numpy(zero_copy_only=False))
        return _made(_fixed, (numbers.view(np.uint8), kind.bit_width // 8), valid, count * (kind.bit_width // 8 + 1))
    if pa.types.is_boolean(kind):
        flags = array.cast(pa.uint8()).fill_null(0).to_numpy()
        return _made(_fixed, (flags, 1), valid, 2 * count)
    if pa.types.is_decimal128(kind):
        raw = np.frombuffer(array.buffers()[1] or b"", np.uint8)[array.offset * _DECIMAL :]
        return _made(_decimals, (raw, 0), valid, count * (_DECIMAL + 2))
    plain = array.cast(pa.int32()) if pa.types.is_date32(kind) else array
    numbers = plain.cast(pa.int64()).fill_null(0).to_numpy()
    return _made(_integers, (np.ascontiguousarray(numbers), 0), valid, count * (_MOST + 1))


def _valid(array: pa.Array) -> NDArray[np.int8]:
    if array.null_count == 0:
        return np.ones(len(array), np.int8)
    found: NDArray[np.int8] = array.is_valid().to_numpy(zero_copy_only=False).astype(np.int8)
    return found


def _made(write: object, values: tuple[object, int], valid: NDArray[np.int8], room: int) -> _Piece:
    out, offsets = np.empty(room, np.uint8), np.zeros(len(valid) + 1, np.int64)
    write(values[0], values[1], valid, out, offsets)  # type: ignore[operator]  # one of the compiled loops below
    return _Piece(out[: offsets[-1]], offsets)


def _texts(array: pa.Array, valid: NDArray[np.int8]) -> _Piece:
    count, (_, ends, data) = len(array), array.buffers()
    if not count:
        return _Piece(np.empty(0, np.uint8), np.zeros(1, np.int64))
    starts = np.frombuffer(ends, np.int32)[array.offset : array.offset + count + 1].astype(np.int64)
    raw = np.frombuffer(data or b"", np.uint8)
    out, offsets = np.empty(int(starts[-1] - starts[0]) + count * (_MOST + 1), np.uint8), np.zeros(count + 1, np.int64)
    _sized(raw, starts, valid, out, offsets)
    return _Piece(out[: offsets[-1]], offsets)


def _listed(items: _Piece, ends: pa.Array, valid: NDArray[np.int8]) -> _Piece:
    edges = ends.to_numpy().astype(np.int64)
    out = np.empty(len(items.data) + len(valid) * (_MOST + 2), np.uint8)
    offsets = np.zeros(len(valid) + 1, np.int64)
    _blocks(items.data, items.offsets, edges, valid, out, offsets)
    return _Piece(out[: offsets[-1]], offsets)


def _woven(parts: list[_Piece], count: int, valid: NDArray[np.int8] | None) -> _Piece:
    """The parts of each row one behind the other."""
    bases = np.cumsum([0, *(len(part.data) for part in parts)]).astype(np.int64)
    data = np.concatenate([np.empty(0, np.uint8), *(part.data for part in parts)])
    starts = np.zeros((len(parts), count + 1), np.int64)
    for at, part in enumerate(parts):
        starts[at] = part.offsets + bases[at]
    out, offsets = np.empty(len(data) + count, np.uint8), np.zeros(count + 1, np.int64)
    _weave(data, starts, np.full(count, _BARE, np.int8) if valid is None else valid, out, offsets)
    return _Piece(out[: offsets[-1]], offsets)


@inlined
def _number(out: Bytes, at: int, value: int) -> int:
    """Write zigzag; the place behind it."""
    left = np.uint64((value << 1) ^ (value >> 63))
    while left > np.uint64(0x7F):
        out[at] = np.uint8(left & np.uint64(0x7F)) | np.uint8(0x80)
        left >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(left)
    return at + 1


@inlined
def _branch(out: Bytes, at: int, valid: int) -> int:
    """Write which branch of the union follows, where there is one; the place behind it."""
    if valid == _BARE:
        return at
    out[at] = _VALUE if valid else _NULL
    return at + 1


@compiled
def _integers(values: Longs, _: int, valid: NDArray[np.int8], out: Bytes, offsets: Longs) -> None:
    at = 0
    for row in range(len(valid)):
        at = _branch(out, at, valid[row])
        if valid[row] != 0:
            at = _number(out, at, values[row])
        offsets[row + 1] = at


@compiled
def _fixed(values: Bytes, width: int, valid: NDArray[np.int8], out: Bytes, offsets: Longs) -> None:
    at = 0
    for row in range(len(valid)):
        at = _branch(out, at, valid[row])
        if valid[row] != 0:
            memcpy(out, at, values, row * width, width)
            at += width
        offsets[row + 1] = at


@compiled
def _decimals(values: Bytes, _: int, valid: NDArray[np.int8], out: Bytes, offsets: Longs) -> None:
    """Little-endian numbers of 16 bytes as the fewest big-endian ones that keep the sign, as Java writes them."""
    at = 0
    for row in range(len(valid)):
        at = _branch(out, at, valid[row])
        if valid[row] != 0:
            first = row * _DECIMAL
            sign = np.uint8(0xFF) if values[first + _DECIMAL - 1] >= 0x80 else np.uint8(0)  # noqa: PLR2004
            size = _DECIMAL
            while size > 1 and values[first + size - 1] == sign and (values[first + size - 2] >= 0x80) == (sign != 0):  # noqa: PLR2004
                size -= 1
            at = _number(out, at, size)
            for step in range(size):
                out[at + step] = values[first + size - 1 - step]
            at += size
        offsets[row + 1] = at


@compiled
def _sized(data: Bytes, starts: Longs, valid: NDArray[np.int8], out: Bytes, offsets: Longs) -> None:
    at = 0
    for row in range(len(valid)):
        at = _branch(out, at, valid[row])
        if valid[row] != 0:
            size = starts[row + 1] - starts[row]
            at = _number(out, at, size)
            memcpy(out, at, data, starts[row], size)
            at += size
        offsets[row + 1] = at


@compiled
def _blocks(data: Bytes, places: Longs, edges: Longs, valid: NDArray[np.int8], out: Bytes, offsets: Longs) -> None:
    """Items `edges[row]` to `edges[row + 1]` as one block, and the block without items that ends a list."""
    at = 0
    for row in range(len(valid)):
        at = _branch(out, at, valid[row])
        if valid[row] != 0:
            count = edges[row + 1] - edges[row]
            if count > 0:
                at = _number(out, at, count)
                size = places[edges[row + 1]] - places[edges[row]]
                memcpy(out, at, data, places[edges[row]], size)
                at += size
            out[at] = 0
            at += 1
        offsets[row + 1] = at


@compiled
def _weave(data: Bytes, starts: NDArray[np.int64], valid: NDArray[np.int8], out: Bytes, offsets: Longs) -> None:
    at = 0
    for row in range(len(valid)):
        at = _branch(out, at, valid[row])
        if valid[row] != 0:
            for part in range(len(starts)):
                size = starts[part, row + 1] - starts[part, row]
                memcpy(out, at, data, starts[part, row], size)
                at += size
        offsets[row + 1] = at


def warm() -> None:
    """Compile, or load from numba's cache, what `encoded` calls."""
    columns = {
        "i": pa.array([1, None], pa.int64()),
        "f": pa.array([1.5, None], pa.float64()),
        "d": pa.array([1, None], pa.decimal128(5, 2)),
        "s": pa.array(["a", None]),
        "l": pa.array([["a"], None], pa.list_(pa.string())),
    }
    encoded(pa.RecordBatch.from_pydict(columns))
