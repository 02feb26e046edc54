"""Compiled: one Avro value without children to the JSON that Connect prints for it.

Each function takes (data, place, end, out, place) and gives both places behind the value. The first one is negative
where the compiled reader does not take the data (Python then says why), the second one where `out` has no room.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled import compiled, inlined, load, store
from penstock.converters.avro_json_numbers import digits_of, floating, put
from penstock.fields.avro_walk import zigzag

Array = Any

MOST_SMALL = 32  # bytes that any value of a fixed size takes, but for `fixed` itself
_QUOTE, _BACKSLASH, _U, _MINUS, _NIL, _PAD = (ord(each) for each in '"\\u-0=')
_TRUE, _FALSE = np.frombuffer(b"true    false   ", dtype=np.uint64)
_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", dtype=np.uint8)
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_WORD, _ESCAPED_SIZE = 8, 6
_SPACES, _QUOTES, _BACKSLASHES, _ONES, _UPPER_BITS = (np.uint64(byte * (2**64 // 255)) for byte in b' "\\\x01\x80')


def _escapes() -> Any:  # noqa: ANN401 - an array
    """What stands behind the backslash for each byte; 0 for bytes that stand for themselves."""
    letters = np.zeros(256, dtype=np.uint8)
    letters[:0x20] = _U
    for byte, letter in zip(b'\b\t\n\f\r"\\', b'btnfr"\\', strict=True):
        letters[byte] = letter
    return letters


_ESCAPES = _escapes()


@inlined
def sized(data: Array, at: int, end: int) -> tuple[int, int]:
    """The bytes' size at `at` and where they begin; (0, -1) where they do not end before `end`."""
    size, at = zigzag(data, at, end)
    if at < 0 or not 0 <= size <= end - at:
        return np.int64(0), np.int64(-1)
    return size, at


@inlined
def _plain_run(data: Array, at: int, end: int, out: Array, to: int) -> int:
    """Copy up to the first byte that is not ASCII or has to be escaped; the place of that byte.

    `out` has room for all up to `end`. A word of 8 bytes is looked at as a whole: a byte below the space, a quote or a
    backslash borrows from its own upper bit.
    """
    while end - at >= _WORD:
        word = load(data, at)
        store(out, to, word)
        special = (word - _SPACES) | ((word ^ _QUOTES) - _ONES) | ((word ^ _BACKSLASHES) - _ONES) | word
        if special & _UPPER_BITS:
            break
        at, to = at + _WORD, to + _WORD
    while at < end and data[at] < 0x80 and _ESCAPES[data[at]] == 0:  # noqa: PLR2004 - ASCII
        out[to] = data[at]
        at, to = at + 1, to + 1
    return at


@inlined
def _sequence(first: int, second: int, third: int, fourth: int) -> int:
    """The size of the UTF-8 sequence of two bytes or more that begins here; 0 where it is none (Unicode, table 3-7)."""
    if 0xC2 <= first <= 0xDF:  # noqa: PLR2004
        return 2 if 0x80 <= second <= 0xBF else 0  # noqa: PLR2004
    if 0xE0 <= first <= 0xEF:  # noqa: PLR2004
        low, high = 0xA0 if first == 0xE0 else 0x80, 0x9F if first == 0xED else 0xBF  # noqa: PLR2004
        return 3 if low <= second <= high and 0x80 <= third <= 0xBF else 0  # noqa: PLR2004
    low, high = 0x90 if first == 0xF0 else 0x80, 0x8F if first == 0xF4 else 0xBF  # noqa: PLR2004
    whole = low <= second <= high and 0x80 <= third <= 0xBF and 0x80 <= fourth <= 0xBF  # noqa: PLR2004
    return 4 if 0xF0 <= first <= 0xF4 and whole else 0  # noqa: PLR2004


