"""A connector that holds its state log: everything one process has open while it runs.

Opening checks what can be checked before the first record: the bucket, conditional writes, the topics. Whoever opens
takes over from an older instance.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from penstock.arrivals import observe
from penstock.completing import Completing, all_of
from penstock.discovery import (
    SameTopics,
    Subscription,
    another,
    beginnings,
    check_deleted,
    check_topics,
    deleted,
    made_anew,
)
from penstock.engine import Engine
from penstock.errors import StoreUnavailable, UnavailableError
from penstock.holding import Held, Watched, pause_seconds
from penstock.kafka.cluster import MARK, Cluster, PartitionsUnavailable
from penstock.kafka.deadletters import ensure_topic
from penstock.model import Commit
from penstock.parts import planner_rules, scheduled
from penstock.pipeline import check_registry, newest_indexes, open_log, open_store, state_url, sweep
from penstock.positions import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from types import TracebackType

    from penstock.config import SinkConfig
    from penstock.engine import Cycle
    from penstock.holding import StoppableJob
    from penstock.kafka.settings import KafkaSettings
    from penstock.model import TopicPartition
    from penstock.newestindex import NewestIndexes
    from penstock.store.s3 import S3Store
    from penstock.summary import FlushRequest

_log = logging.getLogger("penstock.sink")
_DISCOVERY_SECONDS = 5.0
_SWEEP_SECONDS = 3600.0
# A broker that has just started is still loading its groups.
_PATIENT = Retrying(
    retry=retry_if_exception(lambda error: isinstance(error, UnavailableError) and error.transient),
    stop=stop_after_delay(10),
    wait=wait_fixed(0.3),
    reraise=True,
)


def _quiet(_: str) -> None:
    """Where nobody watches."""


def _clock_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(slots=True)
class Running:
    """One connector's engine with its connections. Use it as a context manager, in one thread.

    `seen_ends`: the log ends at the last look; replaced, never changed, because other threads read it.
    """

    config: SinkConfig
    engine: Engine
    kafka: Cluster
    subscription: Subscription
    policy: Policy
    indexes: NewestIndexes
    held: Held
    last_objects: dict[TopicPartition, str] = field(default_factory=dict)
    seen_ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    flushes: deque[FlushRequest] = field(default_factory=deque)
    completing: Completing | None = None
    prepare: Callable[[SinkConfig], SinkConfig | None] | None = None
    _resources: ExitStack = field(default_factory=ExitStack)
    _discovered: float | None = None
    _store: S3Store | None = None
    _swept: float = 0.0

    @classmethod
    def open(
        cls,
        config: SinkConfig,
        settings: KafkaSettings,
        job: StoppableJob,
        prepare: Callable[[SinkConfig], SinkConfig | None] | None = None,
    ) -> Running:
        """Check everything, take over the state log, and know where every topic-partition stands.

        `prepare`: gives the configuration to plan with; None while nothing can be planned yet.

        Raises:
            PenstockError: the first thing that is not as it must be.
        """
        with ExitStack() as resources:
            kafka = resources.enter_context(Cluster(settings))
            subscription = Subscription(config.topics or (), config.topics_regex)
            check_topics(subscription, kafka.topics(), settings.bootstrap_servers)
            check_registry(config)
            config = config if prepare is None else prepare(config) or config
            if config.errors.topic:
                ensure_topic(settings, config.errors.topic, config.errors.topic_replication)
            store = open_store(config)
            log = open_log(config)
            group = f"connect-{config.name}"
            policy = Policy(config.name, group, state_url(config), settings.auto_offset_reset, config.on_missing_state)
            watched = Watched(job, log, pause_seconds(config))
            same = SameTopics(watched, kafka.topic_ids, lambda: log.head)
            engine = Engine(
                config, planner_rules(config), group, log, kafka, same, _clock_ms, scheduled=scheduled(config)
            )
            indexes = newest_indexes(config, store, log.head)
            held = Held(log, pause_seconds(config))
            running = cls(config, engine, kafka, subscription, policy, indexes, held, prepare=prepare)
            running.discover()
            running.date_arrivals()
            if config.completeness.markers:
                running.completing = Completing.open(config, log, resources.enter_context(all_of(settings)), _clock_ms)
            running._store = store
            running.sweep()
            running._resources = resources.pop_all()
            return running

    def discover(self) -> None:
        """Pick up new topics and partitions, and notice deleted topics; at most every few seconds."""
        now = time.monotonic()
        if self._discovered is not None and now - self._discovered < _DISCOVERY_SECONDS:
            return
        existing = self.kafka.topics()
        positions = self.engine.log.head.positions
        check_deleted(self.subscription, positions, existing)
        running = self._discovered is not None
        selected = self.subscription.select(existing)
        new = _PATIENT(beginnings, selected, positions, self.kafka, self.policy, MARK, running=running)
        topics = self._topics(selected, everything=not running)
        if new or topics:
            self.engine.begin(new, topics)
            for tp, commit in new.items():
                _log.info("partition.found topic=%s partition=%d start=%d", tp.topic, tp.partition, commit.position)
        if self.engine.log.head.open_intent is None:
            self.check_starts()
        self._discovered = now

    def _topics(self, selected: Collection[TopicPartition], *, everything: bool) -> dict[str, str]:
        """The ids of topics that the log does not know yet. A topic that is another one now is stopped.

        `everything`: look at those that the log knows too; while it runs, the job does (`SameTopics`).
        """
        head = self.engine.log.head
        known = head.topics
        found = self.kafka.topic_ids(sorted({tp.topic for tp in selected if everything or tp.topic not in known}))
        for tp, position in head.positions.items():
            if tp.topic in known and found.get(tp.topic, known[tp.topic]) != known[tp.topic]:
                self.engine.stop(tp, another(tp, position, known[tp.topic], found[tp.topic]))
        return {topic: topic_id for topic, topic_id in found.items() if topic not in known}

    def date_arrivals(self) -> None:
        """With a latency target, what lies in Kafka already did not arrive only now: go by its timestamps."""
        latency = self.config.rotation.max_latency_ms
        positions = self.engine.log.head.positions
        if latency <= 0 or not positions:
            return
        overdue = _clock_ms() - latency
        ends = self.ends()
        younger = self.kafka.offsets_for_times(dict.fromkeys(ends, overdue))
        for tp, end in ends.items():
            first = younger.get(tp)
            self.engine.arrivals[tp] = observe((), positions[tp], end if first is None else first, overdue)

    def ends(self) -> dict[TopicPartition, int]:
        """Kafka's log end of every topic-partition of this connector.

        One without a leader at the moment is left out; one whose log ends before our position was made anew.
        """
        tps = [tp for tp in self.engine.log.head.positions if self.subscription.covers(tp.topic)]
        if not tps:
            return {}
        try:
            ends = self.kafka.log_ends(tps)
        except PartitionsUnavailable as error:
            _log.warning("partitions.unavailable reason=%s", error)
            ends = dict(error.answered)
        self.seen_ends = {**self.seen_ends, **ends}
        for tp, end in ends.items():
            position = self.engine.log.head.positions[tp]
            if end < position:
                self.engine.stop(tp, made_anew(tp, position, end))
        return ends

    def lag(self, ends: Mapping[TopicPartition, int] | None = None) -> int:
        """Offsets between the positions and `ends`, or the ends that were seen last."""
        positions = self.engine.log.head.positions
        return sum(max(end - positions.get(tp, end), 0) for tp, end in (ends or self.seen_ends).items())

    def check_starts(self) -> None:
        """Notice records that Kafka deleted before they were written, and do as `on.data.loss` says."""
        positions = self.engine.log.head.positions
        tps = [tp for tp in positions if self.subscription.covers(tp.topic)]
        try:
            starts = self.kafka.log_starts(tps) if tps else {}
        except PartitionsUnavailable as error:
            starts = dict(error.answered)
        lost = {tp: start for tp, start in starts.items() if start > positions[tp]}
        if self.config.on_data_loss == "skip" and lost:
            for tp, start in lost.items():
                _log.warning(
                    "records.lost topic=%s partition=%d start=%d end=%d", tp.topic, tp.partition, positions[tp], start
                )
                self.engine.faults.pop(tp, None)  # a job may have met the loss first
            self.engine.begin({tp: Commit(tp, start) for tp, start in lost.items()})
            return
        for tp, start in lost.items():
            self.engine.stop(tp, deleted(tp, positions[tp], start))

    def cycle(
        self,
        ends: Mapping[TopicPartition, int],
        *,
        thorough: bool = False,
        forced: bool = False,
        say: Callable[[str], None] = _quiet,
    ) -> Cycle | None:
        """One cycle of the engine, then the mirror for lag tools, whose failure is only told.

        `say`: told what is being done.
        """
        self.seen_ends = ends
        ready = self._prepared()
        cycle = self.engine.cycle(ends, thorough=thorough, forced=forced, say=say) if ready else None
        if cycle is None:
            self._complete()
            return None
        for commit in cycle.commits:
            if commit.objects:
                self.last_objects[commit.tp] = [each for each in commit.objects if each.view != "index"][-1].key
        try:
            self.indexes.write(cycle.commits)
        except UnavailableError as error:
            _log.warning("indexes.failed reason=%s", error)
        try:
            self.engine.mirror(cycle)
        except UnavailableError as error:
            _log.warning("mirror.failed group=%s reason=%s", self.policy.group, error)
        self._complete(cycle.commits)
        if cycle.commits and time.monotonic() - self._swept >= _SWEEP_SECONDS:
            self.sweep()
        return cycle

    def _prepared(self) -> bool:
        """Whether there is a configuration to plan with; a plan that is open brings its own."""
        if self.prepare is None or self.engine.log.head.open_intent is not None:
            return True
        config = self.prepare(self.engine.config)
        if config is not None:
            self.engine.config = config
        return config is not None

    def _complete(self, commits: Sequence[Commit] = ()) -> None:
        """Record and mark what is complete by now, where that is wanted. An outage puts it off to the next cycle."""
        if self.completing is None:
            return
        for commit in commits:
            self.completing.see(commit)
        try:
            self.completing.advance()
        except UnavailableError as error:
            _log.warning("complete.failed reason=%s", error)

    def sweep(self) -> None:
        """Abort multipart uploads that nobody will complete: between two cycles, and while we hold the log, all are."""
        if self._store is None:
            return
        try:
            left = sweep(self.config, self._store, sorted({tp.topic for tp in self.engine.log.head.positions}))
        except StoreUnavailable as error:
            _log.warning("uploads.unswept reason=%s", error)
            return
        self._swept = time.monotonic()
        if left:
            _log.info("uploads.aborted count=%d", left)

    def __enter__(self) -> Running:  # noqa: PYI034 - Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()
