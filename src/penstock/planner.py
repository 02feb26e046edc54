"""Which ranges are worth reading now: pure, and only ever a matter of cost.

Where cuts fall is the cutter's business; a plan that reads too much or too little changes no object. Reading an
unfinished tail again is bounded: a tail that held no cut is read again only when the next cut by count is probably in
it, or, where a schema change could close files too, when it has doubled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.model import Plan, PlannedRange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.model import TopicPartition


@dataclass(frozen=True, slots=True)
class Rules:
    """What the planner needs of the configuration.

    `content_cuts`: something in the records themselves (a schema change) can close files before `flush_size` is
    reached. `max_offsets`: the most that one cycle reads of a topic-partition; `max_files`: likewise in files of
    `flush_size`, so that neither a backlog nor tiny files make a cycle endless.
    """

    flush_size: int
    content_cuts: bool
    max_offsets: int = 10_000_000
    max_files: int = 2_000


@dataclass(frozen=True, slots=True)
class Look:
    """What an earlier look found behind `position`: `records` up to offset `looked_to`, and no cut."""

    position: int
    looked_to: int
    records: int


def plan(
    positions: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    looks: Mapping[TopicPartition, Look],
    rules: Rules,
    now_ms: int,
    *,
    thorough: bool = False,
    forced: bool = False,
) -> Plan:
    """The ranges to read, in the order of their topic-partitions; empty when nothing is worth it.

    `thorough`: read whatever could close a file, even if it probably does not. `forced`: read every tail and close it
    at its end.
    """
    ranges = []
    for tp in sorted(positions.keys() & ends.keys()):
        position, end = positions[tp], ends[tp]
        if end <= position:
            continue
        look = looks.get(tp)
        if look is None or look.position != position:
            look = Look(position, position, 0)
        if forced:
            ranges.append(PlannedRange(tp, position, end, forced=True))
        elif (bound := _bound(look, end, rules, thorough=thorough)) is not None:
            ranges.append(PlannedRange(tp, position, bound))
    return Plan(tuple(ranges), now_ms)


def _bound(look: Look, end: int, rules: Rules, *, thorough: bool) -> int | None:
    """Up to where reading from `look.position` is worth it, or None."""
    unread = end - look.looked_to
    if unread <= 0:
        return None
    missing = rules.flush_size - look.records
    wanted = _wanted(look, missing)
    if unread >= (missing if thorough else wanted):
        return min(_whole_files(look, end, wanted, rules), end)
    seen = look.looked_to - look.position
    if rules.content_cuts and (thorough or unread >= seen):
        return end
    return None


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
