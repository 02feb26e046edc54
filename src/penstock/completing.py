"""Completeness of a connector: what its log says of time partitions, and the marks of those that are complete.

A marker is put before the log records what it says: after a crash in between, the next start decides the same, since
positions only grow, and finds the marker there.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock import stores
from penstock.completeness import TimePath, Verdict, complete_until
from penstock.errors import ConfigError
from penstock.kafka.cluster import Cluster
from penstock.partitioners.combined import CombinedPartitioner
from penstock.partitioners.time import TimePartitioner
from penstock.parts import layout, partitioner_of
from penstock.statelog.entries import Complete
from penstock.statelog.history import tables
from penstock.store.base import Create, RefusedError
from penstock.store.ownership import COMPLETE_UNTIL, CONNECTOR
from penstock.store.s3 import store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.completeness import Period
    from penstock.config import SinkConfig
    from penstock.kafka.settings import KafkaSettings
    from penstock.model import Commit, TopicPartition
    from penstock.partitioners.base import Partitioner
    from penstock.statelog import StateLog
    from penstock.store.base import Store

MARKER = "_SUCCESS"
_log = logging.getLogger("penstock.complete")
_NEVER = -(2**62)


@dataclass(slots=True)
class Completing:
    """The time partitions of a connector. `kafka`: sees open transactions, since their records may still count.

    `periods`: of every encoded partition that has an object, by topic.

    `newest`: where the newest one of each topic-partition begins, of what no reset wrote anew since.
    """

    config: SinkConfig
    log: StateLog
    kafka: Cluster
    clock_ms: Callable[[], int]
    path: TimePath
    store: Store
    periods: dict[str, dict[str, Period]] = field(default_factory=lambda: defaultdict(dict))
    newest: dict[TopicPartition, int] = field(default_factory=dict)
    marked: set[tuple[str, str]] = field(default_factory=set)

    @classmethod
    def open(cls, config: SinkConfig, log: StateLog, kafka: Cluster, clock_ms: Callable[[], int]) -> Completing:
        """Everything that the log has of time partitions. Partitions recorded as complete are taken to be marked.

        Raises:
            ConfigError: the partitioner makes no time partitions.
        """
        made = cls(config, log, kafka, clock_ms, time_path(config), store(stores.of_sink(config)))
        resets = {(tp.topic, tp.partition): seq for tp, seq in log.head.resets.items()}
        tps = {(tp.topic, tp.partition): tp for tp in log.head.positions}
        for table in tables(log.store, log.names):
            columns = (table[name].to_pylist() for name in ("entry", "topic", "partition", "encoded_partition", "view"))
            for entry, topic, partition, label, view in zip(*columns, strict=True):
                if view != "errors":
                    has_passed = entry > resets.get((topic, partition), 0)
                    made.add(tps[topic, partition], label, has_passed=has_passed)
        made.marked = {(topic, label) for topic, found in made.periods.items() for label in made.done(topic, found)}
        return made

    def see(self, commit: Commit) -> None:
        """What was committed just now."""
        for each in commit.objects:
            if each.view != "errors":
                self.add(commit.tp, each.encoded_partition, has_passed=True)

    def add(self, tp: TopicPartition, label: str, *, has_passed: bool) -> None:
        """An object of an encoded partition. `has_passed`: whether what was before it is still written."""
        known = self.periods[tp.topic].get(label)
        period = self.path.period(label) if known is None else known
        if period is None:
            return
        self.periods[tp.topic][label] = period
        if has_passed:
            self.newest[tp] = max(self.newest.get(tp, _NEVER), period.start)

    def done(self, topic: str, periods: dict[str, Period]) -> list[str]:
        """The encoded partitions that the log says are complete."""
        until = self.log.head.complete.get(topic, _NEVER)
        return [label for label, period in periods.items() if period.end <= until]

    def advance(self) -> None:
        """Mark and record what became complete, and mark late newcomers to what is complete already.

        Raises:
            TakenOverError: a newer instance runs.
            UnavailableError: the store or Kafka does not answer.
        """
        for topic, verdict in self.verdicts().items():
            until = verdict.until_ms
            if until is None:
                until = self.log.head.complete.get(topic, _NEVER)
            for label, period in sorted(self.periods[topic].items()):
                if period.end <= until and (topic, label) not in self.marked:
                    self._mark(topic, label, period)
            if verdict.until_ms is not None:
                self.log.mark_complete([Complete(topic, until)])
                _log.info("topic.complete topic=%s until_ms=%d", topic, until)

    def verdicts(self) -> dict[str, Verdict]:
        """How far each topic is complete now, beyond what the log says already."""
        found = {}
        existing: dict[str, tuple[int, ...]] | None = None
        for topic, periods in sorted(self.periods.items()):
            done = set(self.done(topic, periods))
            ends = {period.end for label, period in periods.items() if label not in done}
            if not ends:
                found[topic] = Verdict(None)
                continue
            existing = self.kafka.topics() if existing is None else existing
            tps = {tp for tp in self.log.head.positions if tp.topic == topic}
            known = {tp.partition for tp in tps}
            if set(existing.get(topic, ())) - known:
                continue  # a partition that is not known yet may hold anything
            asked = _Asked(self.kafka, sorted(tps), self.log.head.positions, self.clock_ms())
            lateness = self.config.completeness.lateness_ms
            found[topic] = complete_until(tps, ends, self.newest, asked.has_committed_before, lateness)
        return found

    def _mark(self, topic: str, label: str, period: Period) -> None:
        key = marker_key(self.config, topic, label)
        metadata = {CONNECTOR: self.config.name, COMPLETE_UNTIL: str(period.end)}
        try:
            self.store.put(key, b"", Create(), metadata)
        except RefusedError:
            _log.info("marker.there key=%s", key)
        self.marked.add((topic, label))


def time_path(config: SinkConfig) -> TimePath:
    """What reads the time out of encoded partitions. Raises `ConfigError` where there is none in them."""
    found = None if config.partitioning.path_template else _timed_part(partitioner_of(config))
    if found is None:
        msg = (
            f"{config.name}: only the time, daily, hourly and fieldandtime partitioners, without path.template, make "
            f"time partitions that can be complete; partitioner.class is `{config.partitioning.partitioner}`"
        )
        raise ConfigError([msg])
    return TimePath.of(found, config.directory_delim)


def _timed_part(partitioner: Partitioner) -> TimePartitioner | None:
    if isinstance(partitioner, TimePartitioner):
        return partitioner
    if isinstance(partitioner, CombinedPartitioner):
        return next(filter(None, map(_timed_part, partitioner.parts)), None)
    return None


def all_of(settings: KafkaSettings) -> Cluster:
    """A connection that sees open transactions, to be opened by `with`."""
    return Cluster(replace(settings, isolation_level="read_uncommitted"))


def marker_key(config: SinkConfig, topic: str, label: str) -> str:
    """The key of the marker of an encoded partition."""
    return f"{layout(config).prefix(topic)}{label}{config.directory_delim}{MARKER}"


@dataclass(slots=True)
class _Asked:
    """What Kafka said of the topic-partitions of one topic, asked once for each time."""

    kafka: Cluster
    tps: list[TopicPartition]
    positions: Mapping[TopicPartition, int]
    now_ms: int
    first: dict[int, dict[TopicPartition, int | None]] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)

    def has_committed_before(self, tp: TopicPartition, time_ms: int) -> bool:
        """Whether all that Kafka has from before a time is committed. Nothing is said of times to come."""
        if self.now_ms < time_ms:
            return False
        if time_ms not in self.first:
            # The ends first: what comes in between is of now, which is behind the time.
            self.ends = self.ends or self.kafka.log_ends(self.tps)
            self.first[time_ms] = self.kafka.offsets_for_times(dict.fromkeys(self.tps, time_ms))
        first = self.first[time_ms][tp]
        return self.positions[tp] >= (self.ends[tp] if first is None else first)
