"""The compiled walk from Protobuf's wire format to Avro data, for messages of ordinary types.

What is rare, or wrong, is left to the library: a row that the walk does not take is read as a message there.
Nothing is read outside of a row; every length is checked before it is used.
"""

# ruff: noqa: PLR2004 - the bytes and sizes of two wire formats

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.compiled import compiled, memcpy
from penstock.converters.protobuf_wire import (
    BOOL,
    BYTES,
    DOUBLE,
    ENUM,
    FLOAT,
    INT32,
    INT64,
    TEXT,
    WIRE_LENGTH,
    WIRE_VARINT,
    inner,
    is_text,
    packed,
    past,
    tag,
    whole,
    wire_of,
)

if TYPE_CHECKING:
    from penstock.fields.avro_walk import Array

# What an op writes. VALUE, WRAPPED, TIME: a field; ITEMS: a list of values; STRUCT, STRUCTS: messages; UNION: a oneof.
# OTHER: what is taken only where it is absent.
VALUE, ITEMS, STRUCT, STRUCTS, WRAPPED, TIME, UNION, OTHER = range(8)
# Columns of the op table. SLOT: of the field in its message; BRANCH: a branch of a union with null comes first; ITEM:
# the same for the items of a list; NULLS: an absent field is null; CHILD: type of a message, or a union's ops.
OP, FIELD, CONV, SLOT, BRANCH, ITEM, NULLS, CHILD, SYMBOLS, SYMBOLS_END, OP_COLUMNS = range(11)
FIRST, LAST, SLOTS, TYPE_COLUMNS = range(4)  # of the type table: its ops, and how many fields it has
MOST_FIELDS, MOST_NUMBER, _DEEPEST = 128, 2048, 64
_POSITION, _SIZE, _COUNT, _SLOT_COLUMNS = range(4)
_FRAME_TYPE, _FRAME_START, _FRAME_END, _FRAME_OP, _FRAME_AT, _FRAME_LEFT, _FRAME_COLUMNS = range(7)
DONE, LEFT, FULL = 1, 0, 2
_FIRST_SECOND, _LAST_SECOND, _NANOS = -62_135_596_800, 253_402_300_799, 1_000_000_000


@compiled
def _scan(data: Array, frame: Array, program: Array, slots: Array) -> bool:
    """Find the fields of a message: where the last value of each is, and how many there are."""
    ops, types, numbers = program
    kind, at, end = frame[_FRAME_TYPE], frame[_FRAME_START], frame[_FRAME_END]
    for slot in range(types[kind, SLOTS]):
        slots[slot, _COUNT] = 0
    while at < end:
        number, wire, at = tag(data, at, end)
        if at < 0:
            return False
        start, behind = past(data, at, end, wire)
        if behind < 0:
            return False
        op = numbers[kind, number] if number < MOST_NUMBER else -1
        if op >= 0:
            slot, what, conv = ops[op, SLOT], ops[op, OP], ops[op, CONV]
            expected = WIRE_LENGTH if what in (STRUCT, STRUCTS, WRAPPED, TIME) else wire_of(conv)
            if wire == expected or what == OTHER:
                slots[slot, _COUNT] += 1
                slots[slot, _POSITION], slots[slot, _SIZE] = start, behind - start
                # Messages would be merged, texts that another one replaces would still have to be UTF-8.
                if slots[slot, _COUNT] > 1 and (what in (STRUCT, WRAPPED, TIME) or (what == VALUE and conv == TEXT)):
                    return False
            elif what == ITEMS and wire == WIRE_LENGTH:
                count = packed(data, start, behind, expected)
                if count < 0:
                    return False
                slots[slot, _COUNT] += count
        at = behind
    return True


@compiled
def _put_long(out: Array, to: int, number: int) -> int:
    """Write a zigzag varint; the place behind it. There must be room for ten bytes."""
    bits = (np.uint64(number) << np.uint64(1)) ^ np.uint64(number >> 63)
    while bits > np.uint64(0x7F):
        out[to] = np.uint8(bits & np.uint64(0x7F)) | np.uint8(0x80)
        bits >>= np.uint64(7)
        to += 1
    out[to] = np.uint8(bits)
    return to + 1


@compiled
def _put_bits(data: Array, at: int, width: int, out: Array, to: int) -> int:
    """Write a floating-point number, zero where `at` is -1."""
    if len(out) - to < width:
        return -FULL - 1
    for place in range(width):
        out[to + place] = data[at + place] if at >= 0 else 0
    return to + width


@compiled
def _put_bytes(data: Array, at: int, size: int, out: Array, to: int) -> int:
    """Write bytes behind their length."""
    if len(out) - to < size + 10:
        return -FULL - 1
    to = _put_long(out, to, size)
    if size:
        memcpy(out, to, data, at, size)
    return to + size


