"""Setting a connector's positions by hand: where to, what that takes back, and the entry that records it.

History is never deleted: a reset is one more entry, and objects behind the new position do not count any more. So that
every record stays in one object that counts, a position never lies inside one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import StateError, UsageError
from penstock.pipeline import open_log
from penstock.statelog.entries import Reset

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.audit.history import History, Move
    from penstock.config import SinkConfig
    from penstock.kafka.cluster import Cluster
    from penstock.model import CommittedObject, TopicPartition


@dataclass(frozen=True, slots=True)
class Change:
    """What a reset does to one topic-partition.

    `asked`: where to, before it was moved to the edge of an object. `taken_back`: objects that do not count any more.
    """

    tp: TopicPartition
    position: int
    asked: int
    target: int
    taken_back: tuple[CommittedObject, ...] = ()

    @property
    def passed_over(self) -> int:
        """How many offsets are never written."""
        return max(self.target - self.position, 0)


def wanted_offsets(
    kafka: Cluster, tps: Sequence[TopicPartition], offsets: Mapping[TopicPartition, int], time_ms: int | None
) -> dict[TopicPartition, int]:
    """Where a reset of `tps` goes: to `offsets` where there are some, else to a time, else to the earliest offset.

    Raises:
        UsageError: an offset that Kafka does not have.
    """
    if not offsets and time_ms is None:
        return kafka.log_starts(tps)
    ends = kafka.log_ends(tps)
    if not offsets and time_ms is not None:
        found = kafka.offsets_for_times(dict.fromkeys(tps, time_ms))
        return {tp: ends[tp] if (offset := found[tp]) is None else offset for tp in tps}
    starts = kafka.log_starts(tps)
    for tp, offset in offsets.items():
        if not starts[tp] <= offset <= ends[tp]:
            msg = f"{tp}: Kafka has the offsets {starts[tp]} to {ends[tp]}; got `{offset}`"
            raise UsageError(msg)
    return dict(offsets)


def changes(
    history: History, wanted: Mapping[TopicPartition, int], starts: Mapping[TopicPartition, int]
) -> list[Change]:
    """What the reset does, topic-partitions that stay where they are left out. `starts`: Kafka's first offsets."""
    found = []
    for tp, asked in sorted(wanted.items()):
        objects = [each for move in history.moves.get(tp, ()) for each in move.objects]
        target = edge(asked, objects, starts[tp])
        position = history.head.positions[tp]
        if target != position:
            taken = tuple(each for each in objects if each.end > target)
            found.append(Change(tp, position, asked, target, taken))
    return found


def edge(asked: int, objects: Sequence[CommittedObject], least: int) -> int:
    """The next offset that lies inside no object: before `asked`, or behind it where Kafka lacks what is before."""
    down = asked
    while inside := [each.start for each in objects if each.start < down < each.end]:
        down = min(inside)
    if down >= least:
        return down
    up = asked
    while behind := [each.end for each in objects if each.start < up < each.end]:
        up = max(behind)
    return up


def carry_out(config: SinkConfig, planned: Sequence[Change]) -> int:
    """Take the log over and record the reset; the entry's number. A running instance stops.

    Raises:
        StateError: a position moved since the changes were planned.
    """
    log = open_log(config)
    for each in planned:
        at = log.head.positions.get(each.tp)
        if at != each.position:
            msg = f"{each.tp} moved from offset {each.position} to {at} meanwhile; nothing was reset, so do it again"
            raise StateError(msg)
    return log.reset([Reset(each.tp, each.target) for each in planned]).seq


def holding(history: History, tp: TopicPartition, offset: int) -> tuple[Sequence[CommittedObject], str]:
    """The objects that may hold a record, and a sentence about them.

    More than one where records of several encoded partitions were cut together.
    """
    if tp not in history.head.positions:
        known = ", ".join(map(str, history.head.positions)) or "none"
        return (), f"the log knows no {tp}; it knows {known}"
    if offset >= history.head.positions[tp]:
        return (), f"{tp}@{offset} is in no object yet: the position is {history.head.positions[tp]}"
    move = _move(history.moves.get(tp, ()), offset)
    if move is None:
        return (), f"{tp}@{offset} was never to be written: before the first position, deleted by Kafka, or reset"
    found = [each for each in move.objects if each.start <= offset < each.end]
    when = f"entry {move.entry} committed the offsets [{move.start}, {move.end})"
    if not found:
        left = f"{move.commit.skipped} records were left out and {move.commit.hidden} offsets have none"
        return (), f"{tp}@{offset} is in no object: {when}, of which {left}"
    return found, when if len({each.encoded_partition for each in found}) == 1 else f"one of these; {when}"


def _move(moves: Sequence[Move], offset: int) -> Move | None:
    return next((each for each in moves if each.start <= offset < each.end), None)
