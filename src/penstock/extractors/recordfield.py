"""RecordField: a field of the value (reference s3-sink-connector 3, "Extractors")."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.extractors.iso import parse_texts
from penstock.partitioners.base import Refusal, Times

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from penstock.columns import Part
    from penstock.partitioners.base import Batch
    from penstock.partitioners.zones import Zone

    Longs = NDArray[np.int64]

_DAY_MS = 86_400_000
_SHOWN = 40
_NUMBERS: dict[str, Callable[[Longs], Longs]] = {
    "int": lambda n: n,
    "long": lambda n: n,
    "timestamp-millis": lambda n: n,
    "timestamp-micros": lambda n: n // 1000,
    "timestamp-nanos": lambda n: n // 1_000_000,
    "date": lambda n: n * _DAY_MS,
}
_LOCAL: dict[str, Callable[[Longs], Longs]] = {
    "local-timestamp-millis": lambda n: n,
    "local-timestamp-micros": lambda n: n // 1000,
    "local-timestamp-nanos": lambda n: n // 1_000_000,
}
_WHOLE_DOUBLES = 2.0**63


@dataclass(frozen=True, slots=True)
class RecordFieldExtractor:
    """The time in the field `path`; texts without an offset, and local times, are read in `zone`."""

    path: str
    zone: Zone

    def extract(self, batch: Batch) -> Times:
        """The field's times; refused where there is none or it cannot be read as one."""
        ms = np.zeros(len(batch.records), dtype=np.int64)
        refusals: list[Refusal] = []
        for part in batch.field(self.path):
            good = self._read(part, ms)
            refusals.extend(Refusal(int(part.rows[at]), self._reason(part, int(at))) for at in np.flatnonzero(~good))
        return Times(ms, tuple(sorted(refusals, key=lambda refusal: refusal.row)))

    def _read(self, part: Part, ms: Longs) -> NDArray[np.bool_]:
        """Write the times of a part into `ms`; which of its rows have one."""
        good = np.ones(len(part.rows), dtype=np.bool_)
        if part.type in _NUMBERS and part.numbers is not None:
            ms[part.rows] = _NUMBERS[part.type](part.numbers.astype(np.int64))
        elif part.type in _LOCAL and part.numbers is not None:
            local = _LOCAL[part.type](part.numbers.astype(np.int64))
            to_utc = functools.lru_cache(maxsize=4096)(self.zone.to_utc)
            ms[part.rows] = [to_utc(each) for each in local.tolist()]
        elif part.type in ("float", "double") and part.numbers is not None:
            whole = part.numbers.astype(np.float64)
            good = np.abs(whole) < _WHOLE_DOUBLES
            ms[part.rows] = np.where(good, whole, 0).astype(np.int64)
        elif part.type == "string" and part.texts is not None:
            times, good = parse_texts(part.texts, self.zone)
            ms[part.rows] = times
        else:
            good[:] = False
        return good

    def _reason(self, part: Part, at: int) -> str:
        field = f"timestamp.field `{self.path}`"
        if part.type == "absent":
            return f"its value has no {field}; set timestamp.field to a field that every record has"
        if part.type == "null":
            return f"{field} is null; records without a time need another timestamp.extractor"
        if part.type == "malformed":
            return f"its value ends or errs before {field}"
        if part.type == "string" and part.texts is not None:
            text = (part.texts[at] or b"").decode("utf-8", "replace")
            shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
            return (
                f"{field} is `{shown}`, which is no time; it must be ISO-8601 (2024-05-31T23:59:59Z) or milliseconds "
                "since 1970"
            )
        if part.type in ("float", "double"):
            return f"{field} is a number that is no time in milliseconds since 1970"
        return f"{field} is of type {part.type}, which is no time; it must be an int, a long, a timestamp or a text"
