"""What was committed, what is being done, and what other threads wish of a run."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.engine import Cycle
    from penstock.errors import PenstockError


@dataclass(frozen=True, slots=True)
class CycleSummary:
    """What a cycle, or several, committed. Records are counted by their values, not again in their keys or an index."""

    records: int = 0
    objects: int = 0
    bytes: int = 0

    def plus(self, cycle: Cycle) -> CycleSummary:
        """With another cycle added."""
        objects = [o for commit in cycle.commits for o in commit.objects]
        return CycleSummary(
            self.records + sum(o.records for o in objects if o.view == "value"),
            self.objects + len(objects),
            self.bytes + sum(o.size for o in objects),
        )

    def added(self, other: CycleSummary) -> CycleSummary:
        """With another summary added."""
        return CycleSummary(self.records + other.records, self.objects + other.objects, self.bytes + other.bytes)

    def minus(self, other: CycleSummary) -> CycleSummary:
        """What came after `other`, an earlier state of this one."""
        return CycleSummary(self.records - other.records, self.objects - other.objects, self.bytes - other.bytes)


@dataclass(frozen=True, slots=True)
class Activity:
    """What a run is doing now, what it committed so far, and how many offsets are still to go."""

    doing: str
    committed: CycleSummary
    lag: int


@dataclass(slots=True)
class FlushRequest:
    """A wish of another thread that everything open be closed. `done` is set when it is, or when the run ends."""

    done: threading.Event = field(default_factory=threading.Event)
    committed: CycleSummary = field(default_factory=CycleSummary)
    error: PenstockError | None = None