@inlined
def _character(data: Array, at: int, end: int) -> int:
    """The size of the UTF-8 sequence of two bytes or more at `at`; 0 where none ends before `end`."""
    left = end - at
    third = np.int64(data[at + 2]) if left > 2 else np.int64(0)  # noqa: PLR2004
    fourth = np.int64(data[at + 3]) if left > 3 else np.int64(0)  # noqa: PLR2004
    return _sequence(np.int64(data[at]), np.int64(data[at + 1]) if left > 1 else np.int64(0), third, fourth)


@inlined
def _escaped(out: Array, to: int, byte: int) -> int:
    letter = _ESCAPES[byte]
    out[to], out[to + 1] = _BACKSLASH, letter
    if letter != _U:
        return to + 2
    out[to + 2], out[to + 3], out[to + 4], out[to + 5] = _NIL, _NIL, _HEX[byte >> 4], _HEX[byte & 15]
    return to + _ESCAPED_SIZE


@inlined
def text(data: Array, at: int, end: int, out: Array, to: int) -> tuple[int, int]:
    """A string between quotes: `data[at:end]`, all of which is its text."""
    if len(out) - to < end - at + 2:
        return at, np.int64(-1)
    out[to] = _QUOTE
    to += 1
    while at < end:
        # What is left fits as it is, with the quote behind it; escapes ask again.
        behind = _plain_run(data, at, end, out, to)
        to, at = to + behind - at, behind
        while at < end and (data[at] >= 0x80 or _ESCAPES[data[at]] != 0):  # noqa: PLR2004 - not ASCII
            if data[at] < 0x80:  # noqa: PLR2004
                if len(out) - to < end - at + _ESCAPED_SIZE:
                    return at, np.int64(-1)
                to = _escaped(out, to, np.int64(data[at]))
                at += 1
                continue
            size = _character(data, at, end)
            if size == 0:
                return np.int64(-1), to
            for i in range(size):
                out[to + i] = data[at + i]
            at, to = at + size, to + size
    out[to] = _QUOTE
    return at, to + 1


@compiled
def base64(data: Array, at: int, size: int, out: Array, to: int) -> tuple[int, int]:
    """`size` bytes in base64 between quotes."""
    if (len(out) - to - 2) // 4 < (size + 2) // 3:
        return at, np.int64(-1)
    out[to] = _QUOTE
    to += 1
    for start in range(at, at + size, 3):
        left = at + size - start
        bits = np.int64(data[start]) << 16
        if left > 1:
            bits |= np.int64(data[start + 1]) << 8
        if left > 2:  # noqa: PLR2004
            bits |= np.int64(data[start + 2])
        out[to], out[to + 1] = _ALPHABET[bits >> 18], _ALPHABET[(bits >> 12) & 63]
        out[to + 2] = _ALPHABET[(bits >> 6) & 63] if left > 1 else _PAD
        out[to + 3] = _ALPHABET[bits & 63] if left > 2 else _PAD  # noqa: PLR2004
        to += 4
    out[to] = _QUOTE
    return at + size, to + 1


@inlined
def integer(out: Array, to: int, value: int) -> int:
    """A number in decimal; the place behind it."""
    magnitude = np.uint64(value)
    if value < 0:
        out[to] = _MINUS
        to += 1
        magnitude = ~magnitude + np.uint64(1)
    count = digits_of(magnitude)
    put(out, to, magnitude, count)
    return to + count


@inlined
def boolean(out: Array, to: int, value: int) -> int:
    """A truth value; the place behind it. Avro's decoders take any byte but 0 for true."""
    store(out, to, _FALSE if value == 0 else _TRUE)
    return to + (5 if value == 0 else 4)


@inlined
def real(data: Array, at: int, end: int, size: int, out: Array, to: int) -> tuple[int, int]:
    """A floating-point number of `size` bytes."""
    if end - at < size:
        return np.int64(-1), to
    bits = np.uint64(0)
    for i in range(size):
        bits |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return at + size, floating(out, to, bits, size)


@inlined
def copied(source: Array, start: int, size: int, out: Array, to: int) -> int:
    """Copy a short text, in words of 8 bytes: up to 7 more are read and written. The place behind it."""
    for i in range(0, size, _WORD):
        store(out, to + i, load(source, start + i))
    return to + size
