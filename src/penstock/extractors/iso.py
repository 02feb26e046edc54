"""ISO-8601 texts to times, in all forms that Joda's `dateTimeParser` takes; whole columns at once where they are alike.

A text of up to 19 digits is milliseconds since 1970. A text without an offset is read in the zone of the configuration
(the connector reads it in the zone of its JVM).
"""

from __future__ import annotations

import functools
import re
from datetime import date, timedelta
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.model import Slices
    from penstock.partitioners.zones import Zone

    Longs = NDArray[np.int64]
    Bools = NDArray[np.bool_]

_DIGITS = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_DATE = (
    r"(?P<year>[+-]?\d{1,9})"
    r"(?:-W(?P<week>\d{1,2})(?:-(?P<weekday>\d))?|-(?P<ordinal>\d{3})|-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?)?"
)
_TIME = (
    r"(?P<hour>\d{1,2})(?:(?P<hourfraction>[.,]\d+)|:(?P<minute>\d{1,2})"
    r"(?:(?P<minutefraction>[.,]\d+)|:(?P<second>\d{1,2})(?P<fraction>[.,]\d+)?)?)?"
)
_OFFSET = r"(?P<offset>[Zz]|[+-]\d{2}(?::?\d{2}(?::?\d{2}(?:[.,]?\d{3})?)?)?)"
_FORM = re.compile(rf"(?:{_DATE})?(?P<t>T(?:{_TIME})?{_OFFSET}?)?", re.ASCII)
_DAY, _HOUR, _MINUTE, _SECOND = 86_400_000, 3_600_000, 60_000, 1000
_LONG = 2**63
_MONDAY = date(1970, 1, 5)
# "YYYY-MM-DDTHH:MM:SS" and what may stand behind it.
_COMMON = 19
_SEPARATORS = ((4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":"))
_DIGIT_PLACES = (0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18)
_TAILS = ("", "Z", ".sss", ".sssZ", "+hh:mm", ".sss+hh:mm")


def parse_texts(texts: Slices, zone: Zone) -> tuple[Longs, Bools]:
    """The times of texts in milliseconds since 1970 UTC, and which of them are times."""
    times, good = np.zeros(len(texts), dtype=np.int64), np.zeros(len(texts), dtype=np.bool_)
    sizes = np.diff(texts.offsets)
    for tail in _TAILS:
        rows = np.flatnonzero((sizes == _COMMON + len(tail)) & ~good)
        if len(rows):
            done, ms = _common(texts, rows, tail, zone)
            times[rows[done]], good[rows[done]] = ms[done], True
    slow = functools.lru_cache(maxsize=4096)(lambda raw: parse_text(raw.decode("utf-8", "replace"), zone))
    for row in np.flatnonzero(~good):
        found = slow(texts[int(row)] or b"")
        if found is not None:
            times[row], good[row] = found, True
    return times, good


def parse_text(text: str, zone: Zone) -> int | None:
    """The time of one text, or None."""
    if _DIGITS.fullmatch(text) and -_LONG <= int(text) < _LONG:
        return int(text)
    found = _FORM.fullmatch(text)
    if found is None or (found["year"] is None and found["hour"] is None):
        return None
    try:
        local = _days(found) * _DAY + _time_of_day(found)
    except (ValueError, OverflowError):
        return None
    offset = found["offset"]
    if offset is None:
        return zone.to_utc(local)
    return local - _offset_ms(offset)


def _days(found: re.Match[str]) -> int:
    """Days since 1970 of the date part; a time alone is of 1970-01-01."""
    if found["year"] is None:
        return 0
    year = int(found["year"])
    if found["week"] is not None:
        return (date.fromisocalendar(year, int(found["week"]), int(found["weekday"] or 1)) - _MONDAY).days + 4
    if found["ordinal"] is not None:
        day = date(year, 1, 1) + timedelta(days=int(found["ordinal"]) - 1)
        if day.year != year:
            raise ValueError
    else:
        day = date(year, int(found["month"] or 1), int(found["day"] or 1))
    return (day - date(1970, 1, 1)).days


