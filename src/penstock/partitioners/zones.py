"""Time zones as arithmetic on milliseconds since 1970 UTC, whole arrays at once."""

from __future__ import annotations

import difflib
import functools
import re
import zoneinfo
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Longs = NDArray[np.int64]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIXED = re.compile(r"([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", re.ASCII)
_HOUR, DAY = 3_600_000, 86_400_000
FIRST_MS, LAST_MS = -62_135_510_400_000, 253_402_214_400_000
"""The second day of year 1 and the last but one of year 9999: times beyond have no calendar here."""
_FOREVER = 2**62
_MANY_YEARS = 30


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone. `id`: as the user wrote it; `rules`: Python's own object."""

    id: str
    rules: tzinfo

    @classmethod
    def parse(cls, text: str) -> Zone:
        """An IANA id such as `America/Los_Angeles`, `UTC`, or a fixed offset such as `+02:00`.

        Raises:
            ValueError: there is no such zone; a phrase that follows the property's name.
        """
        fixed = _FIXED.fullmatch(text)
        if fixed:
            hours, minutes, seconds = (int(part or 0) for part in fixed.groups()[1:])
            if hours <= 23 and minutes <= 59 and seconds <= 59:  # noqa: PLR2004 - a clock
                offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
                return cls(text, timezone(-offset if fixed[1] == "-" else offset))
        if text in _names():
            return cls(text, _rules(text))
        near = difflib.get_close_matches(text, sorted(_names()), n=1)
        advice = f"; did you mean `{near[0]}`?" if near else ""
        msg = f"must be a time zone such as America/Los_Angeles, UTC or +02:00{advice}"
        raise ValueError(msg)

    def offset(self, utc_ms: int) -> int:
        """What is added to an instant for the local time."""
        return _offset(self.rules, utc_ms)

    def offsets(self, utc_ms: Longs) -> Longs:
        """What is added to each instant for its local time."""
        if isinstance(self.rules, timezone) or len(utc_ms) == 0:
            return np.full(len(utc_ms), self.offset(0), dtype=np.int64)
        first, last = _year(int(utc_ms.min())), _year(int(utc_ms.max()))
        if last - first < _MANY_YEARS:
            return _offsets(self.rules, first, last, utc_ms)
        return self._far_apart(utc_ms)

    def _far_apart(self, utc_ms: Longs) -> Longs:
        """The same with a table for each year that occurs: one wrong clock would ask for those of 8000 years."""
        years = np.clip(utc_ms, FIRST_MS, LAST_MS).astype("M8[ms]").astype("M8[Y]").astype(np.int64) + 1970
        found = np.empty(len(utc_ms), dtype=np.int64)
        for year in np.unique(years).tolist():
            rows = years == year
            found[rows] = _offsets(self.rules, year, year, utc_ms[rows])
        return found

    def to_utc(self, local_ms: int) -> int:
        """The instant of a local time, as Joda's `convertLocalToUTC` without `strict` finds it.

        A time that occurs twice is the later one in the east of Greenwich and the earlier one in the west; a time that
        does not occur is read with the offset before the gap.
        """
        guess = self.offset(local_ms)
        offset = self.offset(local_ms - guess)
        if guess != offset and guess < 0:
            later, earlier = self._next_change(local_ms - guess), self._next_change(local_ms - offset)
            if later != earlier:
                offset = guess
        return local_ms - offset

    def scheduled(self, now_ms: int, interval_ms: int) -> int:
        """The last instant up to now of: start of the local day, and every interval from there to the day's end."""
        start = self._day_start(now_ms)
        return start + (now_ms - start) // interval_ms * interval_ms

    def next_scheduled(self, now_ms: int, interval_ms: int) -> int:
        """The first such instant after now; the last slot of a day ends with the day."""
        return min(self.scheduled(now_ms, interval_ms) + interval_ms, self._next_day(now_ms))

    def local(self, utc_ms: int) -> datetime:
        """The calendar and clock at an instant, for years 1 to 9999."""
        return (_EPOCH + timedelta(milliseconds=utc_ms)).astimezone(self.rules)

    def _next_day(self, now_ms: int) -> int:
        start = self._day_start(now_ms)
        date = self.local(start).date()
        later = start + 22 * _HOUR
        while self.local(later).date() <= date:
            later += _HOUR
        return self._day_start(later)

    def _day_start(self, utc_ms: int) -> int:
        """The first instant of the local day; where midnight is skipped, the one behind the gap."""
        date = self.local(utc_ms).date()
        midnight = datetime(date.year, date.month, date.day, tzinfo=self.rules)
        start = (midnight - _EPOCH) // timedelta(milliseconds=1)
        if isinstance(self.rules, timezone):
            return start
        change = self._last_change(start)
        return change if change is not None and self.local(change).date() == date else start

    def _next_change(self, utc_ms: int) -> int:
        if isinstance(self.rules, timezone):
            return _FOREVER
        starts, _ = _table(self.rules, _year(utc_ms), _year(utc_ms) + 1)
        later = starts[1:][starts[1:] > utc_ms]
        return int(later[0]) if len(later) else _FOREVER

    def _last_change(self, utc_ms: int) -> int | None:
        starts, _ = _table(self.rules, _year(utc_ms) - 1, _year(utc_ms))
        earlier = starts[1:][starts[1:] <= utc_ms]
        return int(earlier[-1]) if len(earlier) else None


