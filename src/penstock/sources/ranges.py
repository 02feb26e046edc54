"""What a query is to read: Kafka is asked where things are, and every topic-partition gets its range."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import ConfigError, DataLossError
from penstock.model import PlannedRange, TopicPartition
from penstock.sources.options import FORMAT
from penstock.sources.positions import EARLIEST, LATEST, AtOffsets, AtTimes, Everywhere, at_most, split

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.kafka.cluster import Cluster
    from penstock.sources.options import KafkaOptions
    from penstock.sources.positions import Offsets, Place


def existing(options: KafkaOptions, kafka: Cluster) -> list[TopicPartition]:
    """The topic-partitions that are read, of those that exist.

    Raises:
        ConfigError: one that is named does not exist.
    """
    found = kafka.topics()
    if options.assigned:
        missing = [tp for tp in options.assigned if tp.partition not in found.get(tp.topic, ())]
        if missing:
            named = ", ".join(f"`{tp}`" for tp in missing)
            msg = f"{FORMAT}: assign names topic-partitions that do not exist: {named}; correct it"
            raise ConfigError([msg])
        return list(options.assigned)
    if options.pattern is not None:
        names = [name for name in found if options.pattern.fullmatch(name)]
    else:
        names = list(options.topics)
    missing_topics = [
        f"{FORMAT}: subscribe: there is no topic `{name}` at {options.kafka.bootstrap_servers}; create it, or correct "
        "the option"
        for name in names
        if name not in found
    ]
    if missing_topics and options.fail_on_data_loss:
        raise ConfigError(missing_topics)
    return [TopicPartition(name, partition) for name in names for partition in found.get(name, ())]


def batch_ranges(options: KafkaOptions, kafka: Cluster, tps: list[TopicPartition]) -> list[PlannedRange]:
    """A range for each topic-partition that has anything to read.

    Raises:
        ConfigError: offsets are missing, or begin behind where they end.
        DataLossError: offsets that were asked for are not in Kafka, and that is to fail.
    """
    starts, ends = kafka.log_starts(tps), kafka.log_ends(tps)
    begin = start_offsets(options, kafka, options.start or Everywhere(EARLIEST), (starts, ends))
    end = _resolve(options.end or Everywhere(LATEST), "ending", kafka, (starts, ends), late="latest")
    backwards = [
        f"{FORMAT}: the starting offset of {tp} (`{begin[tp]}`) lies behind its ending offset (`{end[tp]}`)"
        for tp in tps
        if begin[tp] > end[tp] and not (_is_time(options.start) or _is_time(options.end))
    ]
    if backwards:
        raise ConfigError(backwards)
    ranges = []
    for tp in tps:
        first, last = checked(options, tp, (begin[tp], end[tp]), (starts[tp], ends[tp]))
        if first < last:
            ranges.append(PlannedRange(tp, first, last))
    return ranges


def start_offsets(options: KafkaOptions, kafka: Cluster, place: Place, log: tuple[Offsets, Offsets]) -> Offsets:
    """Where a query begins; `log`: where each log starts and ends."""
    return _resolve(place, "starting", kafka, log, late=options.late_start)


def checked(
    options: KafkaOptions, tp: TopicPartition, wanted: tuple[int, int], log: tuple[int, int]
) -> tuple[int, int]:
    """What can be read of the wanted range `[start, end)`.

    Raises:
        DataLossError: not all of it, and that is to fail.
    """
    (start, end), (log_start, log_end) = wanted, log
    if start >= end:
        return start, end
    if options.fail_on_data_loss and start < log_start:
        msg = (
            f"{tp}@{start}: offsets `[{start}, {min(log_start, end)})` are not in Kafka any more, the log starts at "
            f"`{log_start}`; failOnDataLoss=false goes on there"
        )
        raise DataLossError(msg)
    if options.fail_on_data_loss and end > log_end:
        msg = (
            f"{tp}@{log_end}: offsets up to `{end}` were asked for, but the log ends at `{log_end}`; correct the "
            "offsets, or set failOnDataLoss=false to read what is there"
        )
        raise DataLossError(msg)
    return max(start, log_start), min(end, log_end)


def pieces(options: KafkaOptions, ranges: list[PlannedRange]) -> list[PlannedRange]:
    """The ranges as Spark partitions: one each, or more where that is asked for."""
    if options.max_records is not None:
        ranges = at_most(ranges, options.max_records)
    return split(ranges, options.min_partitions)


def _is_time(place: Place | None) -> bool:
    return isinstance(place, AtTimes)


def _resolve(place: Place, side: str, kafka: Cluster, log: tuple[Offsets, Offsets], late: str) -> Offsets:
    """An offset for each topic-partition. `late`: what a time behind every record means."""
    starts, ends = log
    if isinstance(place, Everywhere):
        return dict(starts if place.offset == EARLIEST else ends)
    if isinstance(place, AtOffsets):
        _check_complete(place.offsets, starts, f"{side}Offsets")
        named = {EARLIEST: starts, LATEST: ends}
        return {tp: named[offset][tp] if offset in named else offset for tp, offset in place.offsets.items()}
    if place.times is not None:
        _check_complete(place.times, starts, f"{side}OffsetsByTimestamp")
    times = place.of(sorted(starts))
    found = kafka.offsets_for_times(times)
    nowhere = [tp for tp, offset in found.items() if offset is None]
    if nowhere and late == "error":
        named_tps = ", ".join(f"{tp} (`{times[tp]}`)" for tp in sorted(nowhere))
        msg = (
            f"{FORMAT}: no record is as late as the starting time of {named_tps}; "
            "startingOffsetsByTimestampStrategy=latest begins at the end there"
        )
        raise ConfigError([msg])
    return {tp: ends[tp] if offset is None else offset for tp, offset in found.items()}


def _check_complete(given: Iterable[TopicPartition], tps: Iterable[TopicPartition], name: str) -> None:
    """As in Spark, offsets are for all topic-partitions or for none."""
    lacking, surplus = sorted(set(tps) - set(given)), sorted(set(given) - set(tps))
    problems = []
    if lacking:
        problems.append(f"{FORMAT}: {name} must name every topic-partition; it lacks {', '.join(map(str, lacking))}")
    if surplus:
        problems.append(f"{FORMAT}: {name} names {', '.join(map(str, surplus))}, which this query does not read")
    if problems:
        raise ConfigError(problems)