@compiled
def _put_symbol(number: int, op: Array, symbols: Array, out: Array, to: int) -> int:
    """Write the name of an enum's number."""
    names, texts = symbols
    for place in range(op[SYMBOLS], op[SYMBOLS_END]):
        if names[place, 0] == number:
            return _put_bytes(texts, names[place, 1], names[place, 2] - names[place, 1], out, to)
    return -LEFT - 1


@compiled
def _put(data: Array, at: int, end: int, op: Array, symbols: Array, out: Array, to: int) -> int:
    """Write a value, the default where `at` is -1; the place behind it, -LEFT - 1 or -FULL - 1."""
    conv = op[CONV]
    if conv in (FLOAT, DOUBLE):
        return _put_bits(data, at, 4 if conv == FLOAT else 8, out, to)
    if conv in (TEXT, BYTES):
        size = end - at if at >= 0 else np.int64(0)
        if conv == TEXT and size and not is_text(data, at, end):
            return -LEFT - 1
        return _put_bytes(data, at, size, out, to)
    number = np.int64(0) if at < 0 else whole(data, at, end, conv)
    if conv == ENUM:
        return _put_symbol(number, op, symbols, out, to)
    if len(out) - to < 10:
        return -FULL - 1
    if conv != BOOL:
        return _put_long(out, to, number)
    out[to] = number
    return to + 1


@compiled
def _put_items(data: Array, frame: Array, op: Array, symbols: Array, out: Array, to: int) -> int:
    """Write the items of a list, of which there is at least one."""
    at, end, expected = frame[_FRAME_START], frame[_FRAME_END], wire_of(op[CONV])
    while at < end:
        number, wire, at = tag(data, at, end)
        start, behind = past(data, at, end, wire)
        at = behind
        if number != op[FIELD] or wire not in (expected, WIRE_LENGTH):
            continue
        while start < behind or (start == behind and wire == expected):
            stop = behind if wire == expected else past(data, start, behind, expected)[1]
            if len(out) - to < 1:
                return -FULL - 1
            if op[ITEM]:
                out[to] = 2
                to += 1
            to = _put(data, start, stop, op, symbols, out, to)
            if to < 0 or wire == expected:
                break
            start = stop
        if to < 0:
            return to
    return to


