"""Whether the state log is still ours while nothing is appended: idle, amid an outage, while a job runs.

An append finds it out by itself. Without one, an older instance would stay on beside the newer one and say nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from penstock.errors import PenstockError, TakenOverError, UnavailableError

if TYPE_CHECKING:
    from penstock.config import SinkConfig
    from penstock.engine import Log
    from penstock.model import Plan, Receipt

_log = logging.getLogger("penstock.sink")
_LONGEST_SECONDS = 10.0
_INTERVALS = 10


class StoppableJob(Protocol):
    """A job that another thread can end."""

    def __call__(self, plan: Plan, config: SinkConfig, seq: int) -> list[Receipt]:
        """One receipt per range of the plan."""
        ...

    def cancel(self) -> None:
        """Let the call that is under way raise; nothing where there is none."""
        ...


def pause_seconds(config: SinkConfig) -> float:
    """How long an instance goes on without a look at its log: ten times `cycle.interval.ms`, at most 10 s."""
    return min(_INTERVALS * config.cycle_interval_ms / 1000, _LONGEST_SECONDS)


@dataclass(slots=True)
class Held:
    """Looks whether the log is ours, where nothing was appended for `seconds`. In one thread."""

    log: Log
    seconds: float
    _seq: int = -1
    _known: float = 0.0

    def check(self) -> None:
        """Raise `TakenOverError` when a newer instance runs, `StoreUnavailable` when the store does not say."""
        now, seq = time.monotonic(), self.log.head.seq
        if seq == self._seq and now - self._known < self.seconds:
            return
        if seq == self._seq:
            self.log.check_held()
        self._seq, self._known = seq, now


@dataclass(slots=True)
class Watched:
    """A job that is ended when a newer instance took over meanwhile: one that hangs keeps no older one alive."""

    job: StoppableJob
    log: Log
    seconds: float
    _found: TakenOverError | None = field(default=None, init=False)

    def __call__(self, plan: Plan, config: SinkConfig, seq: int) -> list[Receipt]:
        """The job's receipts.

        Raises:
            TakenOverError: a newer instance runs.
            JobFailed: Spark gave up on it, for a reason of its own.
        """
        over = threading.Event()
        threading.Thread(target=self._watch, args=(over,), name="held", daemon=True).start()
        try:
            return self.job(plan, config, seq)
        except UnavailableError:
            if self._found is not None:
                raise self._found from None
            raise
        finally:
            over.set()  # not joined: it may wait for a store that is away

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(self.seconds):
            try:
                self.log.check_held()
            except TakenOverError as error:
                if self._found is None:
                    _log.warning("job.cancelled reason=%s", error)
                self._found = error
                self.job.cancel()  # each time: a job that fails may be looked into by running parts of it
            except PenstockError as error:  # what it means, the next append says
                _log.debug("log.unseen reason=%s", error)
