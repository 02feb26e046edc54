"""The Kafka that is restored to: a transactional producer, and the group whose offsets are the positions."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic  # type: ignore[attr-defined]  # public, not in its types

from penstock.errors import KafkaUnavailable, PenstockError, TakenOverError
from penstock.model import TopicPartition
from penstock.restore.offsets import Position

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from confluent_kafka import Message

    from penstock.restore.records import Record

T = TypeVar("T")
_TIMEOUT_SECONDS, _TRIES, _POLL_SECONDS = 30.0, 4, 0.2
_TRANSACTION_TIMEOUT_MS = 300_000
_FENCED = frozenset(
    (
        KafkaError._FENCED,  # noqa: SLF001 - librdkafka's own codes have no other names
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.PRODUCER_FENCED,
    )
)
_PRODUCER: dict[str, Any] = {
    "enable.idempotence": True,
    "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS,
    "linger.ms": 20,
    "compression.type": "lz4",
    "message.max.bytes": 1_000_000_000,
    "queue.buffering.max.kbytes": 128 * 1024,  # the records of about one transaction, never an object's
}


@dataclass(frozen=True, slots=True)
class Place:
    """A Kafka. `config`: librdkafka's, for any client."""

    servers: str
    config: Mapping[str, Any] = field(repr=False)


@dataclass(slots=True)
class Target:
    """Topics of a Kafka as a restore sees them. `name`: the restore's; names its group and its transactions.

    Use it as a context manager, in one thread: what a transaction has begun is given up on an error.
    """

    place: Place
    name: str
    new_offsets: list[int] = field(default_factory=list)
    _refused: KafkaError | None = None
    _consumer: Consumer | None = None
    _producer: Producer | None = None
    _in_transaction: bool = False

    @property
    def group(self) -> str:
        """The consumer group, and the transactional id."""
        return f"penstock-restore-{self.name}"

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has; 0 where there is none."""
        topics = self._asked(lambda: self._group().list_topics(timeout=_TIMEOUT_SECONDS).topics)
        return len(topics[topic].partitions) if topic in topics else 0

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic with the broker's own defaults. Raises PenstockError where the broker refuses."""
        admin = AdminClient(dict(self.place.config))  # has to outlive its requests
        made = admin.create_topics([NewTopic(topic, num_partitions=partitions)])
        self._asked(made[topic].result)

    def stamps_itself(self, topic: str) -> bool:
        """Whether a topic replaces timestamps by the time of arrival; False where that may not be asked."""
        admin, resource = AdminClient(dict(self.place.config)), ConfigResource("topic", topic)
        try:
            found = admin.describe_configs([resource])[resource].result(_TIMEOUT_SECONDS)
        except KafkaException:
            return False
        return bool(found["message.timestamp.type"].value == "LogAppendTime")

    def take_over(self) -> None:
        """End what an older instance of this restore left open; from here on it can write nothing more."""
        self._producer = Producer({**self.place.config, **_PRODUCER, "transactional.id": self.group})
        self._asked(lambda: self._sender().init_transactions(_TIMEOUT_SECONDS))

    def positions(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, Position]:
        """Where the restore stands in those that it knows. Raises `StateError` where somebody else uses the group."""
        wanted = [KafkaTopicPartition(tp.topic, tp.partition) for tp in tps]
        found = self._asked(lambda: self._group().committed(wanted, timeout=_TIMEOUT_SECONDS))
        return {
            TopicPartition(each.topic, each.partition): Position.read(each.metadata or "", self.group)
            for each in found
            if each.offset >= 0
        }

    def is_empty(self, tp: TopicPartition) -> bool:
        """Whether a partition holds nothing."""
        asked = KafkaTopicPartition(tp.topic, tp.partition)
        first, end = self._asked(lambda: self._group().get_watermark_offsets(asked, timeout=_TIMEOUT_SECONDS))
        return bool(first == end)

    def begin(self) -> None:
        """Begin a transaction."""
        self._asked(self._sender().begin_transaction)
        self._in_transaction, self.new_offsets = True, []

    def send(self, record: Record, tp: TopicPartition) -> None:
        """Hand a record over; its new offset is in `new_offsets`, in order, once `flush` has returned."""
        stamp: dict[str, Any] = {} if record.timestamp is None else {"timestamp": record.timestamp}
        producer = self._sender()
        while True:
            try:
                producer.produce(
                    tp.topic,
                    record.value,
                    record.key,
                    tp.partition,
                    headers=list(record.headers) or None,
                    on_delivery=self._told,
                    **stamp,
                )
            except BufferError:
                producer.poll(_POLL_SECONDS)
            except KafkaException as error:
                raise self._failed(error.args[0]) from None
            else:
                break
        producer.poll(0)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._sender().poll(seconds)

    def flush(self) -> None:
        """All records of the transaction are with the brokers. Raises PenstockError where one is refused."""
        producer = self._sender()
        while len(producer) and self._refused is None:
            producer.poll(_POLL_SECONDS)
        if self._refused is not None:
            raise self._failed(self._refused)

    def commit(self, positions: Mapping[TopicPartition, tuple[int, Position]]) -> None:
        """End the transaction: its records count, and with them the positions, by (next old offset, position)."""
        offsets = [
            KafkaTopicPartition(tp.topic, tp.partition, offset, position.metadata)
            for tp, (offset, position) in positions.items()
        ]
        group = self._group().consumer_group_metadata()
        self._asked(lambda: self._sender().send_offsets_to_transaction(offsets, group, _TIMEOUT_SECONDS))
        self._asked(lambda: self._sender().commit_transaction(_TIMEOUT_SECONDS))
        self._in_transaction = False

    def __enter__(self) -> Target:  # noqa: PYI034 - Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._in_transaction and self._producer is not None:
            with suppress(KafkaException):  # then the next run, or the broker after a while, ends it
                self._producer.abort_transaction(_TIMEOUT_SECONDS)
        if self._consumer is not None:
            self._consumer.close()
        self._producer = self._consumer = None  # its callbacks know us, and we know it

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._refused = self._refused or error
        else:
            self.new_offsets.append(message.offset() or 0)

    def _group(self) -> Consumer:
        """A consumer that is never subscribed: it knows the group's offsets."""
        if self._consumer is None:
            own = {"group.id": self.group, "enable.auto.commit": False, "isolation.level": "read_committed"}
            self._consumer = Consumer({**self.place.config, **own})
        return self._consumer

    def _sender(self) -> Producer:
        assert self._producer is not None, "take_over comes first"  # noqa: S101
        return self._producer

    def _asked(self, question: Callable[[], T]) -> T:
        """The answer; a question that may be repeated is."""
        for left in reversed(range(_TRIES)):
            try:
                return question()
            except KafkaException as error:
                if left and error.args[0].retriable():
                    continue
                raise self._failed(error.args[0]) from None
        raise AssertionError

    def _failed(self, error: KafkaError) -> PenstockError:
        if error.code() in _FENCED:
            return TakenOverError(f"another instance of the restore `{self.name}` took over; this one stops")
        then = "check that it runs and allows this; the same command goes on where it stood"
        msg = f"Kafka at {self.place.servers}: {error.str()}; {then}"
        return KafkaUnavailable(msg, transient=error.retriable())
