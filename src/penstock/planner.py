"""Which ranges are worth reading now: pure, and only ever a matter of cost, but for what the wall clock closes.

Where cuts fall is the cutter's business; a plan that reads too much or too little changes no object. Reading an
unfinished tail again is bounded: a tail that held no cut is read again only when the next cut by count is probably in
it, or, where something in the records could close files too, when it has doubled or that is due by its times.
A thorough plan reads every tail once.
What the clock closes (scheduled rotation, the latency target, a flush) is decided here and recorded in the plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.arrivals import first_seen
from penstock.model import Plan, PlannedRange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.arrivals import Arrivals
    from penstock.model import Closing, TopicPartition


@dataclass(frozen=True, slots=True)
class Rules:
    """What the planner needs of the configuration.

    `content_cuts`: something in the records themselves (a schema change, a time) can close files before `flush_size` is
    reached. `interval_ms`: extracted time after which files close; -1 for none. `max_latency_ms`: after how long a
    record must be in an object; -1 for no limit. `wall_clock`: ranges carry the arrivals of their records.
    `max_offsets`: the most that one cycle reads of a topic-partition; `max_files`: likewise in files of `flush_size`,
    so that neither a backlog nor tiny files make a cycle endless.
    """

    flush_size: int
    content_cuts: bool
    interval_ms: int = -1
    max_latency_ms: int = -1
    wall_clock: bool = False
    max_offsets: int = 10_000_000
    max_files: int = 2_000


@dataclass(frozen=True, slots=True)
class Look:
    """What an earlier look, at `at_ms`, found behind `position`: `records` up to offset `looked_to`, and no cut.

    `base_ms`: the extracted time of the first of them, where times count.
    """

    position: int
    looked_to: int
    records: int
    at_ms: int = 0
    base_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Clock:
    """What the wall clock says. `scheduled_ms`: the last instant of scheduled rotation, if there is such a thing.

    `margin_ms`: how long a cycle takes, so that a latency target is met and not just begun.
    """

    now_ms: int
    scheduled_ms: int | None = None
    margin_ms: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """What is known of the topic-partitions: positions, log ends, earlier looks, arrivals."""

    positions: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    looks: Mapping[TopicPartition, Look] = field(default_factory=dict)
    arrivals: Mapping[TopicPartition, Arrivals] = field(default_factory=dict)


def plan(view: View, rules: Rules, clock: Clock, *, thorough: bool = False, forced: bool = False) -> Plan:
    """The ranges to read, in the order of their topic-partitions; empty when nothing is worth it.

    `thorough`: read everything once, even what probably closes no file: it may hold a record that cannot be written.
    `forced`: read every tail and close it at its end.
    """
    ranges = []
    for tp in sorted(view.positions.keys() & view.ends.keys()):
        position, end = view.positions[tp], view.ends[tp]
        if end <= position:
            continue
        look = view.looks.get(tp)
        if look is None or look.position != position:
            look = Look(position, position, 0)
        arrivals = view.arrivals.get(tp, ())
        closing = "flush" if forced else _closing(arrivals, rules, clock)
        bound = end if closing else _bound(look, end, rules, clock, thorough=thorough)
        if bound is not None:
            seen = _up_to(arrivals, bound) if rules.wall_clock else ()
            ranges.append(PlannedRange(tp, position, bound, closing, seen))
    return Plan(tuple(ranges), clock.now_ms)


def _closing(arrivals: Arrivals, rules: Rules, clock: Clock) -> Closing | None:
    """What makes the clock close this topic-partition's files now, if anything does."""
    first = first_seen(arrivals)
    if first is None:
        return None
    if clock.scheduled_ms is not None and first < clock.scheduled_ms:
        return "rotate.schedule.interval.ms"
    # Half of the target is never spent on waiting for a cycle that takes longer than all of it.
    wait = max(rules.max_latency_ms - clock.margin_ms, rules.max_latency_ms // 2)
    return "max.latency.ms" if rules.max_latency_ms > 0 and clock.now_ms - first >= wait else None


def _up_to(arrivals: Arrivals, bound: int) -> Arrivals:
    """The pairs that say something about offsets below `bound`."""
    kept = [pair for pair in arrivals if pair[0] < bound]
    return tuple(arrivals[: len(kept) + 1])


def _bound(look: Look, end: int, rules: Rules, clock: Clock, *, thorough: bool) -> int | None:
    """Up to where reading from `look.position` is worth it, or None."""
    unread = end - look.looked_to
    if unread <= 0:
        return None
    missing = rules.flush_size - look.records
    wanted = _wanted(look, missing)
    if unread >= (missing if thorough else wanted):
        return min(_whole_files(look, end, wanted, rules), end)
    seen = look.looked_to - look.position
    if thorough or (rules.content_cuts and (unread >= seen or _due(look, rules, clock))):
        return min(end, look.position + max(rules.max_offsets, 2 * seen))
    return None


def _due(look: Look, rules: Rules, clock: Clock) -> bool:
    """Whether the interval is probably over since the last look: once when it should be, then once an interval.

    Going by times that keep up with the clock; late ones are found when the tail has doubled.
    """
    if rules.interval_ms <= 0 or look.base_ms is None:
        return False
    expected = look.base_ms + rules.interval_ms
    return look.at_ms < expected <= clock.now_ms or clock.now_ms - look.at_ms >= rules.interval_ms


def _wanted(look: Look, missing: int) -> int:
    """How many more offsets probably hold `missing` records, going by what the look found.

    Offsets without a visible record (compaction, transactions) also slow down further looks, so that a tail to which
    only such offsets are added is not read again for each of them.
    """
    seen = look.looked_to - look.position
    gaps = seen - look.records
    if gaps == 0:
        return missing
    if look.records == 0:
        return max(missing, seen)
    return max(-(-missing * seen // look.records), gaps // 4)


def _whole_files(look: Look, end: int, wanted: int, rules: Rules) -> int:
    """The last offset at which a file would be full if every offset held a record, within what one cycle takes.

    A tail that was looked at in vain is at least doubled, so that sparse offsets cost a bounded number of looks.
    """
    first = look.looked_to + wanted
    more = min(max(end - first, 0) // rules.flush_size, rules.max_files - 1) * rules.flush_size
    most = max(rules.max_offsets // rules.flush_size * rules.flush_size, rules.flush_size)
    full = min(first + more, max(look.position + most, first))
    doubled = look.position + 2 * (look.looked_to - look.position)
    return max(full, doubled)
