"""The cycle: look at Kafka's log ends, plan, record the plan, run it as a Spark job, commit what it wrote.

The driver never touches a record. Everything it knows about progress is the head of the state log; what it keeps in
memory (looks, faults) only saves work.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from penstock import planner
from penstock.arrivals import Arrivals, observe
from penstock.crashpoints import reach
from penstock.model import Plan, TopicPartition
from penstock.planner import Clock, Look, View

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.config import SinkConfig
    from penstock.model import Commit, Fault, PlannedRange, Receipt
    from penstock.statelog import Head

_log = logging.getLogger("penstock.engine")
_FAULT_RETRY_MS = 60_000


class Log(Protocol):
    """What the engine needs of the state log."""

    @property
    def head(self) -> Head:
        """Where every topic-partition stands, and the intent that is still open."""
        ...

    def check_held(self) -> None:
        """Raise `TakenOverError` when another instance holds the log now. From any thread while nothing is appended."""
        ...

    def append(
        self,
        *,
        intent: Plan | None = None,
        commits: Sequence[Commit] = (),
        config: Mapping[str, str] | None = None,
        closes: int | None = None,
        topics: Mapping[str, str] | None = None,
    ) -> Head:
        """Append one entry. Raises `TakenOverError` when another instance holds the log now."""
        ...


class Ends(Protocol):
    """What the engine asks Kafka for."""

    def log_ends(self, tps: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset behind the last record that may be read."""
        ...

    def mirror(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Show the positions to lag tools, as the group's committed offsets."""
        ...


class Job(Protocol):
    """Runs a plan somewhere and reports one receipt per range."""

    def __call__(self, plan: Plan, config: SinkConfig, seq: int) -> list[Receipt]:
        """`config`: the one the plan was made with; `seq`: the entry that recorded the plan."""
        ...


@dataclass(frozen=True, slots=True)
class Cycle:
    """What one cycle did."""

    plan: Plan
    commits: tuple[Commit, ...]
    faults: Mapping[TopicPartition, Fault]

    @property
    def passing(self) -> Fault | None:
        """An outage that left part of the plan undone, if there was one."""
        return next((fault for fault in self.faults.values() if fault.passing), None)


def _quiet(_: str) -> None:
    """Where nobody watches."""


@dataclass(slots=True)
class Engine:
    """One connector's cycles. `rules` and `config` are the current ones; an older plan is finished with its own.

    `scheduled`: the last instant of scheduled rotation up to a time, where there is such a rotation. `cycle_ms`: how
    long the last cycles took.
    """

    config: SinkConfig
    rules: planner.Rules
    group: str
    log: Log
    kafka: Ends
    job: Job
    clock_ms: Callable[[], int]
    scheduled: Callable[[int], int] | None = None
    looks: dict[TopicPartition, Look] = field(default_factory=dict)
    arrivals: dict[TopicPartition, Arrivals] = field(default_factory=dict)
    cycle_ms: int = 0
    faults: dict[TopicPartition, Fault] = field(default_factory=dict)
    faults_tried_ms: int = 0

    def cycle(
        self,
        ends: Mapping[TopicPartition, int],
        *,
        thorough: bool = False,
        forced: bool = False,
        say: Callable[[str], None] = _quiet,
    ) -> Cycle | None:
        """Finish the open intent if there is one; else plan and run what is worth it. None when nothing was."""
        began = self.clock_ms()
        self._observe(ends, began)
        open_intent = self.log.head.open_intent
        if open_intent is not None:
            seq, plan = open_intent
            say("finishing what an earlier run began")
            return self._run(_what_is_left(plan, self.log.head.positions), self._recorded_config(), seq)
        view = View(self._healthy_positions(), ends, self.looks, self.arrivals)
        scheduled = None if self.scheduled is None else self.scheduled(began)
        clock = Clock(began, scheduled, 2 * self.cycle_ms + self.config.cycle_interval_ms)
        plan = planner.plan(view, self.rules, clock, thorough=thorough, forced=forced)
        reach("plan.made")
        if not plan.ranges:
            return None
        head = self.log.append(intent=plan, config=self._changed_config())
        reach("intent.appended")
        offsets = sum(each.offsets for each in plan.ranges)
        say(f"writing {offsets} offsets of {len(plan.ranges)} topic-partitions")
        cycle = self._run(plan, self.config, head.seq)
        self.cycle_ms = max(self.clock_ms() - began, self.cycle_ms // 2)
        return cycle

    def begin(
        self, positions: Mapping[TopicPartition, Commit], topics: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Record the first positions of topic-partitions that the log does not know yet, and the ids of topics."""
        self.log.append(commits=tuple(positions.values()), topics=topics)

    def stop(self, tp: TopicPartition, fault: Fault) -> None:
        """Leave a topic-partition where it stands, told once."""
        if self.faults.get(tp) != fault:
            _log.error("partition.stopped topic=%s partition=%d reason=%s", tp.topic, tp.partition, fault.message)
        self.faults[tp] = fault
        self.faults_tried_ms = self.clock_ms()

    def _run(self, plan: Plan, config: SinkConfig, seq: int) -> Cycle:
        receipts = self.job(plan, config, seq) if plan.ranges else []
        reach("job.done")
        cycle = Cycle(
            plan,
            tuple(receipt.commit for receipt in receipts if _moves(receipt, self.log.head.positions)),
            {receipt.commit.tp: receipt.fault for receipt in receipts if receipt.fault is not None},
        )
        closes = seq if cycle.passing is None else None
        if cycle.commits or closes is not None:
            self.log.append(commits=cycle.commits, closes=closes)
            reach("commit.appended")
        self._remember(receipts, plan.now_ms)
        if config.errors.log:
            _log_rejected(receipts)
        _report(cycle)
        return cycle

    def mirror(self, cycle: Cycle) -> None:
        """Show a cycle's new positions to lag tools. Never read back, so a failure costs nothing but a stale lag."""
        if cycle.commits:
            self.kafka.mirror(self.group, {commit.tp: commit.position for commit in cycle.commits})
            reach("mirror.done")

    def retry_faults(self) -> None:
        """Try topic-partitions that had to stop again, at most every `_FAULT_RETRY_MS`: the cause may be mended."""
        now = self.clock_ms()
        if now - self.faults_tried_ms >= _FAULT_RETRY_MS:
            self.faults_tried_ms = now
            self.looks = {tp: look for tp, look in self.looks.items() if tp not in self.faults}
            self.faults = {}

    def _observe(self, ends: Mapping[TopicPartition, int], now_ms: int) -> None:
        """Note what is in Kafka by now and not in S3 yet."""
        for tp, position in self.log.head.positions.items():
            self.arrivals[tp] = observe(self.arrivals.get(tp, ()), position, ends.get(tp, position), now_ms)

    def _remember(self, receipts: Sequence[Receipt], now_ms: int) -> None:
        for receipt in receipts:
            tp = receipt.commit.tp
            self.looks[tp] = Look(
                receipt.commit.position, receipt.looked_to, receipt.open_records, now_ms, receipt.base_ms
            )
            if receipt.fault is None:
                self.faults.pop(tp, None)
            else:
                self.faults[tp] = receipt.fault
                self.faults_tried_ms = self.clock_ms()

    def _healthy_positions(self) -> dict[TopicPartition, int]:
        """Topic-partitions that are not stopped at something only a person can mend."""
        return {
            tp: position
            for tp, position in self.log.head.positions.items()
            if tp not in self.faults or self.faults[tp].passing
        }

    def _recorded_config(self) -> SinkConfig:
        recorded = self.log.head.config
        return self.config if recorded is None else self.config.with_shaping(recorded)

    def _changed_config(self) -> dict[str, str] | None:
        """What shapes files, if it is not what the log says already."""
        shaping = self.config.shaping()
        return None if shaping == self.log.head.config else shaping


def _what_is_left(plan: Plan, positions: Mapping[TopicPartition, int]) -> Plan:
    """The part of a plan that no commit covers yet."""
    moved = (replace(r, start=max(r.start, positions.get(r.tp, r.start))) for r in plan.ranges)
    return Plan(tuple(r for r in moved if r.start < r.end), plan.now_ms)


def _moves(receipt: Receipt, positions: Mapping[TopicPartition, int]) -> bool:
    return receipt.commit.position > positions.get(receipt.commit.tp, 0)


def _log_rejected(receipts: Sequence[Receipt]) -> None:
    """`errors.log.enable`: the first records of each range that were left out, and how many there were in all."""
    for receipt in receipts:
        for sentence in receipt.rejected:
            _log.error("record.rejected reason=%s", sentence)
        if receipt.rejected:
            tp, skipped = receipt.commit.tp, receipt.commit.skipped
            _log.error("records.rejected topic=%s partition=%d skipped=%d", tp.topic, tp.partition, skipped)


def _report(cycle: Cycle) -> None:
    planned: dict[TopicPartition, PlannedRange] = {r.tp: r for r in cycle.plan.ranges}
    for commit in cycle.commits:
        _log.info(
            "cut.committed topic=%s partition=%d start=%d end=%d objects=%d records=%d bytes=%d",
            commit.tp.topic,
            commit.tp.partition,
            planned[commit.tp].start,
            commit.position,
            len(commit.objects),
            sum(o.records for o in commit.objects),
            sum(o.size for o in commit.objects),
        )
    for tp, fault in cycle.faults.items():
        level = logging.WARNING if fault.passing else logging.ERROR
        _log.log(level, "partition.stopped topic=%s partition=%d reason=%s", tp.topic, tp.partition, fault.message)