@compiled
def _put_time(data: Array, at: int, end: int, out: Array, to: int) -> int:
    """Write a Timestamp as milliseconds."""
    start, stop, good = inner(data, at, end, 1, WIRE_VARINT)
    nanos_start, nanos_stop, _ = inner(data, at, end, 2, WIRE_VARINT)
    if not good:
        return -LEFT - 1
    seconds = np.int64(0) if start < 0 else whole(data, start, stop, INT64)
    nanos = np.int64(0) if nanos_start < 0 else whole(data, nanos_start, nanos_stop, INT32)
    if not (_FIRST_SECOND <= seconds <= _LAST_SECOND and 0 <= nanos < _NANOS):
        return -LEFT - 1
    if len(out) - to < 10:
        return -FULL - 1
    return _put_long(out, to, seconds * 1000 + nanos // 1_000_000)


@compiled
def _members_set(ops: Array, at: int, slots: Array) -> int:
    """How many members of a oneof there are; more than one only where a producer wrote several."""
    found = 0
    for place in range(at + 1, at + 1 + ops[at, CHILD]):
        found += 1 if slots[ops[place, SLOT], _COUNT] else 0
    return found


@compiled
def _next_struct(data: Array, frame: Array, number: int) -> tuple[int, int]:
    """(start, end) of the next message of a list."""
    at, end = frame[_FRAME_AT], frame[_FRAME_END]
    while True:
        found, wire, at = tag(data, at, end)
        start, behind = past(data, at, end, wire)
        at = behind
        if found == number and wire == WIRE_LENGTH:
            frame[_FRAME_AT] = behind
            return start, behind


@compiled
def _enter(
    data: Array, frames: Array, depth: int, span: tuple[int, int], kind: int, program: Array, slots: Array
) -> bool:
    """Begin with a message."""
    frame = frames[depth]
    frame[_FRAME_TYPE], frame[_FRAME_START], frame[_FRAME_END] = kind, span[0], span[1]
    frame[_FRAME_OP], frame[_FRAME_LEFT] = program[1][kind, FIRST], -1
    return _scan(data, frame, program, slots[depth])


@compiled
def _put_field(data: Array, frame: Array, slot: Array, op: Array, symbols: Array, out: Array, to: int) -> int:
    """Write a field that holds no messages."""
    what, count = op[OP], slot[_COUNT]
    start, stop = slot[_POSITION], slot[_POSITION] + slot[_SIZE]
    if what == TIME:
        return _put_time(data, start, stop, out, to)
    if what == WRAPPED:
        start, stop, good = inner(data, start, stop, 1, wire_of(op[CONV]))
        return _put(data, start, stop, op, symbols, out, to) if good else -LEFT - 1
    if what == VALUE:
        return _put(data, start if count else np.int64(-1), stop, op, symbols, out, to)
    if what == OTHER and count:
        return -LEFT - 1
    if count:
        to = _put_items(data, frame, op, symbols, out, _put_long(out, to, count))
    if to >= 0:
        if len(out) - to < 1:
            return -FULL - 1
        out[to] = 0
        to += 1
    return to


@compiled
def _next_item(data: Array, frame: Array, op: Array, out: Array, to: int) -> tuple[int, int, int]:
    """(place behind what is written, start and end of the next message of a list), start -1 at its end."""
    if frame[_FRAME_LEFT] == 0:
        out[to] = 0
        frame[_FRAME_LEFT] = -1
        frame[_FRAME_OP] += 1
        return to + 1, -1, -1
    frame[_FRAME_LEFT] -= 1
    if op[ITEM]:
        out[to] = 2
        to += 1
    start, stop = _next_struct(data, frame, op[FIELD])
    return to, start, stop


@compiled
def _put_head(ops: Array, at: int, slots: Array, frame: Array, out: Array, to: int) -> tuple[int, bool]:
    """(the place behind the branch of a union, whether the value itself comes next); the place may be -LEFT - 1."""
    op = ops[at]
    if op[OP] == UNION:
        members = _members_set(ops, at, slots)
        if members > 1:
            return -LEFT - 1, False
        out[to] = 2 * members
        frame[_FRAME_OP] += 1 if members else 1 + op[CHILD]
        return to + 1, False
    if op[NULLS] and slots[op[SLOT], _COUNT] == 0:
        out[to] = 0
        frame[_FRAME_OP] += 1
        return to + 1, False
    if op[BRANCH]:
        out[to] = 2
        to += 1
    return to, True


@compiled
def _message(
    data: Array, span: tuple[int, int], program: Array, symbols: Array, work: Array, out: Array, to: int
) -> int:
    """Write one message of type 0; the place behind it, -LEFT - 1 or -FULL - 1."""
    ops, types, _ = program
    frames, slots = work
    depth = 0
    good = _enter(data, frames, 0, span, 0, program, slots)
    while good and depth >= 0 and to >= 0:
        frame = frames[depth]
        at = frame[_FRAME_OP]
        if at == types[frame[_FRAME_TYPE], LAST]:
            depth -= 1
            continue
        if len(out) - to < 32:
            return -FULL - 1
        op, start, stop = ops[at], np.int64(-1), np.int64(-1)
        slot = slots[depth, op[SLOT]]
        if op[OP] == STRUCTS and frame[_FRAME_LEFT] >= 0:
            to, start, stop = _next_item(data, frame, op, out, to)
        else:
            to, comes = _put_head(ops, at, slots[depth], frame, out, to)
            if not comes:
                continue
            if op[OP] == STRUCTS:
                frame[_FRAME_LEFT], frame[_FRAME_AT] = slot[_COUNT], frame[_FRAME_START]
                to = _put_long(out, to, slot[_COUNT]) if slot[_COUNT] else to
                continue
            frame[_FRAME_OP] += 1
            if op[OP] == STRUCT:
                start, stop = slot[_POSITION], slot[_POSITION] + slot[_SIZE]
            else:
                to = _put_field(data, frame, slot, op, symbols, out, to)
        if start >= 0:
            depth += 1
            good = depth < _DEEPEST and _enter(data, frames, depth, (start, stop), op[CHILD], program, slots)
    return to if good else -LEFT - 1


@compiled
def transcode(data: Array, spans: Array, program: Array, symbols: Array, work: Array, result: Array) -> int:
    """Write the messages `data[spans[i, 0]:spans[i, 1]]` as Avro data, one behind the other, until the room is used up.

    `program`: (ops, types, numbers -> op). `work`: (frames, slots). `result`: (out, ends, states, first row). States
    are DONE or LEFT, for a row that is not taken and has no data. The first row that did not fit, or their number.
    """
    out, ends, states, first = result
    to = np.int64(0) if first == 0 else ends[first - 1]
    for row in range(first, len(spans)):
        behind = _message(data, (spans[row, 0], spans[row, 1]), program, symbols, work, out, to)
        if behind == -FULL - 1:
            return row
        states[row] = DONE if behind >= 0 else LEFT
        to = behind if behind >= 0 else to
        ends[row] = to
    return len(spans)


def room() -> tuple[Array, Array]:
    """What the walk works with: frames, and the slots of each."""
    frames = np.zeros((_DEEPEST, _FRAME_COLUMNS), dtype=np.int64)
    return frames, np.zeros((_DEEPEST, MOST_FIELDS, _SLOT_COLUMNS), dtype=np.int64)
