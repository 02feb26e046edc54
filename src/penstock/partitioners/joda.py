"""`path.format`: patterns in Joda-time's letters (reference s3-sink-connector 3; docs/time.md has the table).

They are neither java.time's nor Spark's: `YYYY` is the calendar year.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from babel import Locale, UnknownLocaleError
from babel.dates import get_timezone_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from penstock.partitioners.zones import Zone

_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+|(')", re.DOTALL)
_TEXT = 3
_MONTHS = (
    ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    (
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ),
)
_DAYS = (
    ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
    ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
)


@dataclass(frozen=True, slots=True)
class Names:
    """The words of a language: (short, long) names of months and of days from Monday, halfdays, era."""

    months: tuple[tuple[str, ...], tuple[str, ...]] = _MONTHS
    days: tuple[tuple[str, ...], tuple[str, ...]] = _DAYS
    halfdays: tuple[str, str] = ("AM", "PM")
    era: str = "AD"
    language: str = "en"

    @classmethod
    def of(cls, locale: str) -> Names:
        """The words of a locale such as `en`, `en-US`, `fr_FR`.

        Raises:
            ValueError: there is no such locale; a phrase that follows the property's name.
        """
        try:
            found = Locale.parse(locale.strip().replace("-", "_"))
        except (UnknownLocaleError, ValueError, TypeError):
            msg = "must be a locale such as en-US, de or fr-FR"
            raise ValueError(msg) from None
        if found.language == "en":
            return cls()
        months, days = found.months["format"], found.days["format"]
        periods = found.day_periods["format"]["abbreviated"]
        return cls(
            tuple(tuple(months[width][n] for n in range(1, 13)) for width in ("abbreviated", "wide")),  # type: ignore[arg-type]
            tuple(tuple(days[width][n] for n in range(7)) for width in ("abbreviated", "wide")),  # type: ignore[arg-type]
            (str(periods["am"]), str(periods["pm"])),
            str(found.eras["abbreviated"][1]),
            str(found),
        )


Part = tuple[str, int]
"""A letter and how often it stands there; or ("", ...) never: literals are strings of their own."""


@dataclass(frozen=True, slots=True)
class PathFormat:
    """A checked pattern: literal texts and (letter, count) in turn."""

    parts: tuple[str | Part, ...]
    names: Names

    @classmethod
    def parse(cls, pattern: str, names: Names) -> PathFormat:
        """Read a pattern.

        Raises:
            ValueError: a letter that Joda does not know, or an open quote; a phrase that follows the property's name.
        """
        parts: list[str | Part] = []
        at = 0
        for token in _TOKEN.finditer(pattern):
            letter = token[2]
            if token[3] is not None:
                msg = f"has a quote at place {token.start() + 1} that is not closed"
                raise ValueError(msg)
            if letter is None:
                text = token[0] if token[1] is None else token[1].replace("''", "'") or "'"
                parts.append(text)
            elif letter in LETTERS:
                parts.append((letter, len(token[0])))
            else:
                msg = (
                    f"has the letter `{letter}` at place {token.start() + 1}, which is none of Joda's "
                    f"({' '.join(LETTERS)}); put plain text in single quotes"
                )
                raise ValueError(msg)
            at = token.end()
        assert at == len(pattern)  # noqa: S101 - the token's alternatives leave nothing out
        return cls(tuple(parts), names)

    def format(self, utc_ms: int, zone: Zone) -> str:
        """An instant as text, for years 1 to 9999."""
        local = zone.local(utc_ms)
        return "".join(
            part if isinstance(part, str) else LETTERS[part[0]](local, part[1], self.names, zone) for part in self.parts
        )


def _number(value: Callable[[datetime], int]) -> Callable[[datetime, int, Names, Zone], str]:
    return lambda at, count, _names, _zone: str(value(at)).zfill(count)


def _year(value: Callable[[datetime], int]) -> Callable[[datetime, int, Names, Zone], str]:
    """Two letters are two digits."""
    return lambda at, count, _names, _zone: f"{value(at) % 100:02d}" if count == 2 else str(value(at)).zfill(count)  # noqa: PLR2004


def _month(at: datetime, count: int, names: Names, _zone: Zone) -> str:
    return str(at.month).zfill(count) if count < _TEXT else names.months[count > _TEXT][at.month - 1]


def _weekday(at: datetime, count: int, names: Names, _zone: Zone) -> str:
    return names.days[count > _TEXT][at.weekday()]


def _halfday(at: datetime, _count: int, names: Names, _zone: Zone) -> str:
    return names.halfdays[at.hour >= 12]  # noqa: PLR2004 - noon


def _fraction(at: datetime, count: int, _names: Names, _zone: Zone) -> str:
    """Digits of the second's fraction, cut off, not rounded."""
    return f"{at.microsecond:06d}"[:count].ljust(count, "0")


def _era(_at: datetime, _count: int, names: Names, _zone: Zone) -> str:
    return names.era


def _zone_name(at: datetime, count: int, names: Names, zone: Zone) -> str:
    if zone.id[:1] in "+-" or (count <= _TEXT and str(at.tzname())[:1] in "+-"):
        return _offset_text(at, ":")
    return str(at.tzname()) if count <= _TEXT else get_timezone_name(at, "long", locale=names.language)


def _zone_offset(at: datetime, count: int, _names: Names, zone: Zone) -> str:
    return zone.id if count >= _TEXT else _offset_text(at, ":" if count > 1 else "")


def _offset_text(at: datetime, between: str) -> str:
    offset = at.utcoffset()
    assert offset is not None  # noqa: S101 - it has a zone
    minutes = abs(int(offset.total_seconds())) // 60
    return f"{'-' if offset.total_seconds() < 0 else '+'}{minutes // 60:02d}{between}{minutes % 60:02d}"


LETTERS: Mapping[str, Callable[[datetime, int, Names, Zone], str]] = {
    "G": _era,
    "C": _number(lambda at: at.year // 100),
    "Y": _year(lambda at: at.year),
    "x": _year(lambda at: at.isocalendar()[0]),
    "w": _number(lambda at: at.isocalendar()[1]),
    "e": _number(lambda at: at.isoweekday()),
    "E": _weekday,
    "y": _year(lambda at: at.year),
    "D": _number(lambda at: at.timetuple().tm_yday),
    "M": _month,
    "d": _number(lambda at: at.day),
    "a": _halfday,
    "K": _number(lambda at: at.hour % 12),
    "h": _number(lambda at: at.hour % 12 or 12),
    "H": _number(lambda at: at.hour),
    "k": _number(lambda at: at.hour or 24),
    "m": _number(lambda at: at.minute),
    "s": _number(lambda at: at.second),
    "S": _fraction,
    "z": _zone_name,
    "Z": _zone_offset,
}
