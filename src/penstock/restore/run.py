"""The restore itself: segments in order, a transaction at a time, each with the position behind it."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from penstock.crashpoints import reach
from penstock.restore.ahead import LARGE, ahead
from penstock.restore.offsets import Position, Sent, rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.model import TopicPartition
    from penstock.restore.maps import Maps
    from penstock.restore.plan import Segment
    from penstock.restore.reading import Reading
    from penstock.restore.records import Record
    from penstock.restore.target import Target


@dataclass(frozen=True, slots=True)
class Limits:
    """When a transaction ends. `rate`: records a second; None is no limit."""

    records: int = 10_000
    size: int = 16 << 20
    seconds: float = 5.0
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """One topic-partition. `to`: where its records go. `position`: where the restore stands in it."""

    tp: TopicPartition
    to: TopicPartition
    segments: Sequence[Segment]
    position: Position

    @property
    def left(self) -> Iterator[tuple[Segment, int]]:
        """The segments that are not done, each with how many of its wanted records are."""
        for segment in self.segments:
            if segment.start > self.position.segment:
                yield segment, 0
            elif segment.start == self.position.segment and self.position.done is not None:
                yield segment, self.position.done


@dataclass(slots=True)
class Restore:
    """Puts records back. `sent` of `total`, and `where`, may be read from other threads meanwhile.

    `total`: what the objects that are left hold, wanted or not.
    """

    target: Target
    reading: Reading
    maps: Maps
    limits: Limits
    sent: int = 0
    total: int = 0
    where: str = ""
    _began: float = 0.0

    def words(self) -> str:
        """How far it is, for people."""
        seconds = time.monotonic() - self._began
        rate = self.sent / seconds if seconds > 0 else 0.0
        return f"{self.sent:,} of {self.total:,} records restored, {rate:,.0f}/s, {self.where}"

    def begin(self, positions: dict[TopicPartition, Position]) -> None:
        """Record that nothing is done yet, so that a topic which holds records is known to be this restore's."""
        if positions:
            self.target.begin()
            self.target.commit({tp: (max(position.segment, 0), position) for tp, position in positions.items()})

    def run(self, work: Sequence[Work]) -> dict[TopicPartition, Position]:
        """Restore what is left of each topic-partition; the positions behind that.

        Raises:
            PenstockError: the first thing that is not as it must be. What was committed counts; a later run goes on.
        """
        self.total = sum(segment.records - done for each in work for segment, done in each.left)
        self._began = time.monotonic()
        return {each.tp: self._partition(each) for each in work}

    def _partition(self, work: Work) -> Position:
        self.where = f"{work.tp} to {work.to}"
        batch = _Batch(work.position)
        with closing(ahead(self.reading, work.left)) as coming:
            for segment, done, opening in coming:
                if batch.sent and (segment.size > LARGE or opening.exception() is not None):
                    batch = self._commit(batch, work)
                with opening.result() as opened:
                    batch.enter(segment, done)
                    for record in islice(opened.records, done, None):
                        self._send(batch, record, work.to)
                        if self._is_full(batch):
                            batch = self._commit(batch, work)
                    batch.leave()
        return self._commit(batch, work).position if batch.has_moved else batch.position

    def _send(self, batch: _Batch, record: Record, to: TopicPartition) -> None:
        if not batch.sent:
            self.target.begin()
            batch.since = time.monotonic()
        self._pace()
        self.target.send(record, to)
        batch.add(record)
        self.sent += 1

    def _pace(self) -> None:
        """Wait until the next record is due."""
        if self.limits.rate is not None:
            while (early := self.sent / self.limits.rate - (time.monotonic() - self._began)) > 0:
                self.target.wait(min(early, 1.0))

    def _is_full(self, batch: _Batch) -> bool:
        return (
            len(batch.sent) >= self.limits.records
            or batch.size >= self.limits.size
            or time.monotonic() - batch.since >= self.limits.seconds
        )

    def _commit(self, batch: _Batch, work: Work) -> _Batch:
        """End the transaction with the position behind it; an empty batch that goes on there."""
        if not batch.sent:
            self.target.begin()
        self.target.flush()
        reach("restore.sent")
        position = self.maps.fitted(batch.behind(self.target.new_offsets))
        self.target.commit({work.to: (batch.next_offset, position)})
        reach("restore.committed")
        return _Batch(position, batch.segment, batch.done)


@dataclass(slots=True)
class _Batch:
    """What one transaction holds. `position`: the one that is committed; `segment`, `done`: where this one is.

    `sent`: of each record its old offset and the one behind, or those of its segment where its own is not known.
    """

    position: Position
    segment: Segment | None = None
    done: int | None = 0
    sent: list[tuple[int, int, bool]] = field(default_factory=list)
    size: int = 0
    since: float = 0.0

    def enter(self, segment: Segment, done: int) -> None:
        """A segment begins, `done` of whose records are restored."""
        self.segment, self.done = segment, done

    def leave(self) -> None:
        """All of the segment is restored."""
        self.done = None

    def add(self, record: Record) -> None:
        """A record of the segment was sent."""
        assert self.segment is not None  # noqa: S101 - it was entered
        assert self.done is not None  # noqa: S101 - and not left
        known = record.offset is not None
        start = self.segment.start if record.offset is None else record.offset
        self.sent.append((start, start + 1 if known else self.segment.end, known))
        self.size += len(record.value or b"") + len(record.key or b"")
        self.done += 1

    @property
    def has_moved(self) -> bool:
        """Whether it is not where the committed position is."""
        return self.segment is not None and (self.segment.start, self.done) != (
            self.position.segment,
            self.position.done,
        )

    @property
    def next_offset(self) -> int:
        """The old offset that comes next, as far as it is known: for people who look at the group."""
        assert self.segment is not None  # noqa: S101
        if self.done is None:
            return self.segment.end
        return self.sent[-1][1] if self.sent and self.sent[-1][2] else self.segment.start

    def behind(self, new_offsets: list[int]) -> Position:
        """The position behind it, with the rows of what was sent."""
        assert self.segment is not None  # noqa: S101
        made = rows(
            Sent(start, end, new, known) for (start, end, known), new in zip(self.sent, new_offsets, strict=True)
        )
        return msgspec.structs.replace(
            self.position, segment=self.segment.start, done=self.done, rows=(*self.position.rows, *made)
        )
