"""What a sink says about itself: summaries of runs, and where every topic-partition stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from penstock.errors import KafkaUnavailable
from penstock.kafka.cluster import Cluster
from penstock.pipeline import read_head

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.config import SinkConfig
    from penstock.kafka.settings import KafkaSettings
    from penstock.model import Fault, TopicPartition
    from penstock.running import Running
    from penstock.summary import CycleSummary


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a run committed, what it left open (records since the last cut), and where it had to stop."""

    committed: CycleSummary
    open: tuple[tuple[TopicPartition, int], ...]
    faults: tuple[tuple[TopicPartition, str], ...]


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """Where one topic-partition stands. `lag`: offsets between the position and the log's end."""

    tp: TopicPartition
    position: int
    log_end: int
    lag: int
    last_object: str | None
    last_error: str | None


@dataclass(frozen=True, slots=True)
class SinkStatus:
    """Where a connector stands."""

    name: str
    state: Literal["RUNNING", "STOPPED"]
    partitions: tuple[PartitionStatus, ...]


def run_summary(running: Running, committed: CycleSummary) -> RunSummary:
    """What a run did; records of a tail that was never looked at are counted by their offsets."""
    engine, still_open = running.engine, []
    for tp, position in sorted(engine.log.head.positions.items()):
        look = engine.looks.get(tp)
        known = look is not None and look.position == position
        looked_to, records = (look.looked_to, look.records) if look is not None and known else (position, 0)
        records += max(running.seen_ends.get(tp, looked_to) - looked_to, 0)
        if records:
            still_open.append((tp, records))
    faults = tuple((tp, fault.message) for tp, fault in sorted(engine.faults.items()))
    return RunSummary(committed, tuple(still_open), faults)


def running_status(name: str, running: Running, settings: KafkaSettings) -> SinkStatus:
    """The status of a connector that runs in another thread of this process; asks Kafka on a connection of its own.

    While Kafka is away, the log ends are those that the connector saw last.
    """
    head, newer, faults = running.engine.log.head, dict(running.last_objects), dict(running.engine.faults)
    try:
        with Cluster(settings) as kafka:
            ends: Mapping[TopicPartition, int] = kafka.log_ends(sorted(head.positions))
    except KafkaUnavailable:
        ends = running.seen_ends
    return SinkStatus(name, "RUNNING", _partitions(head.positions, ends, {**head.last_objects, **newer}, faults))


def stored_status(config: SinkConfig, settings: KafkaSettings) -> SinkStatus:
    """The status of a connector by what is in S3 and in Kafka; takes nothing over."""
    head = read_head(config)
    with Cluster(settings) as kafka:
        ends = kafka.log_ends(sorted(head.positions))
    return SinkStatus(config.name, "STOPPED", _partitions(head.positions, ends, head.last_objects, {}))


def _partitions(
    positions: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    objects: Mapping[TopicPartition, str],
    faults: Mapping[TopicPartition, Fault],
) -> tuple[PartitionStatus, ...]:
    rows = []
    for tp in sorted(positions):
        position, fault = positions[tp], faults.get(tp)
        end = max(ends.get(tp, position), position)
        message = None if fault is None else fault.message
        rows.append(PartitionStatus(tp, position, end, end - position, objects.get(tp), message))
    return tuple(rows)
