"""Where reading begins and ends, as Spark's Kafka options say it; pure arithmetic on offsets."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.model import PlannedRange, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

EARLIEST, LATEST = -2, -1
"""Offsets that stand for the log's start and end, as in Spark's JSON and in Kafka itself."""

Offsets: TypeAlias = "dict[TopicPartition, int]"


@dataclass(frozen=True, slots=True)
class Everywhere:
    """EARLIEST or LATEST for every topic-partition."""

    offset: int


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """An offset for each topic-partition; EARLIEST and LATEST may be among them."""

    offsets: Mapping[TopicPartition, int] = field(hash=False)


@dataclass(frozen=True, slots=True)
class AtTimes:
    """The first record of that millisecond or later: `time_ms` for all, or `times` for each topic-partition."""

    time_ms: int | None = None
    times: Mapping[TopicPartition, int] | None = field(default=None, hash=False)

    def of(self, tps: list[TopicPartition]) -> dict[TopicPartition, int]:
        """The time for each of `tps`, which `times` is known to cover."""
        if self.times is not None:
            return {tp: self.times[tp] for tp in tps}
        return dict.fromkeys(tps, self.time_ms or 0)


Place: TypeAlias = "Everywhere | AtOffsets | AtTimes"


def parse_offsets(text: str) -> Offsets:
    """Spark's JSON of offsets or times: `{"topic": {"0": 23, "1": -2}}`. Raises ValueError("must be ...")."""
    msg = 'must be JSON like {"topic": {"0": 23, "1": -2}}'
    try:
        document = json.loads(text)
        return {
            TopicPartition(topic, _number(partition)): _offset(offset)
            for topic, offsets in document.items()
            for partition, offset in offsets.items()
        }
    except (ValueError, AttributeError) as error:
        raise ValueError(msg) from error


def parse_assignment(text: str) -> tuple[TopicPartition, ...]:
    """Spark's JSON of topic-partitions: `{"topic": [0, 1]}`. Raises ValueError("must be ...")."""
    msg = 'must be JSON like {"topic": [0, 1]}'
    try:
        found = [TopicPartition(topic, _offset(each)) for topic, parts in json.loads(text).items() for each in parts]
    except (ValueError, AttributeError, TypeError) as error:
        raise ValueError(msg) from error
    if not found or any(tp.partition < 0 for tp in found):
        raise ValueError(msg)
    return tuple(sorted(set(found)))


def as_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Offsets as Spark's Kafka source writes them into a checkpoint."""
    document: dict[str, dict[str, int]] = {}
    for tp, offset in sorted(offsets.items()):
        document.setdefault(tp.topic, {})[str(tp.partition)] = offset
    return document


def of_json(document: Mapping[str, Mapping[str, int]]) -> Offsets:
    """What `as_json` made."""
    return {TopicPartition(topic, int(p)): offset for topic, parts in document.items() for p, offset in parts.items()}


def split(ranges: list[PlannedRange], least: int) -> list[PlannedRange]:
    """The ranges, cut into at least `least` pieces of about the same number of offsets (`minPartitions`)."""
    total = sum(each.offsets for each in ranges)
    if len(ranges) >= least or total == 0:
        return ranges
    found: list[PlannedRange] = []
    for each in ranges:
        pieces = min(max(-(-least * each.offsets // total), 1), each.offsets)
        edges = [each.start + each.offsets * piece // pieces for piece in range(pieces + 1)]
        found += [PlannedRange(each.tp, a, b) for a, b in pairwise(edges)]
    return found


def at_most(ranges: list[PlannedRange], most: int) -> list[PlannedRange]:
    """The ranges, cut so that none has more than `most` offsets (`maxRecordsPerPartition`)."""
    return [
        PlannedRange(each.tp, start, min(start + most, each.end))
        for each in ranges
        for start in range(each.start, each.end, most)
    ]


def limited(start: Offsets, end: Offsets, most: int) -> Offsets:
    """Ends that together lie at most about `most` offsets behind `start`, in proportion to what is there.

    Every topic-partition with anything to read moves by at least one offset, as in Spark.
    """
    sizes = {tp: max(offset - start[tp], 0) for tp, offset in end.items()}
    total = sum(sizes.values())
    if total <= most:
        return dict(end)
    moved = {tp: start[tp] + (max(most * size // total, 1) if size else 0) for tp, size in sizes.items()}
    return {tp: max(min(moved[tp], offset), start[tp]) for tp, offset in end.items()}


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)


def _offset(value: Any) -> int:  # noqa: ANN401 - JSON
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"{value}"
        raise ValueError(msg)  # noqa: TRY004 - one kind of mistake for the callers
    return value
