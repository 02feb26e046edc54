"""Which topic-partitions belong to a connector, and where new ones begin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from penstock.errors import DataLossError, KafkaUnavailable
from penstock.model import Commit, Fault, Receipt, TopicPartition
from penstock.positions import GroupPosition, Policy, first_positions

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from penstock.config import SinkConfig
    from penstock.model import Plan
    from penstock.statelog import Head


class GroupOffset(Protocol):
    """A committed offset with its metadata."""

    @property
    def offset(self) -> int:
        """The next offset to read."""
        ...

    @property
    def metadata(self) -> str:
        """What was committed with it."""
        ...


class Metadata(Protocol):
    """What discovery asks Kafka for; no records."""

    def topics(self) -> dict[str, tuple[int, ...]]:
        """Every topic that is not internal, with its partitions."""
        ...

    def log_starts(self, tps: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset that is still there."""
        ...

    def log_ends(self, tps: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset behind the last record that may be read."""
        ...

    def committed(self, group: str, tps: Sequence[TopicPartition]) -> Mapping[TopicPartition, GroupOffset]:
        """The group's offsets, where it has any."""
        ...


@dataclass(frozen=True, slots=True)
class Subscription:
    """`topics` or `topics.regex` (the whole name must match)."""

    topics: tuple[str, ...] = ()
    regex: re.Pattern[str] | None = None

    def select(self, existing: Mapping[str, tuple[int, ...]]) -> frozenset[TopicPartition]:
        """The topic-partitions that exist and are subscribed."""
        names = (name for name in existing if self.covers(name))
        return frozenset(TopicPartition(name, partition) for name in names for partition in existing[name])

    def covers(self, topic: str) -> bool:
        """Whether a topic of this name belongs to the connector."""
        return topic in self.topics if self.regex is None else self.regex.fullmatch(topic) is not None

    def missing(self, existing: Collection[str]) -> list[str]:
        """Topics that were named and do not exist."""
        return [name for name in self.topics if name not in existing]


def check_topics(subscription: Subscription, existing: Collection[str], broker: str) -> None:
    """Raise `KafkaUnavailable` if a topic that is named does not exist: it may be made later, so waiting can help."""
    if missing := subscription.missing(existing):
        lines = (
            f"topics: there is no topic `{name}` at {broker}; create it, or correct the property `topics`"
            for name in missing
        )
        msg = "\n".join(lines)
        raise KafkaUnavailable(msg)


def check_deleted(subscription: Subscription, known: Iterable[TopicPartition], existing: Collection[str]) -> None:
    """Raise `DataLossError` if a topic that was being written is gone."""
    gone = sorted({tp.topic for tp in known if tp.topic in subscription.topics and tp.topic not in existing})
    if gone:
        msg = (
            f"topic `{gone[0]}` was deleted while it was being written; the objects committed so far stay; "
            "take it out of `topics`, or create it again under a connector name of its own"
        )
        raise DataLossError(msg)


def deleted(tp: TopicPartition, position: int, start: int) -> Fault:
    """Kafka deleted records that were not written yet."""
    message = (
        f"{tp}: Kafka deleted the records from offset {position} to {start - 1} before they were written; set "
        f"on.data.loss=skip to go on at offset {start}, and give the topic a longer retention"
    )
    return Fault(message, passing=False, offset=position)


def made_anew(tp: TopicPartition, position: int, end: int) -> Fault:
    """The log is shorter than what was written of it."""
    message = (
        f"{tp}: its log ends at offset {end}, but objects are committed up to offset {position}: the topic was deleted "
        "and made anew; write it under a connector name and topics.dir of its own"
    )
    return Fault(message, passing=False, offset=position)


def another(tp: TopicPartition, position: int, known: str, found: str) -> Fault:
    """The topic of this name is not the one that objects were written from."""
    message = (
        f"{tp}: the topic was deleted and made anew: its id is `{found}`, but objects are committed up to offset "
        f"{position} of `{known}`; write it under a connector name and topics.dir of its own"
    )
    return Fault(message, passing=False, offset=position)


@dataclass(frozen=True, slots=True)
class SameTopics:
    """A job whose receipts count only while each topic is the one that the state log knows.

    Asked behind the job: an id never comes back, so everything that the job read was of that topic.
    """

    job: Callable[[Plan, SinkConfig, int], list[Receipt]]
    ids: Callable[[Collection[str]], Mapping[str, str]]
    head: Callable[[], Head]

    def __call__(self, plan: Plan, config: SinkConfig, seq: int) -> list[Receipt]:
        """The job's receipts; those of another topic commit nothing and say so.

        Raises:
            DataLossError: a topic does not exist any more.
        """
        receipts = self.job(plan, config, seq)
        known = self.head().topics
        found = self.ids(sorted({each.commit.tp.topic for each in receipts} & known.keys()))
        positions = self.head().positions

        def judged(receipt: Receipt) -> Receipt:
            tp = receipt.commit.tp
            if found.get(tp.topic) in (None, known.get(tp.topic)):
                return receipt
            at = positions.get(tp, 0)
            return Receipt(Commit(tp, at), at, fault=another(tp, at, known[tp.topic], found[tp.topic]))

        return [judged(each) for each in receipts]


def beginnings(
    selected: Collection[TopicPartition],
    known: Mapping[TopicPartition, int],
    kafka: Metadata,
    policy: Policy,
    mark: str,
    *,
    running: bool,
) -> dict[TopicPartition, Commit]:
    """The first positions of topic-partitions that the state log does not know, as commits without objects.

    A new partition of a known topic, and whatever appears while the sink runs, begins at the log's start, whatever
    `auto.offset.reset` says: nothing that is produced after the sink was started may be missed.
    """
    new = sorted(tp for tp in selected if tp not in known)
    if not new:
        return {}
    topics = {tp.topic for tp in known}
    grown = [tp for tp in new if running or tp.topic in topics]
    fresh = [tp for tp in new if tp not in set(grown)]
    starts = kafka.log_starts(new)
    positions = {tp: starts[tp] for tp in grown}
    if fresh:
        group = {
            tp: GroupPosition(found.offset, ours=found.metadata == mark)
            for tp, found in kafka.committed(policy.group, fresh).items()
        }
        ends = kafka.log_ends(fresh)
        positions |= first_positions(fresh, group, starts, ends, policy)
    return {tp: Commit(tp, position) for tp, position in sorted(positions.items())}
