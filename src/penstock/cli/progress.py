"""One line on a terminal that says what a run is doing; nothing anywhere else."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from rich.status import Status

    from penstock.summary import Activity


def line(activities: dict[str, Activity], seconds: float) -> str:
    """The line for connectors by name, `seconds` after their start."""
    parts = []
    for name, activity in sorted(activities.items()):
        done = activity.committed
        rate = done.records / seconds if seconds > 0 else 0.0
        prefix = f"{name}: " if len(activities) > 1 else ""
        parts.append(
            f"{prefix}{done.records:,} records in {done.objects:,} objects, {rate:,.0f}/s, lag {activity.lag:,}, "
            f"{activity.doing}"
        )
    return " | ".join(parts)


@dataclass(slots=True)
class Progress:
    """Shows a line while it is entered, where standard error is a terminal. Connectors tell it from their threads."""

    _activities: dict[str, Activity] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _began: float = field(default_factory=time.monotonic)
    _status: Status | None = None

    def teller(self, name: str) -> Callable[[Activity], None]:
        """What a connector's run is given as `tell`."""

        def tell(activity: Activity) -> None:
            with self._lock:
                self._activities[name] = activity
                if self._status is not None:
                    self._status.update(line(self._activities, time.monotonic() - self._began))

        return tell

    def __enter__(self) -> Progress:  # noqa: PYI034 - Self needs Python 3.11
        if sys.stderr.isatty():
            self._status = Console(stderr=True).status("starting Spark")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()
