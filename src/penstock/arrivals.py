"""When the sink first saw records in Kafka: pure.

What the wall clock decides (the Wallclock extractor, scheduled rotation, `max.latency.ms`) goes by these times. A plan
records them, so that a repeated plan decides the same (docs/decisions/0006-wall-clock.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Arrivals = tuple[tuple[int, int], ...]
"""(end, ms) pairs, ascending in both: offsets below `end`, from the pair before on, were first seen at `ms`."""

_MOST = 64


def observe(arrivals: Arrivals, position: int, end: int, now_ms: int) -> Arrivals:
    """With what is in Kafka now: offsets up to `end`; those below `position` are forgotten.

    At most 64 pairs are kept: of two neighbours that have to become one, the earlier time stays. A clock that was set
    back does not make a record older than the one before it.
    """
    kept = [pair for pair in arrivals if pair[0] > position]
    if end > (kept[-1][0] if kept else position):
        kept.append((end, max(now_ms, kept[-1][1] if kept else now_ms)))
    if len(kept) > _MOST:
        # Every second pair goes, but for the newest: the older half of each two gives its time to both.
        last = kept.pop()
        kept = [(later[0], earlier[1]) for earlier, later in zip(kept[::2], kept[1::2], strict=False)] + (
            [kept[-1]] if len(kept) % 2 else []
        )
        kept.append(last)
    return tuple(kept)


def first_seen(arrivals: Arrivals) -> int | None:
    """When the oldest record that is not written yet was seen; None where there is none."""
    return arrivals[0][1] if arrivals else None


def seen_at(arrivals: Arrivals, offsets: NDArray[np.int64], now_ms: int) -> NDArray[np.int64]:
    """The time at which each of the offsets was first seen; `now_ms` for those behind the last pair."""
    if not arrivals:
        return np.full(len(offsets), now_ms, dtype=np.int64)
    ends = np.array([end for end, _ in arrivals], dtype=np.int64)
    times = np.array([*(ms for _, ms in arrivals), now_ms], dtype=np.int64)
    return times[np.searchsorted(ends, offsets, side="right")]
