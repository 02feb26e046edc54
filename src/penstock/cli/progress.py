"""One line on a terminal that says what a run is doing; nothing anywhere else."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from penstock.summary import Activity

_REFRESHES_PER_SECOND = 4


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
    """Shows a line while it is entered, where standard error is a terminal. Connectors tell it from their threads.

    What is written to standard error meanwhile appears above the line, which is cleared at the end.
    """

    _activities: dict[str, Activity] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _began: float = field(default_factory=time.monotonic)
    _shown: ExitStack = field(default_factory=ExitStack)

    def teller(self, name: str) -> Callable[[Activity], None]:
        """What a connector's run is given as `tell`."""

        def tell(activity: Activity) -> None:
            with self._lock:
                self._activities[name] = activity

        return tell

    def __enter__(self) -> Progress:  # noqa: PYI034 - Self needs Python 3.11
        self._shown.enter_context(shown(self._now))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shown.close()

    def _now(self) -> str:
        """The line as it is now."""
        with self._lock:
            return line(self._activities, time.monotonic() - self._began) or "starting"


@contextmanager
def shown(words: Callable[[], str]) -> Iterator[None]:
    """While entered, the words of the moment stand on a line of standard error, where that is a terminal.

    Text that looks like markup stays text, and what does not fit is cut off.
    """
    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield
        return

    def now() -> Text:
        return Text(" ".join(words().split()), no_wrap=True, overflow="ellipsis")

    with Live(
        get_renderable=now,
        console=console,
        refresh_per_second=_REFRESHES_PER_SECOND,
        transient=True,
        redirect_stdout=False,
    ):
        yield
