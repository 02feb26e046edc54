"""The compiled machine from Avro data to JSON lines: it runs a schema's instructions (`avro_json_program`).

No data make it read or write outside its arrays, or go on without end: each size is checked against what is left, each
write against the room, the depth is bounded, and so are items that take no bytes. What it does not take is not
judged here: such a row is left to Python, whose words for a fault are the only ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled import borrowed, compiled, inlined
from penstock.converters import avro_json_values as values
from penstock.fields.avro_walk import zigzag

Array = Any

# Instructions. Those from BOOLEAN on read one value and go on behind them; all write their text first.
END, TEXT, CALL, RETURN, JUMP, BRANCH, ITEMS, NEXT, KEY = range(9)
BOOLEAN, LONG, FLOAT, DOUBLE, STRING, BYTES, FIXED, ENUM = range(9, 17)
# Columns: the instruction, its text in the pool, and two operands: an instruction to go on at, a place in `jumps` or
# `words` and the number there, a size, a closing bracket.
OP, START, SIZE, A, B, COLUMNS = range(6)

# Columns of the stack: where a call goes back to, or the items that are left of a block; how many keys there were.
BACK, KEYS = range(2)
NOT_BEGUN = -1

# What became of a row. A row without a program is LEFT; one without a value is a line feed.
DONE, LEFT, TOO_DEEP, TOO_MANY, FULL = range(5)
NO_PROGRAM, NO_VALUE = -1, -2

PADDING = 8  # bytes behind the pool: texts are copied by words
DEEPEST = 512
MOST_KEYS = 4096  # of a map and those around it; more are left to Python
SPARE_ITEMS = 1 << 20  # items that take no bytes, in one row
_LINE_FEED, _COMMA, _COLON = ord("\n"), ord(","), ord(":")
_FNV_BASIS, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@inlined
def _value(op: int, operands: Array, row: Array, at: int, out: Array, to: int, texts: Array) -> tuple[int, int]:
    """Both places behind one value (see `avro_json_values`); a small one has room. `row`: (data, end)."""
    (data, end), (words, pool) = row, texts
    if op in (STRING, BYTES):
        size, at = values.sized(data, at, end)
        if at < 0:
            return at, to
        if op == STRING:
            return values.text(data, at, at + size, out, to)
        return values.base64(data, at, size, out, to)
    if op in (LONG, ENUM):
        value, at = zigzag(data, at, end)
        if at < 0:
            return at, to
        if op == LONG:
            return at, values.integer(out, to, value)
        if not 0 <= value < operands[B]:
            return np.int64(-1), to
        start, size = words[operands[A] + value, 0], words[operands[A] + value, 1]
        return at, (values.copied(pool, start, size, out, to) if len(out) - to >= size + values.MOST_SMALL else -1)
    if op == BOOLEAN:
        return (at + 1, values.boolean(out, to, np.int64(data[at]))) if at < end else (np.int64(-1), to)
    if op == FIXED:
        size = operands[A]
        return values.base64(data, at, size, out, to) if 0 <= size <= end - at else (np.int64(-1), to)
    return values.real(data, at, end, np.int64(8) if op == DOUBLE else np.int64(4), out, to)


@compiled
def _block(data: Array, at: int, end: int) -> tuple[int, int]:
    """How many items the next block has, 0 at the end, and the place behind its head; -1 where it is malformed."""
    count, at = zigzag(data, at, end)
    if count < 0:
        count = -count
        if at >= 0:
            at = zigzag(data, at, end)[1]
    return count, (at if count >= 0 else np.int64(-1))


@compiled
def _is_new(data: Array, at: int, end: int, hashes: Array, since: int, top: int) -> bool:
    """Note the hash of a map's key; False where the map may have had it before, or there is no room."""
    mixed = _FNV_BASIS
    for i in range(at, end):
        mixed = (mixed ^ np.uint64(data[i])) * _FNV_PRIME
    if top >= len(hashes):
        return False
    seen = False
    for i in range(since, top):
        seen |= hashes[i] == mixed
    hashes[top] = mixed
    return not seen


@compiled
def _key(row: Array, at: int, out: Array, to: int, hashes: Array, since: int, top: int) -> tuple[int, int]:
    """Both places behind a map's key and its colon. A key that comes twice is Python's: there the last value counts."""
    data, end = row
    size, at = values.sized(data, at, end)
    if at < 0 or not _is_new(data, at, at + size, hashes, since, top):
        return np.int64(-1), to
    at, to = values.text(data, at, at + size, out, to)
    if at < 0 or to < 0 or to >= len(out):
        return at, (to if at < 0 else np.int64(-1))
    out[to] = _COLON
    return at, to + 1


