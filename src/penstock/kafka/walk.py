"""The compiled walk over record batches: headers, records, values. Nothing else is compiled.

No input makes these functions read or write outside the arrays they are given: every length is checked against what
is left before it is used. A failure is returned as a code and a place, never raised. The layout walked here is that of
Kafka's record batch, version 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.compiled import compiled, memcpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Ints = NDArray[np.int64]

# Columns of a batch table: one int64 row per batch.
POSITION, END, BASE_OFFSET, LAST_OFFSET, ATTRIBUTES, BASE_TIMESTAMP, MAX_TIMESTAMP = range(7)
PRODUCER_ID, RECORDS, CRC, BODY_START, BODY_END = range(7, 12)
COLUMNS = 12

# Columns of a span table: one int64 row per record; a length of -1 is null.
VALUE_START, VALUE_SIZE, KEY_START, KEY_SIZE, HEADERS_START, HEADERS_SIZE = range(6)

HEADER_SIZE = 61  # of a batch, up to its first record
SMALLEST_RECORD = 7  # one byte for each of its fields
_LENGTH_AT, _MAGIC_AT, _UP_TO_LENGTH = 8, 16, 12
APPEND_TIME = 8  # attribute bit: the broker's time is every record's time
_VARINT_BITS = 63
_LAST_OFFSET = 0x7FFFFFFFFFFFFFFF
_WIRE_PREFIX = 5

# What is wrong, as returned by scan() and walk().
FINE, OLD_MAGIC, NEW_MAGIC, BAD_LENGTH, BAD_OFFSETS, BAD_COUNT = range(6)
BAD_BODY, BAD_RECORD, BAD_RECORD_OFFSET, BAD_HEADERS, TRAILING_BYTES, NO_ROOM = range(6, 12)

NOT_WIRE, NULL_VALUE = -1, -2  # schema ids of values that have none
NO_MARKER = -1


@compiled
def _big_endian(data: Bytes, at: int, size: int) -> int:
    """The signed integer of `size` bytes at `at`, which the caller has checked."""
    value: int = np.int64(np.int8(data[at]))
    for i in range(at + 1, at + size):
        value = (value << 8) | np.int64(data[i])
    return value


@compiled
def varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """The zigzag number at `at` and the place behind it; -1 where none ends before `end`, or `at` is -1 already."""
    value = np.int64(0)
    shift = 0
    if at < 0:
        return value, -1
    while at < end and shift <= _VARINT_BITS:
        byte = np.int64(data[at])
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:  # noqa: PLR2004 - the continuation bit
            return ((value >> 1) & np.int64(0x7FFFFFFFFFFFFFFF)) ^ -(value & 1), at
        shift += 7
    return np.int64(0), -1


@compiled
def scan(data: Bytes, start: int, end: int, table: Ints) -> tuple[int, int, int]:
    """Fill `table` with the batches that lie whole in `data[start:end]`.

    Returns how many there are, what is wrong behind them, and where. A batch cut off by `end` is not wrong.
    """
    found, at, last = 0, max(start, 0), np.int64(-1)
    end = min(end, len(data))
    while end - at >= _UP_TO_LENGTH:
        size = _big_endian(data, at + _LENGTH_AT, 4)
        if end - at > _MAGIC_AT and data[at + _MAGIC_AT] != 2:  # noqa: PLR2004 - the only version since 0.11
            return found, OLD_MAGIC if data[at + _MAGIC_AT] < 2 else NEW_MAGIC, at  # noqa: PLR2004
        if size < HEADER_SIZE - _UP_TO_LENGTH:
            return found, BAD_LENGTH, at
        if size > end - at - _UP_TO_LENGTH:
            break
        if found >= len(table):
            return found, NO_ROOM, at
        base, delta = _big_endian(data, at, 8), _big_endian(data, at + 23, 4)
        if base <= last or delta < 0 or delta > _LAST_OFFSET - base:  # a sum that overflows proves nothing here
            return found, BAD_OFFSETS, at
        last = base + delta
        count = _big_endian(data, at + 57, 4)
        behind = at + _UP_TO_LENGTH + size
        if count < 0:
            return found, BAD_COUNT, at
        row = table[found]
        row[POSITION], row[END], row[BASE_OFFSET], row[LAST_OFFSET] = at, behind, base, last
        row[CRC] = _big_endian(data, at + 17, 4) & 0xFFFFFFFF
        row[ATTRIBUTES] = _big_endian(data, at + 21, 2)
        row[BASE_TIMESTAMP], row[MAX_TIMESTAMP] = _big_endian(data, at + 27, 8), _big_endian(data, at + 35, 8)
        row[PRODUCER_ID], row[RECORDS] = _big_endian(data, at + 43, 8), count
        row[BODY_START], row[BODY_END] = at + HEADER_SIZE, behind
        found += 1
        at = behind
    return found, FINE, at


@compiled
def _headers(data: Bytes, at: int, end: int) -> bool:
    """Whether `data[at:end]` is one whole header area."""
    count, at = varint(data, at, end)
    if at < 0 or count < 0:
        return False
    for _ in range(count):
        for lowest in (0, -1):  # a key is never null, a value may be
            size, at = varint(data, at, end)
            if at < 0 or size < lowest or size > end - at:
                return False
            at += max(size, 0)
    return at == end


@compiled
def _record(data: Bytes, at: int, end: int, span: Ints) -> tuple[int, int, int, int]:
    """Read the record at `at` into `span`: time delta, offset delta, the place behind, what is wrong."""
    size, at = varint(data, at, end)
    if at < 0 or size < 1 or size > end - at:
        return 0, 0, at, BAD_RECORD
    end = at + size
    time, at = varint(data, at + 1, end)
    offset, at = varint(data, at, end)
    for column in (KEY_START, VALUE_START):
        size, at = varint(data, at, end)
        if at < 0 or size < -1 or size > end - at:
            return 0, 0, at, BAD_RECORD
        span[column], span[column + 1] = at, size
        at += max(size, 0)
    if not _headers(data, at, end):
        return 0, 0, at, BAD_HEADERS
    span[HEADERS_START], span[HEADERS_SIZE] = at, end - at
    return time, offset, end, FINE


@compiled
def walk(
    data: Bytes, table: Ints, start: int, end: int, offsets: Ints, timestamps: Ints, spans: Ints
) -> tuple[int, int, int]:
    """Fill the last three arrays with the records of the batches in `table` whose offsets lie in `[start, end)`.

    Returns how many there are, what is wrong, and in which batch; records of that batch are not among them.
    """
    filled = 0
    room = min(len(offsets), len(timestamps), len(spans))
    span = np.empty(6, np.int64)
    for batch in range(len(table)):
        row = table[batch]
        whole, at, body_end = filled, row[BODY_START], row[BODY_END]
        if at < 0 or at > body_end or body_end > len(data):
            return whole, BAD_BODY, batch
        last = row[BASE_OFFSET] - 1
        by_broker = row[ATTRIBUTES] & APPEND_TIME
        for _ in range(row[RECORDS]):
            time, delta, at, wrong = _record(data, at, body_end, span)
            if wrong != FINE:
                return whole, wrong, batch
            if delta < 0 or delta > row[LAST_OFFSET] - row[BASE_OFFSET] or row[BASE_OFFSET] + delta <= last:
                return whole, BAD_RECORD_OFFSET, batch
            offset = row[BASE_OFFSET] + delta
            last = offset
            if start <= offset < end:
                if filled >= room:
                    return whole, NO_ROOM, batch
                offsets[filled] = offset
                timestamps[filled] = row[MAX_TIMESTAMP] if by_broker else row[BASE_TIMESTAMP] + time
                spans[filled] = span
                filled += 1
        if at != body_end:
            return whole, TRAILING_BYTES, batch
    return filled, FINE, len(table)


@compiled
def markers(data: Bytes, table: Ints, types: Ints) -> int:
    """Fill `types` with the kind of each control batch in `table`: 0 abort, 1 commit, NO_MARKER where it is empty.

    Returns the first batch that is malformed, or the number of batches.
    """
    span = np.empty(6, np.int64)
    for batch in range(min(len(table), len(types))):
        row = table[batch]
        types[batch] = NO_MARKER
        if row[RECORDS] == 0:
            continue
        if row[BODY_START] < 0 or row[BODY_END] > len(data):
            return batch
        _, _, _, wrong = _record(data, row[BODY_START], row[BODY_END], span)
        if wrong != FINE or span[KEY_SIZE] < 4:  # noqa: PLR2004 - version and kind, two bytes each
            return batch
        types[batch] = _big_endian(data, span[KEY_START] + 2, 2)
    return min(len(table), len(types))


@compiled
def lay(data: Bytes, spans: Ints, column: int, strip: int, extra: int, ends: Ints, ids: NDArray[np.int32]) -> int:
    """Where each byte string of `spans[:, column:column + 2]` will end once copied; returns how many are null.

    `extra`: bytes appended to each that is not null. `ids`: with `strip` the schema id of each; a value that is not
    Confluent wire keeps all its bytes.
    """
    nulls, at = 0, 0
    ends[0] = 0
    for i in range(len(spans)):
        start, size = spans[i, column], spans[i, column + 1]
        if size < 0:
            nulls += 1
            if strip:
                ids[i] = NULL_VALUE
        else:
            at += size + extra
            if strip:
                ids[i] = NOT_WIRE
                if size >= _WIRE_PREFIX and 0 <= start <= len(data) - _WIRE_PREFIX and data[start] == 0:
                    found = _big_endian(data, start + 1, 4)
                    if found >= 0:
                        ids[i] = found
                        at -= strip
        ends[i + 1] = at
    return nulls


@compiled
def gather(data: Bytes, spans: Ints, column: int, separator: Bytes, ends: Ints, out: Bytes) -> bool:
    """Copy the byte strings to where lay() put them, `separator` behind each; False if they do not fit."""
    extra = len(separator)
    for i in range(len(spans)):
        start, size = spans[i, column], spans[i, column + 1]
        if size < 0:
            continue
        at, taken = ends[i], ends[i + 1] - ends[i] - extra
        start += size - taken
        if taken < 0 or start < 0 or start > len(data) - taken or at < 0 or at > len(out) - taken - extra:
            return False
        memcpy(out, at, data, start, taken)
        for j in range(extra):
            out[at + taken + j] = separator[j]
    return True


def warm() -> None:
    """Compile all of it, or load it from numba's cache, so that the first batch need not wait."""
    data, empty = np.frombuffer(bytes(HEADER_SIZE), np.uint8), np.frombuffer(b"", np.uint8)
    table, spans = np.zeros((1, COLUMNS), np.int64), np.zeros((1, 6), np.int64)
    numbers, ids = np.zeros(2, np.int64), np.zeros(1, np.int32)
    scan(data, 0, 0, table)
    walk(data, table, 0, 0, numbers, numbers, spans)
    markers(data, table, numbers)
    lay(data, spans, 0, 0, 0, numbers, ids)
    gather(data, spans, 0, empty, numbers, np.zeros(1, np.uint8))
