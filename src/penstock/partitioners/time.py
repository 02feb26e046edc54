"""TimeBased, Daily and Hourly partitioners (reference s3-sink-connector 3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from penstock.partitioners.base import Labels, Refusal
from penstock.partitioners.zones import FIRST_MS, LAST_MS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.partitioners.base import Batch
    from penstock.partitioners.joda import PathFormat
    from penstock.partitioners.zones import Zone

DAILY_MS, HOURLY_MS = 86_400_000, 3_600_000
_DAILY = "'year'=YYYY{0}'month'=MM{0}'day'=dd"
_HOURLY = _DAILY + "{0}'hour'=HH"
_KEPT = 4096


def daily_format(delim: str) -> str:
    """The `path.format` of DailyPartitioner."""
    return _DAILY.format(delim)


def hourly_format(delim: str) -> str:
    """The `path.format` of HourlyPartitioner."""
    return _HOURLY.format(delim)


@dataclass(frozen=True, slots=True)
class TimePartitioner:
    """The extracted time as a path: cut down to `duration_ms` of local time, then formatted.

    Cut down towards 1970 as the connector does it, so that local times before it are rounded up.
    """

    duration_ms: int
    path_format: PathFormat
    zone: Zone
    _texts: dict[int, str] = field(default_factory=dict, compare=False)

    def encode(self, batch: Batch) -> Labels:
        """One label for each span that occurs."""
        times = batch.times
        ms = times.ms
        beyond = np.flatnonzero((ms < FIRST_MS) | (ms > LAST_MS))
        refused = {refusal.row for refusal in times.refusals}
        late = tuple(
            Refusal(int(row), f"its time {ms[row]} ms is not within the years 1 to 9999; it counts milliseconds")
            for row in beyond
            if int(row) not in refused
        )
        buckets = self._buckets(np.clip(ms, FIRST_MS, LAST_MS))
        edges = np.flatnonzero(buckets[1:] != buckets[:-1]) + 1
        firsts = buckets[np.concatenate([[0], edges])]
        distinct, codes = np.unique(firsts, return_inverse=True)
        names = tuple(self._text(bucket) for bucket in distinct.tolist())
        refusals = tuple(sorted((*times.refusals, *late), key=lambda refusal: refusal.row))
        if len(names) == 1:
            return Labels(names, None, refusals)
        lengths = np.diff(np.concatenate([[0], edges, [len(buckets)]]))
        return Labels(names, np.repeat(codes.astype(np.int32), lengths), refusals)

    def _buckets(self, utc_ms: NDArray[np.int64]) -> NDArray[np.int64]:
        """The local time at which each record's span begins."""
        local = utc_ms + self.zone.offsets(utc_ms)
        down = local // self.duration_ms
        down += (local < 0) & (local % self.duration_ms != 0)
        return down * self.duration_ms

    def _text(self, local_ms: int) -> str:
        text = self._texts.get(local_ms)
        if text is None:
            if len(self._texts) >= _KEPT:
                self._texts.clear()
            start = min(max(self.zone.to_utc(local_ms), FIRST_MS), LAST_MS)
            text = self._texts[local_ms] = self.path_format.format(start, self.zone)
        return text
