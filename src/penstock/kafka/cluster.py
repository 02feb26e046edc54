"""What the driver asks Kafka: topics, where their logs start and end, a group's offsets. Never a record."""

from __future__ import annotations

import time
from concurrent.futures import wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # public, not in its types
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from penstock.errors import KafkaUnavailable
from penstock.kafka import coordinator
from penstock.kafka.answers import NO_ANSWER, NO_LEADER, NoCoordinatorYet, Subject, gone, meaning
from penstock.kafka.failures import Report, away, refusal
from penstock.kafka.oauth import OAuth, token_source
from penstock.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from concurrent.futures import Future
    from types import TracebackType

    from penstock.kafka.settings import KafkaSettings

MARK = "penstock"
"""Metadata of the offsets that `mirror` commits: they show lag and are no position."""

_EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # no annotations there
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_INTERNAL = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"))
_PEEK_SECONDS = 0.05
_MOST_REPORTS = 50
_ATTEMPTS = 5
_COORDINATOR_MS = 6_000
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """An offset that a consumer group committed, and the note that came with it."""

    offset: int
    metadata: str


class PartitionsUnavailable(KafkaUnavailable):
    """Some partitions have no leader at the moment. `answered`: what the others said."""

    def __init__(self, message: str, answered: Mapping[TopicPartition, int]) -> None:
        super().__init__(message)
        self.answered = answered


