"""Arrow arrays out of Avro data, by what the compiled walk found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.columnar import walk
from penstock.compiled import compiled, memcpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.columnar.node import Node
    from penstock.columnar.schema import Columns

    Bytes = NDArray[np.uint8]
    Longs = NDArray[np.int64]

_WIDE = 16
_MOST_BYTES = 2**31 - 1


def faulty(columns: Columns, data: Bytes, offsets: Longs, rows: Longs) -> NDArray[np.bool_]:
    """Which of `rows` are no data of the schema: row i is the datum `data[offsets[i]:offsets[i + 1]]`."""
    return _checked(columns, data, offsets, rows)[0]


def _checked(columns: Columns, data: Bytes, offsets: Longs, rows: Longs) -> tuple[NDArray[np.bool_], Longs]:
    """Which rows are bad, and how many values each node has in all of them."""
    bad, counts = np.zeros(len(rows), dtype=np.bool_), np.zeros(columns.nodes, dtype=np.int64)
    none, empty = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint8)
    walk.run(data, offsets, rows, columns.program, (counts, none, none, none, empty), bad)
    return bad, counts


def batch(columns: Columns, data: Bytes, offsets: Longs, rows: Longs) -> pa.RecordBatch:
    """The rows as columns. Raises `ValueError` where one is no datum of the schema, or there is too much of them."""
    if len(data) > _MOST_BYTES:
        msg = f"{len(data)} bytes are too many for one batch"
        raise ValueError(msg)
    counts = np.full(columns.nodes, len(rows), dtype=np.int64)
    if columns.has_lists:
        counts = _checked(columns, data, offsets, rows)[1]
    bases = np.zeros(columns.nodes, dtype=np.int64)
    np.cumsum(counts[:-1], out=bases[1:])
    total = int(counts.sum())
    values, sizes = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
    valids, filled = np.empty(total, dtype=np.uint8), np.zeros(columns.nodes, dtype=np.int64)
    bad = np.zeros(len(rows), dtype=np.bool_)
    walk.run(data, offsets, rows, columns.program, (filled, bases, values, sizes, valids), bad)
    if bad.any():
        msg = f"row {int(np.flatnonzero(bad)[0])} is no datum of its schema"
        raise ValueError(msg)
    found = _Found(data, bases, counts, values, sizes, valids)
    arrays = [found.array(each) for each in columns.root.children if each is not None]
    return pa.RecordBatch.from_arrays(arrays, schema=columns.arrow)


@dataclass(frozen=True, slots=True)
class _Found:
    """What `walk.fill` filled."""

    data: Bytes
    bases: Longs
    counts: Longs
    values: Longs
    sizes: Longs
    valids: Bytes

    def array(self, node: Node) -> pa.Array:
        """The values of a node."""
        if node.silent:
            parts = [self.array(each) for each in node.children if each is not None]
            return pa.Array.from_buffers(node.type, len(parts[0]), [None], children=parts)
        begin = int(self.bases[node.number])
        mine = slice(begin, begin + int(self.counts[node.number]))
        values, valid = self.values[mine], self.valids[mine]
        mask = None if valid.all() or not node.optional else _bits(valid)
        if node.kind in (walk.RECORD, walk.UNION):
            parts = [self.array(each) for each in node.children if each is not None]
            return pa.Array.from_buffers(node.type, len(values), [mask], children=parts)
        if node.kind == walk.LIST:
            (item,) = node.children
            assert item is not None  # noqa: S101 - a list has items
            ends = pa.py_buffer(np.concatenate([[0], values]).astype(np.int32))
            return pa.Array.from_buffers(node.type, len(values), [mask, ends], children=[self.array(item)])
        return self._leaf(node, values, self.sizes[mine], valid, mask)

    def _leaf(self, node: Node, values: Longs, sizes: Longs, valid: Bytes, mask: pa.Buffer | None) -> pa.Array:
        count = len(values)
        if node.kind == walk.NULL:
            return pa.nulls(count)
        if node.kind in (walk.TEXT, walk.BYTES):
            offsets = np.zeros(count + 1, dtype=np.int64)
            np.cumsum(sizes, out=offsets[1:])
            text = _gathered(self.data, offsets, values)
            return pa.Array.from_buffers(node.type, count, [mask, pa.py_buffer(offsets.astype(np.int32)), text])
        if node.kind == walk.FIXED:
            text = _gathered(self.data, np.arange(count + 1) * node.size, np.where(valid, values, -1))
            return pa.Array.from_buffers(node.type, count, [mask, text])
        if node.kind in (walk.DECIMAL, walk.FIXED_DECIMAL):
            width = node.type.bit_width // 8
            out = np.zeros(count * width, dtype=np.uint8)
            _decimals(out, width, self.data, values, sizes)
            return pa.Array.from_buffers(node.type, count, [mask, pa.py_buffer(out)])
        if node.kind == walk.ENUM:
            codes = pa.Array.from_buffers(pa.int32(), count, [mask, pa.py_buffer(values.astype(np.int32))])
            return pa.DictionaryArray.from_arrays(codes, pa.array(node.symbols, pa.string()))
        return pa.Array.from_buffers(node.type, count, [mask, pa.py_buffer(_numbers(node, values))])


def _numbers(node: Node, values: Longs) -> NDArray[np.generic] | bytes:
    if node.kind == walk.BOOL:
        return np.packbits(values.astype(np.uint8), bitorder="little")
    if node.kind == walk.FLOAT:
        return values.astype(np.uint32)
    return values.astype(np.int32) if node.kind == walk.INT else np.ascontiguousarray(values)


def _bits(valid: Bytes) -> pa.Buffer:
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def _gathered(data: Bytes, offsets: Longs, starts: Longs) -> pa.Buffer:
    out = np.zeros(int(offsets[-1]), dtype=np.uint8)
    _copy(out, offsets, data, np.ascontiguousarray(starts))
    return pa.py_buffer(out)


@compiled
def _copy(target: Bytes, offsets: Longs, source: Bytes, starts: Longs) -> None:
    """Copy pieces that the walk has checked; a start below 0 leaves zeros."""
    for row in range(len(starts)):
        size = offsets[row + 1] - offsets[row]
        if starts[row] >= 0 and size > 0:
            memcpy(target, offsets[row], source, starts[row], size)


@compiled
def _decimals(target: Bytes, width: int, source: Bytes, starts: Longs, sizes: Longs) -> None:
    """Big-endian two's complement numbers as little-endian ones of `width` bytes, which hold them."""
    for row in range(len(starts)):
        start, size = starts[row], sizes[row]
        if size == 0:
            continue
        sign = 0xFF if source[start] >= 0x80 else 0  # noqa: PLR2004 - the sign bit
        for i in range(width):
            target[row * width + i] = source[start + size - 1 - i] if i < size else sign


def warm() -> None:
    """Compile, or load from numba's cache, what `batch` calls."""
    walk.warm()
    empty, longs = np.zeros(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    _copy(empty, longs, empty, longs[:0])
    _decimals(empty, _WIDE, empty, longs[:0], longs[:0])
