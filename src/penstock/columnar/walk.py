"""The compiled walk over whole Avro data: what each node of the schema holds, in the order of the rows.

A schema is a list of steps (`penstock.columnar.steps`) that one loop follows, datum by datum: a step reads a value,
skips what a null leaves out, or goes back for the next item of a list. No data make it read outside of their row or go
on without end.
"""

from __future__ import annotations

import numpy as np

from penstock.compiled import compiled, inlined, load
from penstock.fields.avro_walk import Array, zigzag

# Kinds of nodes, and of the steps that read their values. What is below RECORD has no children.
NULL, BOOL, INT, LONG, FLOAT, DOUBLE, TEXT, BYTES, FIXED, ENUM, DECIMAL, FIXED_DECIMAL, RECORD, LIST, UNION = range(15)
# Steps that are no values. NULLABLE: the branch of null and of a node with children; NEXT: behind the items of a list.
NULLABLE, NEXT, GO = range(15, 18)
# Columns of the steps. NULL_BRANCH: of a nullable value or node, else -1. SIZE: of bytes, of symbols, of branches.
# NULLS, NULLS_END: in the list of the nodes below this one that get a null with it. TARGET: the step to go to; of a
# union, where its branches begin in the list of branches; of a decimal, where its bound begins in `limits`.
# ITEM: of a list, the node that counts its items, else -1.
KIND, NODE, NULL_BRANCH, SIZE, NULLS, NULLS_END, TARGET, ITEM, STEP_COLUMNS = range(9)
# Columns of the list of branches. VALID: 0 for the branch of null.
STEP, OTHERS, OTHERS_END, VALID, BRANCH_COLUMNS = range(5)
LIMIT_BYTES = 32

_SPARE_ITEMS = 1 << 16  # items of a block may take no bytes at all, but not without end
_BIG, _SIGN = 0x80, 0x80
_WORD, _UPPER_BITS, _NONE = 8, np.uint64(0x8080808080808080), np.uint64(0)


@inlined
def _is_utf8(data: Array, at: int, end: int) -> bool:
    """Whether the bytes are UTF-8 as RFC 3629 has it; ASCII is looked at by words, also where one ends outside."""
    while at < end:
        if at + _WORD <= len(data):
            mine = _UPPER_BITS if end - at >= _WORD else _UPPER_BITS >> np.uint64(8 * (_WORD - (end - at)))
            if load(data, at) & mine == _NONE:
                at += _WORD
                continue
        first = data[at]
        at += 1
        if first < _BIG:
            continue
        if first < 0xC2 or first > 0xF4:  # noqa: PLR2004 - no first byte of a character
            return False
        more = 1 if first < 0xE0 else 2 if first < 0xF0 else 3  # noqa: PLR2004
        if end - at < more:
            return False
        second = data[at]
        low = 0xA0 if first == 0xE0 else 0x90 if first == 0xF0 else 0x80  # noqa: PLR2004
        high = 0x9F if first == 0xED else 0x8F if first == 0xF4 else 0xBF  # noqa: PLR2004
        if second < low or second > high:
            return False
        for i in range(1, more):
            if data[at + i] & 0xC0 != _BIG:
                return False
        at += more
    return True


@compiled
def _is_within(data: Array, at: int, size: int, limit: Array) -> bool:
    """Whether a two's complement number of big-endian bytes is nearer to zero than `limit`, its bytes big-endian."""
    negative = size > 0 and data[at] >= _SIGN
    carry = np.int64(1) if negative else np.int64(0)
    below, equal = False, True
    for i in range(max(size, LIMIT_BYTES)):
        byte = np.int64(data[at + size - 1 - i]) if i < size else np.int64(255 if negative else 0)
        if negative:
            byte = (byte ^ 255) + carry
            carry = byte >> 8
            byte &= 255
        bound = np.int64(limit[LIMIT_BYTES - 1 - i]) if i < LIMIT_BYTES else np.int64(0)
        if byte != bound:
            below, equal = byte < bound, False
    return below and not equal


@compiled
def _leaf(data: Array, at: int, end: int, kind: int, size: int, limit: Array) -> tuple[int, int, int]:
    """(number or place, size, the place behind it or -1) of a value; the rarer kinds."""
    if kind == NULL:
        return 0, 0, at
    if kind == ENUM:
        value, at = zigzag(data, at, end)
        return value, 0, at if 0 <= value < size else -1
    if kind in (BYTES, DECIMAL):
        size, at = zigzag(data, at, end)
    if at < 0 or not 0 <= size <= end - at:
        return 0, 0, -1
    if kind == BOOL:
        return np.int64(data[at]), 0, at + 1 if data[at] <= 1 else -1
    if kind in (DECIMAL, FIXED_DECIMAL) and not _is_within(data, at, size, limit):
        return 0, 0, -1
    return at, size, at + size


@compiled
def _bits(data: Array, at: int, end: int, size: int) -> tuple[int, int]:
    """So many little-endian bytes as a number, and the place behind them or -1."""
    bits = np.uint64(0)
    if end - at < size:
        return 0, -1
    if size == _WORD:
        return np.int64(load(data, at)), at + _WORD
    for i in range(size):
        bits |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return np.int64(bits), at + size


