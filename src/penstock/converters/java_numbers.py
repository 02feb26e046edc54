"""Floating-point numbers as Java writes them: the shortest digits, scientific below 0.001 and from ten millions on."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np

_LEAST_PLAIN, _MOST_PLAIN = -3, 7


def double_text(value: float) -> str:
    """`Double.toString`, as JSON: what is no number is a quoted word."""
    return _text(value, repr(value))


def float_text(value: float) -> str:
    """`Float.toString` of a number that was stored in 32 bits."""
    return _text(value, str(np.float32(value)))


def _text(value: float, shortest: str) -> str:
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    # Java writes two digits at least, and then those nearest to the number: 4.9E-324, where 5E-324 would do.
    if len(Decimal(shortest).as_tuple().digits) == 1:
        shortest = f"{value:.1e}"
    sign, digits, power = Decimal(shortest).as_tuple()
    minus, text = "-" if sign else "", "".join(map(str, digits)).rstrip("0")
    if not text:
        return f"{minus}0.0"
    # The number is 0.TEXT times ten to the power of `point`.
    point = len(digits) + int(power)
    if _LEAST_PLAIN <= point - 1 < _MOST_PLAIN:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{text}"
        whole, fraction = text[:point].ljust(point, "0"), text[point:]
        return f"{minus}{whole}.{fraction or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}"
