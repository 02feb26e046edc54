"""What can keep a topic-partition from being read, as sentences for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import DataError, DataLossError, KafkaUnavailable

if TYPE_CHECKING:
    from penstock.errors import PenstockError
    from penstock.model import PlannedRange, TopicPartition

OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC = 1, 3
_CORRUPT, _UNSUPPORTED_COMPRESSION = 2, 76
_REFUSALS = {
    17: "the topic's name is not valid",
    29: "this client may not read the topic (TOPIC_AUTHORIZATION_FAILED): grant it READ and DESCRIBE on the topic",
    31: "this client may not use the cluster (CLUSTER_AUTHORIZATION_FAILED): ask its administrator",
    _UNSUPPORTED_COMPRESSION: "the broker is too old to serve zstd (UNSUPPORTED_COMPRESSION_TYPE): update it to 2.1",
}
_PASSING = {
    5: "it has no leader (LEADER_NOT_AVAILABLE)",
    6: "its leader is changing (NOT_LEADER_OR_FOLLOWER)",
    9: "its replica is not available",
    56: "the disk of its leader failed (KAFKA_STORAGE_ERROR)",
    74: "its leader changed (FENCED_LEADER_EPOCH)",
    75: "its leader is changing (UNKNOWN_LEADER_EPOCH)",
    78: "its new leader does not know its end yet (OFFSET_NOT_AVAILABLE)",
}


@dataclass(frozen=True, slots=True)
class RangeFault:
    """One topic-partition's range ends before its end; everything below `offset` was handed over."""

    tp: TopicPartition
    error: PenstockError
    offset: int


@dataclass(frozen=True, slots=True)
class Lost:
    """Offsets `[start, end)` that Kafka no longer has, passed over because `on_data_loss` is "skip"."""

    tp: TopicPartition
    start: int
    end: int


def refusal(tp: TopicPartition, code: int) -> PenstockError | None:
    """The error of an error code that no waiting mends, or None."""
    reason = _REFUSALS.get(code)
    return None if reason is None else KafkaUnavailable(f"{tp}: {reason}", transient=False)


def trouble(planned: PlannedRange, position: int, code: int) -> PenstockError:
    """The error to end with if an error code does not pass in time."""
    tp = planned.tp
    if code == UNKNOWN_TOPIC:
        return DataLossError(
            f"{tp}@{position}: the topic (or this partition) is not there any more, so offsets "
            f"`[{position}, {planned.end})` cannot be read; create it anew or take it out of topics"
        )
    if code == _CORRUPT:
        return DataError(
            tp, position, "the broker finds its own log damaged here (CORRUPT_MESSAGE); repair its replica"
        )
    reason = _PASSING.get(code, f"the broker answers with Kafka's error code `{code}`")
    return KafkaUnavailable(f"{tp}@{position}: {reason}")


def unreachable(planned: PlannedRange, position: int, reason: str) -> PenstockError:
    """The leader does not answer."""
    return KafkaUnavailable(f"{planned.tp}@{position}: its leader does not answer: {reason}")


def held_back(planned: PlannedRange, position: int, last_stable: int) -> PenstockError:
    """The broker hands out nothing at the position, although the range goes on."""
    tp = planned.tp
    if last_stable <= position:
        return KafkaUnavailable(
            f"{tp}@{position}: nothing to read up to `{planned.end}` yet: an open transaction begins here, or the log "
            "ends here; finish or abort the transaction (kafka-transactions.sh find-hanging)"
        )
    return KafkaUnavailable(
        f"{tp}@{position}: the broker returns no records here, though its log goes to `{last_stable}`"
    )


def lost(planned: PlannedRange, position: int, log_start: int) -> PenstockError:
    """Retention was faster than the sink."""
    gone = f"[{position}, {min(log_start, planned.end)})"
    return DataLossError(
        f"{planned.tp}@{position}: offsets `{gone}` were deleted from Kafka before they were read; "
        f"the log starts at `{log_start}`: on.data.loss=skip goes on there"
    )


def beyond_end(planned: PlannedRange, position: int, log_end: int) -> PenstockError:
    """The log is shorter than it was: recreated under the same name, or cut by an unclean leader election."""
    return DataLossError(
        f"{planned.tp}@{position}: the log ends at `{log_end}`, before this position: the topic was recreated or lost "
        "records on the broker; start under another connector name to read it from its start"
    )
