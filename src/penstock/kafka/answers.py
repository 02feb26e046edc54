"""What an error code in a broker's answer means to the user."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import DataLossError, KafkaUnavailable
from penstock.kafka.failures import user

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from confluent_kafka import KafkaError

    from penstock.errors import PenstockError
    from penstock.kafka.settings import KafkaSettings

NO_ANSWER = (
    "_TIMED_OUT",
    "_TRANSPORT",
    "_ALL_BROKERS_DOWN",
    "_RESOLVE",
    "_SSL",
    "_AUTHENTICATION",
    "_TIMED_OUT_QUEUE",
)
_NO_TOPIC = ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_ID")
NO_LEADER = (
    *_NO_TOPIC,
    "_NOENT",
    "NOT_LEADER_FOR_PARTITION",
    "LEADER_NOT_AVAILABLE",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "OFFSET_NOT_AVAILABLE",
    "REPLICA_NOT_AVAILABLE",
    "KAFKA_STORAGE_ERROR",
)
_NO_COORDINATOR = ("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR")
# librdkafka calls no error of a broker's answer retriable, so what passes by itself is named here.
_PASSING = (
    *NO_LEADER,
    "REQUEST_TIMED_OUT",
    "NETWORK_EXCEPTION",
    "BROKER_NOT_AVAILABLE",
    "NOT_ENOUGH_REPLICAS",
    "THROTTLING_QUOTA_EXCEEDED",
    "_WAIT_COORD",
    "UNKNOWN",
)
_GROUP_IN_USE = ("UNKNOWN_MEMBER_ID", "NON_EMPTY_GROUP", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS")


class Subject(NamedTuple):
    """What was asked about, as far as it is known."""

    topic: str = ""
    partition: int | None = None
    group: str = ""


class NoCoordinatorYet(KafkaUnavailable):
    """The broker that keeps the group's offsets is being appointed, or still reads them."""


def meaning(error: KafkaError, settings: KafkaSettings, subject: Subject) -> PenstockError:
    """The exception for an error that a broker answered with."""
    name = error.name()
    if name in _NO_TOPIC:
        return gone(subject, settings)
    if name in _GROUP_IN_USE and subject.group:
        return KafkaUnavailable(_in_use(subject.group), transient=False)
    if name in _DENIED:
        return KafkaUnavailable(_DENIED[name](user(settings), subject), transient=False)
    msg = f"Kafka at {settings.bootstrap_servers} answers: {error.str()}"
    return NoCoordinatorYet(msg) if name in _NO_COORDINATOR else KafkaUnavailable(msg, transient=name in _PASSING)


def gone(subject: Subject, settings: KafkaSettings) -> DataLossError:
    """A topic or partition is not there."""
    what = f"topic `{subject.topic}`"
    if subject.partition is not None:
        what = f"partition {subject.partition} of {what}"
    return DataLossError(
        f"{what} does not exist (any more) at {settings.bootstrap_servers}, or may not be seen: "
        "correct `topics`, or create the topic under a connector name of its own"
    )


def _in_use(group: str) -> str:
    connector = group.removeprefix("connect-")
    return (
        f"Kafka Connect is still running connector `{connector}`: its consumer group `{group}` has members; "
        "stop it there first, for both would write the same records"
    )


_DENIED: Mapping[str, Callable[[str, Subject], str]] = {
    "TOPIC_AUTHORIZATION_FAILED": lambda who, subject: (
        f"Kafka does not let {who} read topic `{subject.topic}`: grant it DESCRIBE and READ on the topic"
    ),
    "GROUP_AUTHORIZATION_FAILED": lambda who, subject: (
        f"Kafka does not let {who} use consumer group `{subject.group}`: grant it DESCRIBE and READ on the group"
    ),
    "CLUSTER_AUTHORIZATION_FAILED": lambda who, _: (
        f"Kafka does not let {who} use the cluster: grant it DESCRIBE on the cluster"
    ),
}
