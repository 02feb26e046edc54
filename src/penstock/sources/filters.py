"""Filters that Spark pushes down: which ones the source takes over, and what they mean for scalars, arrays and ranges.

A filter is taken over only where it is decided exactly, so that Spark need not look at it again.
"""

from __future__ import annotations

import datetime as dt
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from pyspark.sql.datasource import Filter

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_MICROSECOND = dt.timedelta(microseconds=1)
_LEAST, _MOST = -(2**63), 2**63 - 1


def _among(value: Any, wanted: Any) -> Any:  # noqa: ANN401 - a scalar or an array
    return np.isin(value, wanted) if isinstance(value, np.ndarray) else value in wanted


def _always(value: Any, _: Any) -> Any:  # noqa: ANN401
    return np.ones(len(value), np.bool_) if isinstance(value, np.ndarray) else value is not None


_TESTS: dict[type[Filter], Callable[[Any, Any], Any]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    In: _among,
    IsNotNull: _always,
    StringStartsWith: str.startswith,
    StringEndsWith: str.endswith,
    StringContains: operator.contains,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """What a column must be. `value`: times in microseconds; a tuple for In. The column itself is never null."""

    column: str
    kind: type[Filter]
    value: Any = None
    negated: bool = False

    def holds(self, value: Any) -> Any:  # noqa: ANN401 - a scalar, or an array of numbers
        """Whether a value passes; of an array, whether each one does."""
        found = _TESTS[self.kind](value, self.value)
        if not self.negated:
            return found
        return ~found if isinstance(found, np.ndarray) else not found


def accept(filters: Iterable[Filter], columns: Collection[str]) -> tuple[tuple[Condition, ...], list[Filter]]:
    """The filters on `columns` as conditions, and all others, which stay Spark's."""
    conditions, rest = [], []
    for each in filters:
        condition = _condition(each, columns)
        if condition is None:
            rest.append(each)
        else:
            conditions.append(condition)
    return tuple(conditions), rest


def passes(conditions: Iterable[Condition], row: Mapping[str, Any]) -> bool:
    """Whether the columns that `row` has fit all conditions on them."""
    return all(bool(each.holds(row[each.column])) for each in conditions if each.column in row)


def bounds(conditions: Iterable[Condition], column: str) -> tuple[int, int]:
    """The range `[start, end)` outside of which no value of an integer column passes."""
    start, end = _LEAST, _MOST
    for each in conditions:
        if each.column != column or each.negated:
            continue
        values = each.value if each.kind is In else (each.value,)
        if each.kind in (EqualTo, EqualNullSafe, In, GreaterThanOrEqual):
            start = max(start, min(values, default=_MOST))
        if each.kind in (EqualTo, EqualNullSafe, In, LessThanOrEqual):
            end = min(end, max(values, default=_LEAST) + 1)
        if each.kind is GreaterThan:
            start = max(start, each.value + 1)
        if each.kind is LessThan:
            end = min(end, each.value)
    return start, end


def _condition(pushed: Filter, columns: Collection[str]) -> Condition | None:
    negated = isinstance(pushed, Not)
    inner: Any = pushed.child if isinstance(pushed, Not) else pushed
    if type(inner) not in _TESTS or len(inner.attribute) != 1 or inner.attribute[0] not in columns:
        return None
    if isinstance(inner, IsNotNull):
        return Condition(inner.attribute[0], IsNotNull, None, negated)
    given = inner.value if isinstance(inner, In) else (inner.value,)
    values = tuple(_plain(value) for value in given)
    if any(value is None for value in values):  # SQL's third truth value
        return None
    return Condition(inner.attribute[0], type(inner), values if isinstance(inner, In) else values[0], negated)


def _plain(value: Any) -> str | int | None:  # noqa: ANN401 - Spark's literals
    """A literal as columns are compared here; None where it is not known how."""
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=dt.timezone.utc)
        return (aware - _EPOCH) // _MICROSECOND
    return value if isinstance(value, (str, int)) and not isinstance(value, bool) else None
