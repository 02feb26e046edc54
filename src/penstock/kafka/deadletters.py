"""The dead-letter topic, with Kafka Connect's context headers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # public, not in its types

from penstock.errors import KafkaUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.kafka.settings import KafkaSettings
    from penstock.model import Rejected


_PREFIX = "__connect.errors."
_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class DeadLetterTopic:
    """Sends refused records to `topic`. `context`: whether headers say where they come from and what was wrong."""

    settings: KafkaSettings
    connector: str
    topic: str
    context: bool

    def send(self, records: Iterable[Rejected]) -> None:
        """All of them are with the brokers when this returns.

        Raises:
            KafkaUnavailable: they could not all be sent; some may have been.
        """
        failed: list[KafkaError] = []
        producer = Producer({**self.settings.librdkafka_config(), "acks": "all", "enable.idempotence": True})

        def told(error: KafkaError | None, _message: object) -> None:
            if error is not None:
                failed.append(error)

        for record in records:
            headers = [*record.headers, *(self._context(record) if self.context else ())]
            while True:
                try:
                    producer.produce(self.topic, record.value, record.key, headers=headers, on_delivery=told)
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        left = producer.flush(_TIMEOUT_SECONDS)
        if left or failed:
            why = failed[0].str() if failed else f"no answer within {_TIMEOUT_SECONDS:g} s"
            transient = not failed or failed[0].retriable() or failed[0].code() == KafkaError._MSG_TIMED_OUT  # noqa: SLF001 - its only name
            msg = f"dead-letter topic `{self.topic}`: {why}; check that it exists and may be written to"
            raise KafkaUnavailable(msg, transient=transient)

    def _context(self, record: Rejected) -> list[tuple[str, bytes]]:
        facts = {
            "topic": record.topic,
            "partition": str(record.partition),
            "offset": str(record.offset),
            "connector.name": self.connector,
            "task.id": "0",
            "stage": record.reason.stage,
            "class.name": "penstock",
            "exception.class.name": "penstock.errors.DataError",
            "exception.message": record.reason.text,
            "exception.stacktrace": record.reason.text,
        }
        return [(_PREFIX + name, text.encode()) for name, text in facts.items()]


def ensure_topic(settings: KafkaSettings, topic: str, replication: int) -> None:
    """Make the dead-letter topic where it does not exist, with one partition, as Kafka Connect does.

    Raises:
        KafkaUnavailable: it is not there and cannot be made.
    """
    config: dict[str, Any] = settings.librdkafka_config()
    admin = AdminClient(config)
    future = admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=replication)])[topic]
    try:
        future.result(_TIMEOUT_SECONDS)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            msg = (
                f"dead-letter topic `{topic}` cannot be made: {error.args[0].str()}; create it, or set "
                "errors.deadletterqueue.topic.replication.factor to at most the number of brokers"
            )
            raise KafkaUnavailable(msg, transient=False) from error
