"""Cycle after cycle: waits while something is away, looks again when there is nothing to do, stops in between."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.errors import JobFailed, PenstockError, TakenOverError, UnavailableError
from penstock.summary import Activity, CycleSummary

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from penstock.model import TopicPartition
    from penstock.running import Running

_log = logging.getLogger("penstock.sink")
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 1.0, 30.0
_JOB_ATTEMPTS = 5


def silent(_: Activity) -> None:
    """Where nobody watches."""


@dataclass(slots=True)
class _Waiting:
    """Doubling pauses while something is away, each told in one line."""

    stop: threading.Event
    seconds: float = _FIRST_WAIT_SECONDS
    failed_jobs: int = 0

    def pause(self, reason: object) -> None:
        """Wait, unless the run is stopped meanwhile."""
        _log.warning("waiting seconds=%g reason=%s", self.seconds, reason)
        self.stop.wait(self.seconds)
        self.seconds = min(2 * self.seconds, _LONGEST_WAIT_SECONDS)

    def over(self) -> None:
        """Something worked again."""
        self.seconds, self.failed_jobs = _FIRST_WAIT_SECONDS, 0


@dataclass(slots=True)
class _Loop:
    """One run. `goal`: the log ends that an `until_done` run goes up to, known with its first cycle."""

    running: Running
    until_done: bool
    tell: Callable[[Activity], None]
    committed: CycleSummary = field(default_factory=CycleSummary)
    goal: Mapping[TopicPartition, int] | None = None

    def step(self) -> bool:
        """One cycle. Whether it did anything."""
        self.say("looking for new records")
        self.running.held.check()
        self.running.discover()
        if self.running.flushes:
            self._answer_flush()
            return True
        if self.until_done and self.goal is None:
            self.goal = self.running.ends()
        ends = self.running.ends() if self.goal is None else self.goal
        return self._cycle(ends)

    def flush(self, ends: Mapping[TopicPartition, int]) -> CycleSummary:
        """Close and commit what is open, up to `ends`."""
        before = self.committed
        while self._cycle(ends, forced=True):
            pass
        return self.committed.minus(before)

    def say(self, doing: str) -> None:
        """Tell whoever watches."""
        lag = self.running.lag() if self.goal is None else self.running.lag(self.goal)
        self.tell(Activity(doing, self.committed, lag))

    def _cycle(self, ends: Mapping[TopicPartition, int], *, forced: bool = False) -> bool:
        cycle = self.running.cycle(ends, thorough=self.until_done, forced=forced, say=self.say)
        if cycle is None:
            return False
        self.committed = self.committed.plus(cycle)
        if cycle.passing is not None:
            raise UnavailableError(cycle.passing.message)
        return not forced or bool(cycle.commits)

    def _answer_flush(self) -> None:
        """Do what `Sink.flush` of another thread asked for; it is asked for again after an outage."""
        request = self.running.flushes[0]
        request.committed = request.committed.added(self.flush(self.running.ends()))
        self.running.flushes.popleft()
        request.done.set()


def open_patiently(opening: Callable[[], Running], stop: threading.Event) -> Running:
    """What `opening` gives, tried again while something is away, so that a restart amid an outage needs nobody.

    Raises:
        PenstockError: what waiting cannot mend, or what was away when `stop` was set.
    """
    waiting = _Waiting(stop)
    while True:
        try:
            return opening()
        except UnavailableError as error:
            if not error.transient or stop.is_set():
                raise
            waiting.pause(error)
            if stop.is_set():
                raise


def keep_running(
    running: Running,
    stop: threading.Event,
    *,
    until_done: bool,
    tell: Callable[[Activity], None] = silent,
) -> CycleSummary:
    """Run cycles until `stop` is set, or, with `until_done`, until nothing is left that can be closed now.

    Raises:
        TakenOverError: a newer instance runs.
        JobFailed: Spark failed several times in a row.
        PenstockError: what waiting cannot mend.
    """
    loop, waiting = _Loop(running, until_done, tell), _Waiting(stop)
    while not stop.is_set():
        try:
            busy = loop.step()
        except UnavailableError as error:
            _raise_if_hopeless(error, waiting)
            loop.say(f"waiting: {error}")
            waiting.pause(error)
            continue
        waiting.over()
        if not busy:
            if until_done:
                break
            running.engine.retry_faults()
            stop.wait(running.config.cycle_interval_ms / 1000)
    if running.config.rotation.flush_on_stop:
        _flush_at_the_end(loop)
    return loop.committed


def _flush_at_the_end(loop: _Loop) -> None:
    """`flush.on.stop`. What cannot be closed now stays in Kafka for the next start."""
    try:
        loop.flush(loop.running.ends() if loop.goal is None else loop.goal)
    except TakenOverError:
        raise
    except PenstockError as error:
        _log.warning("flush.failed reason=%s", error)


def _raise_if_hopeless(error: UnavailableError, waiting: _Waiting) -> None:
    if isinstance(error, JobFailed):
        waiting.failed_jobs += 1
        if waiting.failed_jobs >= _JOB_ATTEMPTS:
            raise error
    elif not error.transient:
        raise error
