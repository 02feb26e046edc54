"""What is restored of a topic-partition, and in which order (pure).

A bundle is what a cut wrote for one encoded partition: values, and beside them keys and headers. Bundles whose offsets
do not overlap follow each other. Where they do overlap (fields, late hours, tombstones), the order of their records
is known only if the records carry their offsets: then they are merged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from penstock.model import CommittedObject, TopicPartition
    from penstock.restore.selection import Span

Carried = frozenset[str]
"""What each record of a value file carries of its own: of `offset`, `timestamp`, `key`, `headers`."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The objects that hold the same records. Without `value` they are tombstones.

    `shape`: number of the recorded configuration that they were written with. `carried`: see `Carried`.
    """

    tp: TopicPartition
    value: CommittedObject | None
    keys: CommittedObject | None
    headers: CommittedObject | None
    shape: int
    carried: Carried = frozenset()

    @property
    def any(self) -> CommittedObject:
        """One of the objects, the values if there are any: all say the same of their records."""
        found = self.value or self.keys or self.headers
        assert found is not None  # noqa: S101 - a bundle has at least one object
        return found

    @property
    def objects(self) -> tuple[CommittedObject, ...]:
        """All of them, values first."""
        return tuple(each for each in (self.value, self.keys, self.headers) if each is not None)

    @property
    def is_contiguous(self) -> bool:
        """Whether its records have every offset between its first and its last one, so that each one's is known."""
        return self.any.records == self.any.end - self.any.start

    @property
    def knows_offsets(self) -> bool:
        """Whether the offset of each record is known."""
        return self.is_contiguous or "offset" in self.carried

    @property
    def knows_times(self) -> bool:
        """Whether the timestamp of each record is known."""
        return "timestamp" in self.carried or self.any.min_timestamp == self.any.max_timestamp


@dataclass(frozen=True, slots=True)
class Segment:
    """Bundles that are restored together: one, or several that are merged by offset. `start`: its first offset."""

    bundles: tuple[Bundle, ...]
    span: Span

    @property
    def start(self) -> int:
        """The first offset, by which a position names the segment."""
        return self.bundles[0].any.start

    @property
    def end(self) -> int:
        """The offset behind the last record."""
        return max(each.any.end for each in self.bundles)

    @property
    def records(self) -> int:
        """How many records its objects hold, wanted or not."""
        return sum(each.any.records for each in self.bundles)

    @property
    def size(self) -> int:
        """Bytes of its objects as stored."""
        return sum(each.size for bundle in self.bundles for each in bundle.objects)


@dataclass(frozen=True, slots=True)
class Leniency:
    """What a user lets pass. `whole`: an object at an edge is taken whole. `unordered`: see `segments`."""

    whole: bool = False
    unordered: bool = False


def bundles(tp: TopicPartition, objects: Iterable[CommittedObject], shape: int, carried: Carried) -> Iterator[Bundle]:
    """The bundles of one commit, by their first offset. Objects of refused records, and indexes, are left out."""
    found: dict[tuple[str, int], dict[str, CommittedObject]] = {}
    for each in objects:
        if each.view in ("value", "keys", "headers"):
            found.setdefault((each.encoded_partition, each.start), {})[each.view] = each
    for parts in sorted(found.values(), key=lambda parts: min(each.start for each in parts.values())):
        value = parts.get("value")
        yield Bundle(
            tp, value, parts.get("keys"), parts.get("headers"), shape, carried if value is not None else frozenset()
        )


def segments(found: Iterable[Bundle], span: Span, lenient: Leniency) -> tuple[Segment, ...]:
    """What to restore of a topic-partition, in order.

    `lenient.unordered`: bundles that overlap, and whose records do not carry their offsets, come one after the other.

    Raises:
        PenstockError: an edge lies within an object that does not say which of its records lie on which side; or the
            order of records is not known.
    """
    made: list[Segment] = []
    for group in _overlapping([each for each in found if _is_wanted(each, span, lenient)]):
        if len(group) == 1 or all(each.knows_offsets for each in group):
            made.append(Segment(tuple(group), span))
        elif lenient.unordered:
            made += [Segment((each,), span) for each in group]
        else:
            one, other = group[0].any, group[1].any
            msg = (
                f"{group[0].tp}: `{one.key}` and `{other.key}` hold records of the same offsets "
                f"([{one.start}, {one.end}) and [{other.start}, {other.end})), and their format does not say which "
                "record has which; --unordered restores them one after the other"
            )
            raise PenstockError(msg)
    return tuple(made)


def _overlapping(found: Sequence[Bundle]) -> Iterator[list[Bundle]]:
    """Runs of bundles whose offsets overlap, by their first offset."""
    group: list[Bundle] = []
    end = -1
    for bundle in sorted(found, key=lambda each: each.any.start):
        if group and bundle.any.start >= end:
            yield group
            group = []
        group.append(bundle)
        end = max(end, bundle.any.end)
    if group:
        yield group


def _is_wanted(bundle: Bundle, span: Span, lenient: Leniency) -> bool:
    """Whether any of its records may be wanted. Raises `PenstockError` where it cannot be told which are."""
    held = bundle.any
    after_start = span.from_ms is None or held.max_timestamp >= span.from_ms
    before_end = span.to_ms is None or held.min_timestamp < span.to_ms
    if held.end <= span.start or held.start >= span.end or not (after_start and before_end):
        return False
    if (held.start < span.start or held.end > span.end) and not (bundle.knows_offsets or lenient.whole):
        msg = (
            f"{bundle.tp}: an edge lies within `{held.key}`, whose {held.records} records have offsets in "
            f"[{held.start}, {held.end}), but its format does not say which has which; choose {held.start} or "
            f"{held.end}, or --whole-objects to take all of it"
        )
        raise PenstockError(msg)
    is_early = span.from_ms is not None and held.min_timestamp < span.from_ms
    is_late = span.to_ms is not None and held.max_timestamp >= span.to_ms
    if (is_early or is_late) and not (bundle.knows_times or lenient.whole):
        msg = (
            f"{bundle.tp}: an edge lies within `{held.key}`, whose records are of the times {held.min_timestamp} to "
            f"{held.max_timestamp} (ms), but its format does not say which has which; choose another time, or "
            "--whole-objects to take all of it"
        )
        raise PenstockError(msg)
    return True
