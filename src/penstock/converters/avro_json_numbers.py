"""Compiled: floating-point numbers as Java prints them, from their bits (the digits of `java_numbers`).

The shortest digits are found by Raffaello Giulietti's algorithm (Schubfach), with integers only: a number, and the
borders of what is rounded to it, are scaled by a power of ten from a table of 126-bit ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled import compiled, high_product, inlined

Array = Any
U64 = Any

_U = np.uint64
_ZERO, _ONE, _TWO, _TEN, _HUNDRED = _U(0), _U(1), _U(2), _U(10), _U(100)
_LOW_63, _63 = _U(2**63 - 1), _U(63)
_LEAST_POWER, _MOST_POWER = -324, 292
# Logarithms in fixed point: log10(2) and log10(4/3) by 2**41, log2(10) by 2**38.
_LOG10_2, _LOG10_4_3, _LOG2_10 = 661_971_961_083, 274_743_187_321, 913_124_641_741
_LEAST_PLAIN, _MOST_PLAIN = -3, 7
_DOT, _NIL, _MINUS, _E = ord("."), ord("0"), ord("-"), ord("E")


def _tens(power: int) -> tuple[int, int]:
    """10**-power, scaled to 126 bits and rounded up, as its upper and lower 63 bits."""
    if power > 0:
        scale = (10**power).bit_length() + 125
        while 2**scale // 10**power >= 2**126:
            scale -= 1
        exact = 2**scale // 10**power
    else:
        exact, bits = 10**-power, (10**-power).bit_length()
        exact = exact >> (bits - 126) if bits > 126 else exact << (126 - bits)  # noqa: PLR2004
    return (exact + 1) >> 63, (exact + 1) & (2**63 - 1)


_TENS = np.array([_tens(power) for power in range(_LEAST_POWER, _MOST_POWER + 1)], dtype=np.uint64)
_POWERS = np.array([10**power for power in range(20)], dtype=np.uint64)
_NAN, _INFINITY = np.frombuffer(b'"NaN"', dtype=np.uint8), np.frombuffer(b'"-Infinity"', dtype=np.uint8)


@inlined
def digits_of(value: U64) -> int:
    """How many decimal digits a number has; 1 for 0."""
    count = 1
    while count < len(_POWERS) and value >= _POWERS[count]:
        count += 1
    return count


@inlined
def put(out: Array, to: int, value: U64, count: int) -> U64:
    """Write the last `count` digits of `value` at `to`, with zeros before them; what is left of it."""
    for i in range(to + count - 1, to - 1, -1):
        rest = value // _TEN
        out[i] = np.uint8(_NIL + np.int64(value - rest * _TEN))
        value = rest
    return value


@inlined
def _scaled(upper: U64, lower: U64, number: U64) -> U64:
    """`number` by a power of ten: two bits behind the point, the lowest one set where anything was cut off."""
    product = upper * number
    middle = (product >> _ONE) + high_product(lower, number)
    whole = high_product(upper, number) + (middle >> _63)
    return whole | (((middle & _LOW_63) + _LOW_63) >> _63)


@inlined
def shortest(fraction: U64, power: int, regular: bool) -> tuple[U64, int]:
    """(digits, exponent of ten) of `fraction * 2**power`, two digits at least.

    `regular`: whether the next smaller number is as far away as the next greater one.
    """
    ten = (power * _LOG10_2) >> 41 if regular else (power * _LOG10_2 - _LOG10_4_3) >> 41
    shift = np.uint64(power + ((-ten * _LOG2_10) >> 38) + 2)
    upper, lower = _TENS[ten - _LEAST_POWER, 0], _TENS[ten - _LEAST_POWER, 1]
    four, odd = fraction << _TWO, fraction & _ONE
    value = _scaled(upper, lower, four << shift)
    below = _scaled(upper, lower, (four - (_TWO if regular else _ONE)) << shift) + odd
    above = _scaled(upper, lower, (four + _TWO) << shift) - odd
    digits = value >> _TWO
    if digits >= _HUNDRED:
        tens = digits // _TEN * _TEN
        down, up = below <= tens << _TWO, (tens + _TEN) << _TWO <= above
        if down != up:
            return (tens if down else tens + _TEN), ten
    down, up = below <= digits << _TWO, (digits + _ONE) << _TWO <= above
    if down == up:
        half = (digits << _TWO) + _TWO
        down = value < half or (value == half and digits & _ONE == _ZERO)
    return (digits if down else digits + _ONE), ten


@compiled
def _exponent(out: Array, to: int, power: int) -> int:
    out[to] = _E
    to += 1
    if power < 0:
        out[to] = _MINUS
        to, power = to + 1, -power
    count = digits_of(np.uint64(power))
    put(out, to, np.uint64(power), count)
    return to + count


@compiled
def _laid_out(out: Array, to: int, digits: U64, power: int) -> int:
    """Write `digits * 10**power` as Java lays it out; the place behind it."""
    while digits % _TEN == _ZERO:
        digits, power = digits // _TEN, power + 1
    count = digits_of(digits)
    point = count + power
    if not _LEAST_PLAIN <= point - 1 < _MOST_PLAIN:
        first = put(out, to + 2, digits, count - 1)
        put(out, to, first, 1)
        out[to + 1] = _DOT
        if count == 1:
            out[to + 2] = _NIL
        return _exponent(out, to + 1 + max(count, 2), point - 1)
    if point <= 0:
        out[to], out[to + 1] = _NIL, _DOT
        put(out, to + 2, digits, count - point)
        return to + 2 + count - point
    if point >= count:
        put(out, to, digits * _POWERS[point - count], point)
        out[to + point], out[to + point + 1] = _DOT, _NIL
        return to + point + 2
    whole = put(out, to + point + 1, digits, count - point)
    put(out, to, whole, point)
    out[to + point] = _DOT
    return to + count + 1


@compiled
def _word(out: Array, to: int, negative: bool, is_nan: bool) -> int:
    """What is no number, as a quoted word."""
    if is_nan:
        out[to : to + 5] = _NAN
        return to + 5
    if negative:
        out[to : to + 11] = _INFINITY
        return to + 11
    out[to] = _INFINITY[0]
    out[to + 1 : to + 10] = _INFINITY[2:]
    return to + 10


@compiled
def floating(out: Array, to: int, bits: U64, size: int) -> int:
    """Write the number whose IEEE 754 bits these are, in 4 or 8 bytes; the place behind it. Takes 26 bytes at most."""
    stored, top = (np.int64(52), np.int64(0x7FF)) if size == 8 else (np.int64(23), np.int64(0xFF))  # noqa: PLR2004
    negative = (bits >> np.uint64(size * 8 - 1)) & _ONE == _ONE
    fraction = bits & ((_ONE << np.uint64(stored)) - _ONE)
    exponent = np.int64(bits >> np.uint64(stored)) & top
    if exponent == top:
        return _word(out, to, negative, fraction != _ZERO)
    if negative:
        out[to] = _MINUS
        to += 1
    power = max(exponent, 1) - (top >> 1) - stored
    regular = fraction != _ZERO or exponent <= 1
    if exponent > 0:
        fraction |= _ONE << np.uint64(stored)
    elif fraction == _ZERO:
        out[to], out[to + 1], out[to + 2] = _NIL, _DOT, _NIL
        return to + 3
    if -stored <= power <= 0 and fraction & ((_ONE << np.uint64(-power)) - _ONE) == _ZERO:
        return _laid_out(out, to, fraction >> np.uint64(-power), 0)
    # Numbers with a single digit at this scale are computed ten times as large: Java writes two digits at least.
    if exponent == 0 and fraction < np.uint64(3 if size == 8 else 8):  # noqa: PLR2004
        digits, ten = shortest(fraction * _TEN, power, regular)
        return _laid_out(out, to, digits, ten - 1)
    digits, ten = shortest(fraction, power, regular)
    return _laid_out(out, to, digits, ten)
