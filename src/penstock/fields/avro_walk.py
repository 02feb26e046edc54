"""The compiled walk to one field of Avro data: nothing is decoded but what lies on the way.

A schema is a table of nodes (`penstock.fields.avro`). No data make these functions read outside of their row, or go on
without end: every length is checked against what is left, nesting and counts are bounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled import borrowed, compiled, inlined

# Kinds of nodes. BOOL and ENUM are numbers of their own encoding; FLOAT and DOUBLE are read from their bits.
NULL, BOOL, LONG, FLOAT, DOUBLE, BYTES, FIXED, ENUM, RECORD, ARRAY, MAP, UNION = range(12)
# Columns of the node table: `FIRST` and `COUNT` are the children (in the list of children), or a size of bytes.
KIND, FIRST, COUNT, NODE_COLUMNS = range(4)
# Columns of the result: the leaf's node or one of the negative codes, a number or a start, a length.
LEAF, VALUE, SIZE, RESULT_COLUMNS = range(4)
FOUND_NULL, FOUND_NONE, MALFORMED = -1, -2, -3

Array = Any
"""A numpy array, or a tuple of them, within compiled code."""

DEEPEST = 512
"""How many levels of records, arrays and maps a datum may have."""
TOO_DEEP = -2
_MOST_ITEMS = 1 << 24
_VARINT_BITS = 63


@inlined
def zigzag(data: Array, at: int, end: int) -> tuple[int, int]:
    """The zigzag number at `at` and the place behind it; -1 where none ends before `end`."""
    value, shift = np.uint64(0), np.uint64(0)
    while 0 <= at < end and shift <= _VARINT_BITS:
        byte = data[at]
        at += 1
        value |= np.uint64(byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the continuation bit
            return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), at
        shift += np.uint64(7)
    return np.int64(0), -1


@inlined
def _past(at: int, end: int, size: int) -> int:
    """The place `size` bytes on, or -1."""
    return at + size if at >= 0 and 0 <= size <= end - at else -1


@inlined
def _skip_plain(data: Array, at: int, end: int, kind: int, size: int) -> int:
    """The place behind a value without children, or -1."""
    if kind == NULL:
        return at
    if kind in (LONG, ENUM):
        return zigzag(data, at, end)[1]
    if kind == BYTES:
        size, at = zigzag(data, at, end)
    return _past(at, end, size)


@inlined
def _block(data: Array, at: int, end: int) -> tuple[int, int, int]:
    """The next block of an array or map: (items, 0 at its end; the block's bytes or -1; the place behind its head)."""
    count, at = zigzag(data, at, end)
    size = np.int64(-1)
    if at >= 0 and count < 0:
        count = -count
        size, at = zigzag(data, at, end)
        if at >= 0 and not 0 <= size <= end - at:
            at = -1
    if count < 0 or count > _MOST_ITEMS:
        at = -1
    return count, size, at


@compiled
def _skip(data: Array, at: int, end: int, node: int, schema: Array, stack: Array) -> int:  # noqa: C901, PLR0912 - one machine
    """The place behind a value of `node`; -1, or TOO_DEEP. `stack`: room for (node, what is left of it) pairs.

    The sizes that blocks name are not gone by: who reads the items does not either.
    """
    nodes, children = schema
    depth = 0
    stack[0, 0], stack[0, 1] = node, 0
    while depth >= 0 and at >= 0:
        node, state = stack[depth, 0], stack[depth, 1]
        kind, first, count = nodes[node, KIND], nodes[node, FIRST], nodes[node, COUNT]
        child = np.int64(-1)
        if kind == RECORD:
            if state < count:
                child = children[first + state]
                stack[depth, 1] = state + 1
        elif kind == UNION:
            branch, at = zigzag(data, at, end)
            if not 0 <= branch < count:
                return -1
            stack[depth, 0] = children[first + branch]
            continue
        elif kind in (ARRAY, MAP):
            if state == 0:
                state, _, at = _block(data, at, end)
            if at >= 0 and state > 0:
                if kind == MAP:
                    at = _skip_plain(data, at, end, BYTES, 0)
                # The last item of a block asks for the next block: state 0.
                stack[depth, 1] = state - 1
                child = children[first]
        else:
            at = _skip_plain(data, at, end, kind, count)
        if child < 0:
            depth -= 1
        elif depth + 1 >= DEEPEST:
            return TOO_DEEP
        else:
            depth += 1
            stack[depth, 0], stack[depth, 1] = child, 0
    return at


@compiled
def _find_key(data: Array, at: int, end: int, name: Array, item: int, schema: Array, stack: Array) -> int:
    """The place of a map's value under `name`; -1 where the map is malformed, -2 where it has no such key."""
    while True:
        count, _, at = _block(data, at, end)
        if at < 0:
            return -1
        if count == 0:
            return -2
        for _ in range(count):
            size, at = zigzag(data, at, end)
            behind = _past(at, end, size)
            if behind < 0:
                return -1
            same = size == len(name)
            for i in range(len(name)):
                same = same and data[at + i] == name[i]
            if same:
                return behind
            at = _skip(data, behind, end, item, schema, stack)
            if at < 0:
                return -1


@inlined
def _descend(data: Array, at: int, end: int, path: Array, schema: Array, stack: Array) -> tuple[int, int]:  # noqa: C901 - one machine
    """(leaf node or a negative code, its place) for one row."""
    (fields, names, ends), (nodes, children) = path, schema
    node, depth, steps = np.int64(0), 0, fields.shape[0]
    for _ in range(DEEPEST):
        kind, first, count = nodes[node, KIND], nodes[node, FIRST], nodes[node, COUNT]
        if kind == UNION:
            branch, at = zigzag(data, at, end)
            if at < 0 or not 0 <= branch < count:
                return MALFORMED, at
            node = children[first + branch]
        elif kind == NULL:
            return FOUND_NULL, at
        elif depth == steps:
            return node, at
        elif kind == RECORD:
            wanted = fields[depth, node]
            if wanted < 0:
                return FOUND_NONE, at
            for index in range(wanted):
                at = _skip(data, at, end, children[first + index], schema, stack)
            if at < 0:
                return MALFORMED, at
            node, depth = children[first + wanted], depth + 1
        elif kind == MAP:
            start = np.int64(0) if depth == 0 else ends[depth - 1]
            at = _find_key(data, at, end, names[start : ends[depth]], children[first], schema, stack)
            if at < 0:
                return (MALFORMED if at == -1 else FOUND_NULL), at
            node, depth = children[first], depth + 1
        else:
            return FOUND_NONE, at
    return MALFORMED, at


@compiled
def find(data: Array, offsets: Array, rows: Array, path: Array, schema: Array, result: Array) -> None:
    """Fill `result` with what stands at the path in each of `rows`.

    `path`: (per step and node the field's number or -1; the steps' names in one array; where each ends). `schema`:
    (nodes, children); node 0 is the root. A length of -1 means that the value is a number.
    """
    nodes, stack = borrowed(schema[0]), np.empty((DEEPEST, 2), dtype=np.int64)
    data, schema = borrowed(data), (nodes, borrowed(schema[1]))
    path = (borrowed(path[0]), borrowed(path[1]), borrowed(path[2]))
    for i in range(len(rows)):
        at, end = offsets[rows[i]], offsets[rows[i] + 1]
        leaf, at = _descend(data, at, end, path, schema, stack)
        value, size = np.int64(0), np.int64(-1)
        if leaf >= 0:
            kind = nodes[leaf, KIND]
            if kind in (LONG, ENUM):
                value, at = zigzag(data, at, end)
            elif kind == BYTES:
                size, value = zigzag(data, at, end)
                at = _past(value, end, size)
            elif kind in (BOOL, FLOAT, DOUBLE, FIXED):
                size, value = nodes[leaf, COUNT], at
                at = _past(at, end, size)
            if at < 0 or (kind == ENUM and not 0 <= value < nodes[leaf, COUNT]):
                leaf = MALFORMED
        result[i, LEAF], result[i, VALUE], result[i, SIZE] = leaf, value, size


@compiled
def boundaries(data: Array, schema: Array, result: Array) -> int:
    """Fill `result` with where each of the data begins that lie one behind the other, and where the last one ends.

    Returns how many are well-formed: fewer than `len(result) - 1` where one is not.
    """
    stack = np.empty((DEEPEST, 2), dtype=np.int64)
    result[0] = 0
    for i in range(len(result) - 1):
        at = _skip(data, result[i], len(data), 0, schema, stack)
        if at < 0:
            return i
        result[i + 1] = at
    return len(result) - 1


@compiled
def fates(data: Array, offsets: Array, rows: Array, schema: Array, result: Array) -> None:
    """Fill `result` with 0 where a row is one whole datum, -1 where it is not, TOO_DEEP where nobody looked further."""
    stack = np.empty((DEEPEST, 2), dtype=np.int64)
    for i in range(len(rows)):
        end = offsets[rows[i] + 1]
        at = _skip(data, offsets[rows[i]], end, 0, schema, stack)
        result[i] = at if at < 0 else np.int64(0) if at == end else np.int64(-1)


def warm() -> None:
    """Compile, or load from numba's cache, what `find` calls."""
    longs = np.zeros(1, dtype=np.int64)
    table = np.zeros((1, NODE_COLUMNS), dtype=np.int64)
    path = (np.zeros((0, 1), dtype=np.int64), np.zeros(0, dtype=np.uint8), longs[:0])
    find(np.zeros(1, dtype=np.uint8), np.zeros(2, dtype=np.int64), longs[:0], path, (table, longs), table)
    boundaries(np.zeros(1, dtype=np.uint8), (table, longs), longs)
    fates(np.zeros(1, dtype=np.uint8), longs, longs[:0], (table, longs), longs)
