"""The next objects are fetched while records of the present ones are sent: many small ones are as fast as one large."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from penstock.restore.plan import Segment
    from penstock.restore.reading import Opened, Reading

LARGE = 16 << 20
"""Bytes of a segment that nothing is fetched beside, and that is not fetched while a transaction is open."""

_THREADS, _AHEAD = 4, 16


def ahead(
    reading: Reading, left: Iterable[tuple[Segment, int]]
) -> Generator[tuple[Segment, int, Future[Opened]], None, None]:
    """The segments in order, each with its opening, whose errors come at its turn.

    Up to `_AHEAD` segments, and not more than about `LARGE` bytes, are open beside the one that is read.
    """
    coming = iter(left)
    waiting: deque[tuple[Segment, int, Future[Opened]]] = deque()
    size = 0
    with ThreadPoolExecutor(_THREADS, "restore") as pool:
        try:
            following = next(coming, None)
            while waiting or following is not None:
                while following is not None and _fits(following[0], len(waiting), size):
                    waiting.append((*following, pool.submit(reading.open, following[0])))
                    size += following[0].size
                    following = next(coming, None)
                segment, done, opening = waiting.popleft()
                size -= segment.size
                yield segment, done, opening
        finally:
            for _, _, opening in waiting:
                _forget(opening)


def _fits(segment: Segment, waiting: int, size: int) -> bool:
    """Whether a segment is opened beside those that wait."""
    return waiting == 0 or (waiting < _AHEAD and size + segment.size <= LARGE)


def _forget(opening: Future[Opened]) -> None:
    """Close what nobody will read."""
    if not opening.cancel():
        with suppress(PenstockError):
            opening.result().__exit__(None, None, None)