@functools.cache
def _names() -> frozenset[str]:
    """Every zone of the `tzdata` package."""
    return frozenset(resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())


@functools.cache
def _rules(name: str) -> tzinfo:
    """A zone by the `tzdata` package, never by the machine's own data: all executors have to agree."""
    with resources.files("tzdata.zoneinfo").joinpath(*name.split("/")).open("rb") as file:
        return zoneinfo.ZoneInfo.from_file(file, key=name)


def _year(utc_ms: int) -> int:
    return (_EPOCH + timedelta(milliseconds=min(max(utc_ms, FIRST_MS), LAST_MS))).year


def _offset(rules: tzinfo, utc_ms: int) -> int:
    at = _EPOCH + timedelta(milliseconds=min(max(utc_ms, FIRST_MS), LAST_MS))
    offset = at.astimezone(rules).utcoffset()
    assert offset is not None  # noqa: S101 - it has a zone
    return offset // timedelta(milliseconds=1)


def _offsets(rules: tzinfo, first: int, last: int, utc_ms: Longs) -> Longs:
    starts, offsets = _table(rules, first, last)
    return offsets[np.searchsorted(starts, utc_ms, side="right") - 1]


@functools.lru_cache(maxsize=256)
def _table(rules: tzinfo, first: int, last: int) -> tuple[Longs, Longs]:
    """Instants from which on an offset holds, and the offsets, over whole years; the first instant is the beginning."""
    begin = _offset(rules, _new_year(first))
    changes = [each for year in range(first, last + 1) for each in _changes(rules, year)]
    starts = np.array([-_FOREVER, *(at for at, _ in changes)], dtype=np.int64)
    return starts, np.array([begin, *(offset for _, offset in changes)], dtype=np.int64)


@functools.lru_cache(maxsize=4096)
def _changes(rules: tzinfo, year: int) -> tuple[tuple[int, int], ...]:
    """Where the offset changes within a year, and to what: found day by day, then by bisection."""
    found, before = [], _new_year(year)
    old = _offset(rules, before)
    end = _new_year(year + 1)
    while before < end:
        after = min(before + DAY, end)
        new = _offset(rules, after)
        if new != old:
            low, high = before, after
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(rules, middle) == old else (low, middle)
            found.append((high, new))
        before, old = after, new
    return tuple(found)


def _new_year(year: int) -> int:
    if year <= 1:
        return FIRST_MS
    if year > 9999:  # noqa: PLR2004 - Python's last year
        return LAST_MS
    return (datetime(year, 1, 1, tzinfo=timezone.utc) - _EPOCH) // timedelta(milliseconds=1)
