"""Whether the ranges of each topic-partition join, and every offset is accounted for once. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from penstock.audit.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.audit.history import History, Move
    from penstock.model import CommittedObject, TopicPartition


def check(history: History) -> list[Finding]:
    """What the commits say against each other."""
    found: list[Finding] = []
    for tp, moves in history.moves.items():
        for move in moves:
            found += _balance(move)
        found += _overlaps(tp, moves)
    found += _twice(history.moves)
    return found


def _balance(move: Move) -> Iterator[Finding]:
    """Records in objects, records that were left out, and offsets without a record make up the offsets moved over."""
    for each in move.objects:
        if not 0 < each.records <= each.end - each.start:
            what = f"entry {move.entry} says that it holds {each.records} records of offsets [{each.start}, {each.end})"
            yield Finding("object.records", each.key, what)
    if not move.whole:
        return
    # Keys and headers are written for each record that is kept, also for tombstones, which have no value object.
    kept = max(Counter(_by_view(move.objects)).values(), default=0)
    commit, span = move.commit, move.end - move.start
    accounted = kept + commit.skipped + commit.hidden
    if accounted == span:
        return
    where = f"{move.tp}@{move.start}"
    says = (
        f"entry {move.entry} moves over {span} offsets [{move.start}, {move.end}), but its objects hold {kept} "
        f"records, {commit.skipped} were left out and {commit.hidden} offsets have none"
    )
    if accounted < span:
        yield Finding("range.gap", where, f"{says}: {span - accounted} are in no object")
    else:
        yield Finding("range.overlap", where, f"{says}: {accounted - span} too many")


def _by_view(objects: Sequence[CommittedObject]) -> dict[str, int]:
    records: Counter[str] = Counter()
    for each in objects:
        if each.view != "errors":
            records[each.view] += each.records
    return dict(records)


def _overlaps(tp: TopicPartition, moves: Sequence[Move]) -> Iterator[Finding]:
    """Files of one kind and encoded partition hold offsets one behind the other, and within what a commit moved."""
    ends: dict[tuple[str, str], tuple[int, str]] = {}
    behind = 0
    for move in moves:
        if move.start < behind:
            what = f"entry {move.entry} goes on at offset {move.start}, but what came before ends at {behind}"
            yield Finding("range.overlap", f"{tp}@{move.start}", what)
        behind = move.end
        for each in move.objects:
            end, key = ends.get((each.view, each.encoded_partition), (0, ""))
            if each.start < end:
                what = f"its offsets [{each.start}, {each.end}) begin before offset {end}, where `{key}` ends"
                yield Finding("range.overlap", each.key, what)
            ends[each.view, each.encoded_partition] = (max(end, each.end), each.key)


def _twice(moves: Mapping[TopicPartition, Sequence[Move]]) -> Iterator[Finding]:
    entries: dict[str, int] = {}
    for move in (each for every in moves.values() for each in every):
        for each in move.objects:
            if each.key in entries:
                what = f"is committed by entry {entries[each.key]} and again by entry {move.entry}"
                yield Finding("object.twice", each.key, what)
            entries[each.key] = move.entry
