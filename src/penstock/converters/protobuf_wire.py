"""Protobuf's wire format, read by compiled code: tags, values, lists. Nothing is read at or behind `end`."""

# ruff: noqa: PLR2004 - the bytes and sizes of the wire format

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.compiled import compiled

if TYPE_CHECKING:
    from penstock.fields.avro_walk import Array

# How a value stands on the wire, and what it becomes.
INT32, UINT32, INT64, SINT32, SINT64, BOOL, ENUM, FIXED32, SFIXED32, FIXED64, FLOAT, DOUBLE, TEXT, BYTES = range(14)
WIRE_VARINT, WIRE_FIXED64, WIRE_LENGTH, WIRE_FIXED32 = 0, 1, 2, 5


@compiled
def varint(data: Array, at: int, end: int) -> tuple[np.uint64, int]:
    """A varint and the place behind it, which is -1 where there is none."""
    value = np.uint64(0)
    for place in range(10):
        if at >= end:
            return value, -1
        byte = np.uint64(data[at])
        at += 1
        value |= (byte & np.uint64(0x7F)) << np.uint64(7 * place)
        if byte < np.uint64(0x80):
            return value, at if place < 9 or byte < np.uint64(2) else -1
    return value, -1


@compiled
def wire_of(conv: int) -> int:
    """The wire type that a value has."""
    if conv <= ENUM:
        return WIRE_VARINT
    if conv in (FIXED64, DOUBLE):
        return WIRE_FIXED64
    return WIRE_LENGTH if conv >= TEXT else WIRE_FIXED32


@compiled
def past(data: Array, at: int, end: int, wire: int) -> tuple[int, int]:
    """(where a value begins, the place behind it, -1 where it is none) of what stands behind a tag."""
    if wire == WIRE_VARINT:
        return at, varint(data, at, end)[1]
    if wire == WIRE_LENGTH:
        size, at = varint(data, at, end)
        if at < 0 or size > np.uint64(end - at):
            return at, -1
        return at, at + np.int64(size)
    width = 8 if wire == WIRE_FIXED64 else 4 if wire == WIRE_FIXED32 else -1
    return at, at + width if 0 < width <= end - at else -1


@compiled
def tag(data: Array, at: int, end: int) -> tuple[int, int, int]:
    """(number, wire type, place behind it) of a tag; the place is -1 where there is none."""
    value, at = varint(data, at, end)
    if at < 0 or value > np.uint64(0xFFFFFFFF) or value < np.uint64(8):
        return 0, 0, -1
    return np.int64(value >> np.uint64(3)), np.int64(value & np.uint64(7)), at


@compiled
def packed(data: Array, at: int, end: int, wire: int) -> int:
    """How many values a packed list has; -1 where it is none."""
    if wire == WIRE_VARINT:
        count = 0
        while at < end:
            at = varint(data, at, end)[1]
            if at < 0:
                return -1
            count += 1
        return count
    width = 8 if wire == WIRE_FIXED64 else 4
    return (end - at) // width if (end - at) % width == 0 else -1


@compiled
def is_text(data: Array, at: int, end: int) -> bool:
    """Whether bytes are UTF-8."""
    while at < end:
        byte = data[at]
        at += 1
        if byte < 0x80:
            continue
        more = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
        if byte < 0xC2 or byte > 0xF4 or at + more > end:
            return False
        lowest = 0xA0 if byte == 0xE0 else 0x90 if byte == 0xF0 else 0x80
        highest = 0x9F if byte == 0xED else 0x8F if byte == 0xF4 else 0xBF
        if not lowest <= data[at] <= highest:
            return False
        for place in range(at + 1, at + more):
            if data[place] & 0xC0 != 0x80:
                return False
        at += more
    return True


@compiled
def whole(data: Array, at: int, end: int, conv: int) -> Any:  # noqa: ANN401 - an int64
    """A whole number, as Avro has it."""
    if conv <= ENUM:
        bits = varint(data, at, end)[0]
        if conv in (INT32, ENUM):
            return np.int64(np.int32(bits & np.uint64(0xFFFFFFFF)))
        if conv == UINT32:
            return np.int64(bits & np.uint64(0xFFFFFFFF))
        if conv == BOOL:
            return np.int64(bits != np.uint64(0))
        if conv == SINT32:
            bits &= np.uint64(0xFFFFFFFF)
        if conv in (SINT32, SINT64):
            return np.int64(bits >> np.uint64(1)) ^ -np.int64(bits & np.uint64(1))
        return np.int64(bits)
    bits = np.uint64(0)
    for place in range(8 if conv == FIXED64 else 4):
        bits |= np.uint64(data[at + place]) << np.uint64(8 * place)
    return np.int64(np.int32(bits)) if conv == SFIXED32 else np.int64(bits)


@compiled
def inner(data: Array, at: int, end: int, number: int, wire: int) -> tuple[int, int, bool]:
    """(start, end, whether it is one) of a field in a small message; start is -1 where it is not there."""
    start, stop = -1, -1
    while at < end:
        found, kind, at = tag(data, at, end)
        if at < 0:
            return -1, -1, False
        begins, behind = past(data, at, end, kind)
        if behind < 0:
            return -1, -1, False
        if found == number and kind == wire:
            if start >= 0:
                return -1, -1, False
            start, stop = begins, behind
        at = behind
    return start, stop, True