@inlined
def _row(pc: int, row: Array, at: int, program: Array, out: Array, to: int, scratch: Array) -> tuple[int, int]:  # noqa: C901, PLR0912 - one machine
    """(what became of the row, the place behind it in `out`)."""
    (data, end), (ops, jumps, words, pool), (stack, hashes) = row, program, scratch
    depth, keys, spare = np.int64(0), np.int64(0), end - at + SPARE_ITEMS
    while at >= 0 and to >= 0:
        here, op, size = pc, ops[pc, OP], ops[pc, SIZE]
        if len(out) - to < size + values.MOST_SMALL:
            return FULL, to
        to = values.copied(pool, ops[here, START], size, out, to)
        pc += 1
        if op >= BOOLEAN:
            at, to = _value(op, ops[here], row, at, out, to, (words, pool))
        elif op == JUMP:
            pc = ops[here, A]
        elif op == BRANCH:
            branch, at = zigzag(data, at, end)
            if not 0 <= branch < ops[here, B]:
                return LEFT, to
            pc = jumps[ops[here, A] + branch]
        elif op == RETURN:
            depth -= 1
            pc = stack[depth, BACK]
        elif op == KEY:
            at, to = _key(row, at, out, to, hashes, stack[depth - 1, KEYS], keys)
            keys += 1
        elif op == NEXT:
            frame = stack[depth - 1]
            first, frame[BACK] = frame[BACK] < 0, max(frame[BACK] - 1, 0)
            if frame[BACK] == 0:
                frame[BACK], at = _block(data, at, end)
            going_on, spare = frame[BACK] > 0, spare - 1
            if spare < 0:
                return TOO_MANY, to
            if not (first and going_on):
                out[to] = _COMMA if going_on else ops[here, B]
                to += 1
            if going_on:
                pc = ops[here, A]
            else:
                depth, keys = depth - 1, frame[KEYS]
        elif op == END:
            return DONE, to
        elif op != TEXT:
            if depth >= len(stack):
                return TOO_DEEP, to
            stack[depth, BACK], stack[depth, KEYS] = pc if op == CALL else NOT_BEGUN, keys
            depth, pc = depth + 1, ops[here, A]
    return (LEFT if at < 0 else FULL), to


@compiled
def transcode(data: Array, rows: Array, row: int, program: Array, out: Array, result: Array, scratch: Array) -> int:
    """Write rows from `row` on as lines to `out`; the row it came to: the number of rows, or one that had no room.

    `rows`: their offsets, and per row the instruction to begin at, NO_PROGRAM or NO_VALUE. `result`: where each line
    begins (that of `row` is given, those behind it are filled in), and what became of each row; one that is not DONE
    has no bytes. `scratch`: what `scratch_space` gives.
    """
    (offsets, entries), (ops, jumps, words, pool), (ends, fates) = rows, program, result
    code = (borrowed(ops), borrowed(jumps), borrowed(words), borrowed(pool))
    bytes_in, bytes_out, space = borrowed(data), borrowed(out), (borrowed(scratch[0]), borrowed(scratch[1]))
    to = ends[row]
    while row < len(entries):
        pc, at, end, fate = entries[row], offsets[row], offsets[row + 1], np.int64(LEFT)
        if pc >= 0 and 0 <= at <= end <= len(data):
            fate, behind = _row(pc, (bytes_in, end), at, code, bytes_out, to, space)
            to = behind if fate == DONE else to
        elif pc == NO_VALUE:
            fate = np.int64(DONE if to < len(out) else FULL)
            if fate == DONE:
                out[to] = _LINE_FEED
                to += 1
        if fate == FULL:
            break
        fates[row], ends[row + 1] = fate, to
        row += 1
    return row


def scratch_space() -> Array:
    """What the machine needs beside a program: its stack, and the hashes of maps' keys."""
    return np.empty((DEEPEST, 2), dtype=np.int64), np.empty(MOST_KEYS, dtype=np.uint64)


def warm() -> None:
    """Compile, or load from numba's cache, what `transcode` calls."""
    data, longs, table = np.zeros(1, dtype=np.uint8), np.zeros(2, dtype=np.int64), np.zeros((1, 2), dtype=np.int64)
    program, result = (
        (np.zeros((1, COLUMNS), dtype=np.int64), longs, table, read_only(data)),
        (longs, data.view(np.int8)),
    )
    transcode(read_only(data), (longs, longs[:0]), 0, program, data, result, scratch_space())


def read_only(data: Array) -> Array:
    """The same array, not to be written: numba compiles for one of both, and records may come as either."""
    view = data.view()
    view.flags.writeable = False
    return view