@compiled
def _block(data: Array, at: int, end: int) -> tuple[int, int]:
    """The items of the next block of a list, 0 at its end, and the place behind the block's head or -1."""
    count, at = zigzag(data, at, end)
    if at >= 0 and count < 0:
        count = -count
        _, at = zigzag(data, at, end)
    if at >= 0 and not 0 <= count <= (end - at) + _SPARE_ITEMS:
        at = -1
    return count, at


@compiled
def run(data: Array, offsets: Array, rows: Array, program: Array, out: Array, bad: Array) -> None:  # noqa: C901, PLR0912, PLR0915 - one machine
    """Walk the data of `rows`: row i is the datum `data[offsets[i]:offsets[i + 1]]`.

    `program`: (steps, nodes that are null together, branches of unions, bounds of decimals, of each node what ITEM is).
    `out`: (counts of each node's values, zeros at first; where each node's values begin; numbers or places; sizes;
    whether there is a value). Without room for values they are only counted. Marks in `bad` the rows that are no data
    of the schema; at the first of those a walk that fills ends.
    """
    steps, nulls, branches, limits, items = program
    counts, bases, values, sizes, valids = out
    write = len(values) > 0
    left = np.zeros(len(steps), dtype=np.int64)
    for i in range(len(rows)):
        at, end = offsets[rows[i]], offsets[rows[i] + 1]
        step = 0
        while step < len(steps):
            here = step
            step += 1
            kind, node, null_branch = steps[here, KIND], steps[here, NODE], steps[here, NULL_BRANCH]
            value, size, valid = np.int64(0), np.int64(0), 1
            null, nulls_end = np.int64(0), np.int64(0)
            if null_branch >= 0:
                branch, at = zigzag(data, at, end)
                if branch == null_branch:
                    valid = 0
                    if kind == NULLABLE:
                        step, null, nulls_end = steps[here, TARGET], steps[here, NULLS], steps[here, NULLS_END]
                        value = counts[steps[here, ITEM]] if steps[here, ITEM] >= 0 else 0
                elif kind == NULLABLE and branch == 1 - null_branch:
                    continue
                elif branch != 1 - null_branch:
                    at = -1
            if at < 0:
                break
            if valid == 0 or kind == RECORD:
                pass
            elif kind in (LONG, INT):
                value, at = zigzag(data, at, end)
                if kind == INT and not -0x80000000 <= value <= 0x7FFFFFFF:  # noqa: PLR2004 - 32 bits
                    at = -1
            elif kind == TEXT:
                size, value = zigzag(data, at, end)
                at = value + size if value >= 0 and 0 <= size <= end - value else -1
                if at >= 0 and not _is_utf8(data, value, at):
                    at = -1
            elif kind in (DOUBLE, FLOAT):
                value, at = _bits(data, at, end, steps[here, SIZE])
            elif kind == LIST:
                value, at = _block(data, at, end)
                if at >= 0 and value > 0:
                    left[here] = value
                    continue
                step, value = steps[here, TARGET], counts[steps[here, ITEM]]
            elif kind == NEXT:
                step = steps[here, TARGET]
                left[step] -= 1
                step += 1 if left[step] > 0 else 0
                continue
            elif kind == UNION:
                branch, at = zigzag(data, at, end)
                if at < 0 or not 0 <= branch < steps[here, SIZE]:
                    at = -1
                    break
                branch += steps[here, TARGET]
                step, valid = branches[branch, STEP], branches[branch, VALID]
                null, nulls_end = branches[branch, OTHERS], branches[branch, OTHERS_END]
            elif kind == GO:
                step = steps[here, TARGET]
                continue
            else:
                limit = limits[steps[here, TARGET] : steps[here, TARGET] + LIMIT_BYTES]
                value, size, at = _leaf(data, at, end, kind, steps[here, SIZE], limit)
                valid = 0 if kind == NULL else 1
            if at < 0:
                break
            if write:
                place = bases[node] + counts[node]
                values[place], sizes[place], valids[place] = value, size, valid
            counts[node] += 1
            for index in range(null, nulls_end):
                node = nulls[index]
                if write:
                    place = bases[node] + counts[node]
                    values[place] = counts[items[node]] if items[node] >= 0 else 0
                    sizes[place], valids[place] = 0, 0
                counts[node] += 1
        bad[i] = at != end
        if write and bad[i]:
            return


def warm() -> None:
    """Compile, or load from numba's cache, the walk."""
    steps, branches = np.zeros((1, STEP_COLUMNS), dtype=np.int64), np.zeros((1, BRANCH_COLUMNS), dtype=np.int64)
    longs, raw = np.zeros(2, dtype=np.int64), np.zeros(LIMIT_BYTES, dtype=np.uint8)
    program = (steps, longs, branches, raw, longs)
    run(raw, longs, longs[:0], program, (longs, longs, longs, longs, raw), np.zeros(0, dtype=np.bool_))
