"""Named points at which a test can end the whole sink as SIGKILL would.

Set `PENSTOCK_CRASH_AT=<point>[#<n>]` to die at the n-th time (default first) that any process of the sink reaches the
point. The process that dies is the one that `arm` named: the driver, from wherever the point is reached. A test that
has the sink in its own process watches instead, and raises.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Point = Literal[
    "takeover.appended",
    "plan.made",
    "intent.appended",
    "job.started",
    "object.before",
    "object.after",
    "part.after",
    "complete.before",
    "job.done",
    "commit.appended",
    "mirror.done",
    "checkpoint.written",
]

RestorePoint = Literal["restore.sent", "restore.committed"]
"""Of `penstock restore`: all records of a transaction are with the brokers; it is committed."""

POINTS: tuple[Point, ...] = get_args(Point)
_SPEC = "PENSTOCK_CRASH_AT"
_VICTIM = "PENSTOCK_CRASH_PID"
_seen: dict[str, int] = {}
_watchers: list[Callable[[Point | RestorePoint], None]] = []


def arm() -> None:
    """Name this process as the one that dies; the driver calls it before it starts Spark."""
    if _SPEC in os.environ:
        os.environ[_VICTIM] = str(os.getpid())


@contextmanager
def watched(watcher: Callable[[Point | RestorePoint], None]) -> Iterator[None]:
    """While entered, `watcher` hears of every point that this process reaches, and may raise."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def reach(point: Point | RestorePoint) -> None:
    """Die here if a test asked for it; otherwise nothing."""
    for watcher in _watchers:
        watcher(point)
    spec = os.environ.get(_SPEC)
    if spec is None:
        return
    name, _, count = spec.partition("#")
    if name != point:
        return
    _seen[point] = _seen.get(point, 0) + 1
    if _seen[point] < int(count or 1):
        return
    victim = int(os.environ.get(_VICTIM, os.getpid()))
    os.kill(victim, signal.SIGKILL)
    while victim != os.getpid():  # nothing after this point may still happen in a worker
        time.sleep(1)