def _time_of_day(found: re.Match[str]) -> int:
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:  # noqa: PLR2004 - a clock
        raise ValueError
    ms = hour * _HOUR + minute * _MINUTE + second * _SECOND
    for part, unit in (("hourfraction", _HOUR), ("minutefraction", _MINUTE), ("fraction", _SECOND)):
        if found[part]:
            digits = found[part][1:]
            ms += int(digits) * unit // 10 ** len(digits)
    return ms


def _offset_ms(text: str) -> int:
    if text in ("Z", "z"):
        return 0
    digits = re.sub(r"\D", "", text)
    hours, minutes, seconds = (int(digits[at : at + 2] or 0) for at in (0, 2, 4))
    ms = hours * _HOUR + minutes * _MINUTE + seconds * _SECOND + int(digits[6:] or 0)
    return -ms if text[0] == "-" else ms


def _common(texts: Slices, rows: Longs, tail: str, zone: Zone) -> tuple[Bools, Longs]:
    """Texts of one length, read as `YYYY-MM-DDTHH:MM:SS` and `tail`: which of them are, and their times."""
    size = _COMMON + len(tail)
    chars = texts.data[texts.offsets[rows][:, None] + np.arange(size)]
    literals = [*_SEPARATORS, *((_COMMON + at, c) for at, c in enumerate(tail) if c in "Z.:")]
    places = [*_DIGIT_PLACES, *(_COMMON + at for at, c in enumerate(tail) if c in "shm")]
    good = np.ones(len(rows), dtype=np.bool_)
    for at, char in literals:
        good &= chars[:, at] == ord(char)
    digits = chars[:, places].astype(np.int64) - ord("0")
    good &= ((digits >= 0) & (digits <= 9)).all(axis=1)  # noqa: PLR2004 - a digit
    two = [digits[:, at] * 10 + digits[:, at + 1] for at in (0, 2, 4, 6, 8, 10, 12)]
    year, month, day, hour, minute, second = two[0] * 100 + two[1], *two[2:]
    good &= (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (hour <= 23) & (minute <= 59) & (second <= 59)  # noqa: PLR2004
    days = _days_of(np.where(good, year, 1970), np.where(good, month, 1), np.where(good, day, 1))
    good &= days < _days_of(year + (month == 12), month % 12 + 1, np.ones_like(day))  # noqa: PLR2004 - December
    ms = days * _DAY + hour * _HOUR + minute * _MINUTE + second * _SECOND
    rest = digits[:, len(_DIGIT_PLACES) :]
    if "s" in tail:
        ms += rest[:, 0] * 100 + rest[:, 1] * 10 + rest[:, 2]
    if "h" in tail:
        sign = chars[:, size - 6]
        good &= (sign == ord("+")) | (sign == ord("-"))
        offset = (rest[:, -4] * 10 + rest[:, -3]) * _HOUR + (rest[:, -2] * 10 + rest[:, -1]) * _MINUTE
        return good, ms - np.where(sign == ord("-"), -offset, offset)
    if "Z" in tail:
        return good, ms
    offsets = zone.offsets(ms)
    utc = ms - offsets
    # Near a change of the offset the exact rule decides, one by one.
    good &= (zone.offsets(ms - 2 * _DAY) == offsets) & (zone.offsets(ms + 2 * _DAY) == offsets)
    return good, utc


def _days_of(year: Longs, month: Longs, day: Longs) -> Longs:
    """Days since 1970 in the Gregorian calendar."""
    year = year - (month <= 2)  # noqa: PLR2004 - the year begins in March here
    era_year = year % 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = era_year * 365 + era_year // 4 - era_year // 100 + day_of_year
    return year // 400 * 146_097 + day_of_era - 719_468