class Cluster:
    """A connection to the brokers, opened by `with`, for one thread.

    Every call ends within the time limit (`default.api.timeout.ms`) and raises KafkaUnavailable where Kafka does not
    answer or refuses. A refused login or certificate is reported as soon as it is known.
    """

    def __init__(self, settings: KafkaSettings, timeout_s: float | None = None) -> None:
        self.settings = settings
        self._timeout_s = settings.default_api_timeout_ms / 1000 if timeout_s is None else timeout_s
        self._reports: list[Report] = []
        self._open: AdminClient | None = None
        self._mirroring: tuple[str, Consumer] | None = None
        self._heard: list[tuple[KafkaError | None, list[KafkaTopicPartition]]] = []

    def __enter__(self) -> Cluster:  # noqa: PYI034 - Python 3.10 has no Self
        if isinstance(self.settings.sasl, OAuth):
            # librdkafka would swallow the reason if the first token could not be had.
            token_source(self.settings.sasl).token()
        try:
            config: dict[str, Any] = self.settings.librdkafka_config() | {"error_cb": self._note}
            self._open = AdminClient(config)
        except KafkaException as error:
            msg = f"the Kafka client cannot be set up with these settings: {error.args[0].str()}"
            raise KafkaUnavailable(msg, transient=False) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_mirroring()
        self._open = None

    def topics(self) -> dict[str, tuple[int, ...]]:
        """Every topic that is there and that we may see, Kafka's own left out, with its partition numbers."""
        self._reach()
        try:
            listed = self._admin.list_topics(timeout=self._timeout_s).topics
        except KafkaException as error:
            self._fail(error.args[0])
        return {
            name: tuple(sorted(topic.partitions))
            for name, topic in sorted(listed.items())
            if name not in _INTERNAL and topic.partitions
        }

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        """The id of each topic, which changes when it is deleted and made again; brokers before 2.8 have none.

        Raises:
            DataLossError: a topic does not exist.
        """
        if not topics:
            return {}
        futures = self._admin.describe_topics(TopicCollection(list(topics)), request_timeout=self._timeout_s)
        found = {topic: str(self._result(future, topic=topic).topic_id) for topic, future in self._done(futures)}
        return {topic: topic_id for topic, topic_id in found.items() if topic_id != _NO_ID}

    def log_starts(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset that is still there.

        Raises:
            DataLossError: a topic-partition does not exist.
            PartitionsUnavailable: some have no leader at the moment.
        """
        return self._offsets(dict.fromkeys(tps, _EARLIEST))

    def log_ends(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset behind the last record that may be read: the last stable one under `read_committed`.

        Raises:
            DataLossError: a topic-partition does not exist.
            PartitionsUnavailable: some have no leader at the moment.
        """
        return self._offsets(dict.fromkeys(tps, _LATEST))

    def offsets_for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset whose record is of that millisecond or later; None where there is none yet.

        Raises:
            DataLossError: a topic-partition does not exist.
            PartitionsUnavailable: some have no leader at the moment.
        """
        found = self._offsets({tp: OffsetSpec.for_timestamp(time_ms) for tp, time_ms in times.items()})
        return {tp: None if offset < 0 else offset for tp, offset in found.items()}

    def committed(self, group: str, tps: Collection[TopicPartition]) -> dict[TopicPartition, GroupOffset]:
        """The group's offsets, of those topic-partitions where it has any."""
        if not tps:
            return {}
        self._may_see(group)
        # Not the admin client: librdkafka crashes where its answer is that the coordinator is still loading.
        config: dict[str, Any] = self.settings.librdkafka_config() | {"error_cb": self._note}
        consumer = Consumer({**config, "group.id": group, "enable.auto.commit": False})
        try:
            asked = [KafkaTopicPartition(tp.topic, tp.partition) for tp in tps]
            found = consumer.committed(asked, timeout=self._timeout_s)
        except KafkaException as error:
            self._fail(error.args[0], group=group)
        finally:
            consumer.close()
        for each in found:
            if each.error is not None:
                self._fail(each.error, topic=each.topic, group=group)
        return {
            TopicPartition(each.topic, each.partition): GroupOffset(each.offset, each.metadata or "")
            for each in found
            if each.offset >= 0
        }

    def mirror(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit `offsets` to the group, marked as ours, for tools that show lag.

        Raises:
            KafkaUnavailable: also where the group has members: Kafka Connect still runs this connector.
        """
        if not offsets:
            return
        marked = [KafkaTopicPartition(tp.topic, tp.partition, offset, MARK) for tp, offset in offsets.items()]
        settings = self.settings
        patiently = Retrying(
            stop=stop_after_attempt(_ATTEMPTS + 3),
            wait=wait_exponential(settings.retry_backoff_ms / 1000, settings.retry_backoff_max_ms / 1000),
            retry=retry_if_exception_type(NoCoordinatorYet),
            reraise=True,
        )
        patiently(self._commit, group, marked)

    @property
    def _admin(self) -> AdminClient:
        if self._open is None:
            msg = "a Cluster answers inside its `with` block only"
            raise RuntimeError(msg)
        return self._open

    def _note(self, error: KafkaError) -> None:
        if len(self._reports) < _MOST_REPORTS:
            self._reports.append(Report(error.name(), error.str()))

    def _reach(self) -> None:
        """Find out that a broker answers, or why none does."""
        for _, future in self._done({"": self._admin.describe_cluster(request_timeout=self._timeout_s)}):
            self._result(future)

    def _may_see(self, group: str) -> None:
        """Find out whether the group may be asked about; a consumer would wait for that right until its time is up."""
        code = coordinator.error_code(self.settings.aiokafka_kwargs(), group)
        if code:
            self._fail(KafkaError(code), group=group)

    def _commit(self, group: str, offsets: list[KafkaTopicPartition]) -> None:
        """Commit as a consumer that never joins; not by the admin client (`penstock.kafka.coordinator`)."""
        if self._mirroring is None or self._mirroring[0] != group:
            self._end_mirroring()
            self._mirroring = group, self._consumer(group)
        self._heard.clear()
        consumer = self._mirroring[1]
        # A commit that is waited for would wait without an end.
        consumer.commit(offsets=offsets, asynchronous=True)
        deadline = time.monotonic() + min(self._timeout_s, 2 * _COORDINATOR_MS / 1000)
        while not self._heard:
            consumer.poll(_PEEK_SECONDS)
            if time.monotonic() > deadline:
                self._end_mirroring()
                raise away(self.settings, self._reports, self._timeout_s)
        error, answered = self._heard[0]
        if error is not None:
            if error.name() == "_WAIT_COORD":
                self._may_see(group)
            self._fail(error, topic=", ".join(sorted({each.topic for each in offsets})), group=group)
        for each in answered or ():
            if each.error is not None:
                self._fail(each.error, topic=each.topic, group=group)

    def _consumer(self, group: str) -> Consumer:
        """A consumer that only commits. The session's time is how long a commit waits for a coordinator."""
        config: dict[str, Any] = self.settings.librdkafka_config() | {"error_cb": self._note}
        waiting = {"session.timeout.ms": _COORDINATOR_MS, "heartbeat.interval.ms": _COORDINATOR_MS // 3}
        own = {"group.id": group, "enable.auto.commit": False, "on_commit": self._hear}
        return Consumer({**config, **waiting, **own})

    def _hear(self, error: KafkaError | None, answered: list[KafkaTopicPartition]) -> None:
        self._heard.append((error, answered))

    def _end_mirroring(self) -> None:
        if self._mirroring is not None:
            self._mirroring[1].close()
            self._mirroring = None

    def _offsets(self, specs: Mapping[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int]:
        """One offset per topic-partition; asked again a few times where a leader is just changing."""
        answered: dict[TopicPartition, int] = {}
        failed: dict[TopicPartition, KafkaError] = {}
        pause_ms = self.settings.retry_backoff_ms
        for attempt in range(_ATTEMPTS if specs else 0):
            if attempt:
                time.sleep(min(pause_ms, self.settings.retry_backoff_max_ms) / 1000)
                pause_ms *= 2
            failed = self._ask({tp: spec for tp, spec in specs.items() if tp not in answered}, answered)
            if not failed:
                break
        if failed:
            self._give_up(failed, answered)
        return answered

    def _ask(
        self, specs: Mapping[TopicPartition, OffsetSpec], answered: dict[TopicPartition, int]
    ) -> dict[TopicPartition, KafkaError]:
        """One request per leader. Adds to `answered`; gives back the failures that another attempt may cure."""
        level = IsolationLevel[self.settings.isolation_level.upper()]
        asked = {KafkaTopicPartition(tp.topic, tp.partition): spec for tp, spec in specs.items()}
        futures = self._admin.list_offsets(asked, isolation_level=level, request_timeout=self._timeout_s)
        failed: dict[TopicPartition, KafkaError] = {}
        for kafka_tp, future in self._done(futures):
            tp = TopicPartition(kafka_tp.topic, kafka_tp.partition)
            error = future.exception()
            if error is None:
                answered[tp] = future.result().offset
                continue
            failed[tp] = _kafka_error(error)
            if failed[tp].name() not in NO_LEADER:
                self._fail(failed[tp], topic=tp.topic, partition=tp.partition)
        return failed

    def _give_up(self, failed: Mapping[TopicPartition, KafkaError], answered: Mapping[TopicPartition, int]) -> NoReturn:
        """Raise what is behind failures that did not pass: topics that are not there or forbidden, or lost leaders."""
        topics = sorted({tp.topic for tp in failed})
        futures = self._admin.describe_topics(TopicCollection(topics), request_timeout=self._timeout_s)
        described = {topic: self._result(future, topic=topic) for topic, future in self._done(futures)}
        for tp in sorted(failed):
            if tp.partition not in {each.id for each in described[tp.topic].partitions}:
                raise gone(Subject(tp.topic, tp.partition), self.settings)
        first = min(failed)
        msg = (
            f"{len(failed)} topic-partitions have no leader at the moment (first {first}: "
            f"{failed[first].str()}); waiting for the brokers that hold them"
        )
        raise PartitionsUnavailable(msg, answered)

    def _done(self, futures: Mapping[Any, Future[Any]]) -> list[tuple[Any, Future[Any]]]:
        """All of `futures`, each with a result; ends early if Kafka refuses to talk to us at all."""
        deadline = time.monotonic() + self._timeout_s
        self._reports.clear()
        judged = 0
        while True:
            left = wait(futures.values(), timeout=_PEEK_SECONDS).not_done
            self._admin.poll(0)
            if not left:
                return list(futures.items())
            if len(self._reports) > judged and (refused := self._refusal()):
                raise refused
            judged = len(self._reports)
            if time.monotonic() > deadline + _PEEK_SECONDS:
                raise away(self.settings, self._reports, self._timeout_s)

    def _refusal(self) -> KafkaUnavailable | None:
        return refusal(self.settings, self._reports) if self._reports else None

    def _result(self, future: Future[Any], *, topic: str = "", group: str = "") -> Any:  # noqa: ANN401 - librdkafka's own
        error = future.exception()
        if error is not None:
            self._fail(_kafka_error(error), topic=topic, group=group)
        return future.result()

    def _fail(self, error: KafkaError, *, topic: str = "", partition: int | None = None, group: str = "") -> NoReturn:
        """Raise what an error of the broker or of the client means to the user."""
        if error.name() in NO_ANSWER:
            raise self._refusal() or away(self.settings, self._reports, self._timeout_s)
        raise meaning(error, self.settings, Subject(topic, partition, group))


def _kafka_error(error: BaseException) -> KafkaError:
    """The KafkaError inside what a future of librdkafka's failed with; anything else is a mistake of ours."""
    if isinstance(error, KafkaException):
        inner: KafkaError = error.args[0]
        return inner
    raise error
