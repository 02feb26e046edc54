"""Which time partitions have all their records: pure (docs/operating.md says it for people).

A time partition is complete once every topic-partition of its topic has passed its end, and the lateness allowed. A
topic-partition has passed a time when it has committed a record of a time partition that begins then or later, or when
all that Kafka has from before that time is committed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from penstock.errors import ConfigError
from penstock.partitioners.zones import DAY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from penstock.model import TopicPartition
    from penstock.partitioners.joda import Part, PathFormat
    from penstock.partitioners.time import TimePartitioner

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local times are counted without their zone
_MS = timedelta(milliseconds=1)
_UNITS = {"year": 1, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0}
"""Units and the least number of each."""
_LETTERS = {"Y": "year", "y": "year", "M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second"}
_TWO_DIGITS, _TEXT = 2, 3


@dataclass(frozen=True, slots=True)
class Period:
    """The times of a time partition, ms since 1970 UTC: no record of it is before `start` or at or after `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TimePath:
    """Reads the period out of an encoded partition, which may have fields before its time and a schema behind it."""

    pattern: re.Pattern[str]
    finest: str
    partitioner: TimePartitioner

    @classmethod
    def of(cls, partitioner: TimePartitioner, delim: str) -> TimePath:
        """For what a partitioner writes.

        Raises:
            ConfigError: its `path.format` does not say the time: years, or a unit before a finer one, are missing.
        """
        given = partitioner.path_format
        units = {_LETTERS[part[0]] for part in given.parts if not isinstance(part, str) and part[0] in _LETTERS}
        wanted = list(_UNITS)[: len(units)]
        if not units or units != set(wanted) or not all(map(_is_readable, given.parts)):
            msg = (
                "path.format: the time of a partition cannot be read from it; completeness needs years with four "
                "digits, and months, days, hours, minutes, seconds as far as they go, as numbers or names of months"
            )
            raise ConfigError([msg])
        between = re.escape(delim)
        seen: set[str] = set()
        time = "".join(_as_regex(part, given, seen) for part in given.parts)
        pattern = re.compile(rf"(?:.*{between})?(?P<time>{time})(?:{between}schema_name=.*)?", re.DOTALL)
        return cls(pattern, wanted[-1], partitioner)

    def period(self, label: str) -> Period | None:
        """The period of an encoded partition; None for one without a time, such as that of tombstones."""
        found = self.pattern.fullmatch(label)
        if found is None:
            return None
        values = {name: text for name, text in found.groupdict().items() if name in _UNITS}
        try:
            numbers = {name: self._number(name, text) for name, text in values.items()}
            local = datetime(*(numbers.get(name, least) for name, least in _UNITS.items()))  # type: ignore[arg-type] # noqa: DTZ001
        except ValueError:
            return None
        start = (local - _EPOCH) // _MS
        unit_end = (_next(local, self.finest) - _EPOCH) // _MS
        # A path may show less than a span's beginning, and a span may be longer than what the path shows.
        duration = self.partitioner.duration_ms
        end = max(unit_end, (unit_end - 1) // duration * duration + duration)
        return Period(start - max(self._offsets(start)), end - min(self._offsets(end)))

    def _number(self, unit: str, text: str) -> int:
        if unit == "month" and not text.isdecimal():
            names = self.partitioner.path_format.names.months
            return next(width.index(text) for width in names if text in width) + 1
        return int(text)

    def _offsets(self, local: int) -> tuple[int, int]:
        """What the zone may add around a local time: on days when it changes, the wider reading is the safe one."""
        zone = self.partitioner.zone
        return zone.offset(local - DAY), zone.offset(local + DAY)


def _is_readable(part: str | Part) -> bool:
    if isinstance(part, str):
        return True
    letter, count = part
    return letter in _LETTERS and not (letter in "Yy" and count == _TWO_DIGITS)


def _as_regex(part: str | Part, given: PathFormat, seen: set[str]) -> str:
    if isinstance(part, str):
        return re.escape(part)
    letter, count = part
    unit = _LETTERS[letter]
    if unit in seen:
        return f"(?P={unit})"
    seen.add(unit)
    if letter == "M" and count >= _TEXT:
        names = given.names.months[count > _TEXT]
        return f"(?P<month>{'|'.join(map(re.escape, names))})"
    return rf"(?P<{unit}>\d+)"


def _next(local: datetime, unit: str) -> datetime:
    """The beginning of the next year, month, ... after one that begins at `local`."""
    if unit == "year":
        return local.replace(year=local.year + 1)
    if unit == "month":
        return local.replace(year=local.year + local.month // 12, month=local.month % 12 + 1)
    return local + timedelta(**{f"{unit}s": 1})


@dataclass(frozen=True, slots=True)
class Verdict:
    """How far a topic is complete. `waits_for`: the topic-partitions that have not passed the next end yet."""

    until_ms: int | None
    waits_for: tuple[TopicPartition, ...] = ()


def complete_until(
    tps: Iterable[TopicPartition],
    ends: Iterable[int],
    newest: Mapping[TopicPartition, int],
    has_committed_before: Callable[[TopicPartition, int], bool],
    lateness_ms: int,
) -> Verdict:
    """The last of `ends`, those of time partitions that are not complete yet, that every topic-partition has passed.

    `newest`: where the newest time partition of each topic-partition begins. `has_committed_before`: whether all that
    Kafka has from before a time is committed; asked only where the records do not say it.
    """
    every, until = sorted(tps), None
    for end in sorted(set(ends)):
        passed = end + lateness_ms
        behind = tuple(
            tp for tp in every if newest.get(tp, passed - 1) < passed and not has_committed_before(tp, passed)
        )
        if behind:
            return Verdict(until, behind)
        until = end
    return Verdict(until)
