"""Fetch requests: one per broker for all topic-partitions that it leads, the next in flight while one is worked on.

Runs in an event loop of its own; what it fetched or found out is handed over as Deliveries, in offset order per
topic-partition.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from aiokafka.protocol.offset import OffsetRequest

from penstock.errors import KafkaUnavailable
from penstock.kafka import troubles
from penstock.kafka.batches import Fetched, tabulate
from penstock.kafka.brokers import BrokerLost
from penstock.kafka.troubles import OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC, Lost, RangeFault
from penstock.kafka.walk import BASE_OFFSET, LAST_OFFSET
from penstock.kafka.wire import Fetch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.errors import PenstockError
    from penstock.kafka.brokers import Brokers, Topology
    from penstock.kafka.reader import ReaderOptions
    from penstock.kafka.wire import Answer, Part
    from penstock.model import PlannedRange, TopicPartition

_EARLIEST, _LATEST = -2, -1
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 1.0  # seconds between two looks for a leader
_TICK = 0.2  # seconds between two looks at what takes too long
_GUESSED_RECORD = 4096.0  # bytes per offset before anything was seen
_SLACK = 64 << 10


@dataclass(frozen=True, slots=True)
class Reached:
    """There is nothing in a range between what was handed over and `offset`."""

    range: PlannedRange
    offset: int


Event: TypeAlias = "Fetched | Reached | Lost | RangeFault"


@dataclass(frozen=True, slots=True)
class Delivery:
    """What one answer brought. `size`: bytes to give back with Fetcher.release once it is worked off."""

    events: tuple[Event, ...]
    size: int


@dataclass(slots=True)
class _Cursor:
    """Where one range stands. `since`: when the trouble began that it has not got over yet.

    `away`: `node` is no leader but a nearer replica. `by_leader`: such a one failed; only leaders are asked now.
    """

    range: PlannedRange
    position: int
    node: int | None = None
    turn: int = 0
    bytes_per_offset: float = _GUESSED_RECORD
    trouble: PenstockError | None = None
    since: float = 0.0
    probe: bool = False
    away: bool = False
    by_leader: bool = False


class Fetcher:
    """Fetches ranges until each is at its end or has failed."""

    def __init__(
        self,
        ranges: Sequence[PlannedRange],
        options: ReaderOptions,
        brokers: Brokers,
        deliver: Callable[[Delivery], None],
    ) -> None:
        self._options = options
        self._brokers = brokers
        self._deliver = deliver
        self._open = {each.tp: _Cursor(each, each.start) for each in ranges}
        self._pulls: dict[int, asyncio.Task[None]] = {}
        self._outstanding = 0
        self._room = asyncio.Event()
        self._turn = 0
        self._delay = _FIRST_DELAY
        self._next_look = 0.0
        self._silent_since: float | None = None

    async def run(self) -> None:
        """Fetch everything.

        Raises:
            KafkaUnavailable: no broker answers for too long, or they refuse this client.
        """
        while self._open:
            await self._find_leaders()
            self._give_up()
            for node in {cursor.node for cursor in self._open.values() if cursor.node is not None}:
                if node not in self._pulls:
                    self._pulls[node] = asyncio.create_task(self._pull(node))
            if not self._pulls:
                await asyncio.sleep(self._delay)
                continue
            await asyncio.wait(self._pulls.values(), timeout=_TICK, return_when=asyncio.FIRST_COMPLETED)
            for node, task in list(self._pulls.items()):
                if task.done():
                    del self._pulls[node]
                    task.result()

    def release(self, size: int) -> None:
        """Make room for `size` more bytes."""
        self._outstanding -= size
        self._room.set()

    def drop(self, tp: TopicPartition) -> None:
        """Fetch no more of a topic-partition."""
        self._open.pop(tp, None)

    async def _find_leaders(self) -> None:
        """Give each topic-partition without a broker its leader; not more often than the back-off says."""
        homeless = [cursor for cursor in self._open.values() if cursor.node is None]
        now = _now()
        if not homeless or now < self._next_look:
            return
        topology = await self._topology(homeless)
        self._next_look, self._delay = _now() + self._delay, min(2 * self._delay, _LONGEST_DELAY)
        if topology is None:
            return
        for cursor in homeless:
            tp = cursor.range.tp
            cursor.node, cursor.away = topology.leaders.get(tp), False
            if cursor.node is None:
                self._blame(cursor, topology.problems.get(tp.topic) or topology.problems.get(tp) or UNKNOWN_TOPIC)

    async def _topology(self, homeless: list[_Cursor]) -> Topology | None:
        """Where their leaders are, or None if no broker answers just now."""
        try:
            topology = await self._brokers.topology(cursor.range.tp.topic for cursor in homeless)
        except KafkaUnavailable as error:
            self._silent_since = self._silent_since or _now()
            if not error.transient or self._silent_since <= self._longest_ago():
                raise
            return None
        self._silent_since = None
        return topology

    def _longest_ago(self) -> float:
        """What has been going wrong since then has had its time."""
        return _now() - self._options.unavailable_timeout_ms / 1000

    def _give_up(self) -> None:
        """End the ranges whose trouble lasts too long."""
        troubled = [(cursor, cursor.trouble) for cursor in self._open.values() if cursor.trouble is not None]
        if not troubled:
            self._delay = _FIRST_DELAY
        for cursor, error in troubled:
            if cursor.since <= self._longest_ago():
                self._fail(cursor, error)

    async def _pull(self, node: int) -> None:
        """Fetch from one broker while it leads anything and the connection holds."""
        while cursors := self._led_by(node):
            asked = cursors[:1] if cursors[0].probe else [c for c in cursors if c.by_leader == cursors[0].by_leader]
            sizes = [self._size(cursor) for cursor in asked]
            most = min(sum(sizes), self._options.fetch_max_bytes)
            if self._outstanding and self._outstanding + most > self._options.prefetch_bytes:
                self._room.clear()
                await self._room.wait()
                continue
            self._outstanding += most
            try:
                answer = await self._brokers.send(node, self._request(asked, sizes, most))
                await self._take(node, asked, answer)
            except BrokerLost as lost:
                for cursor in asked:
                    self._trouble(cursor, troubles.unreachable(cursor.range, cursor.position, str(lost)))
                return
            finally:
                self._outstanding -= most
            await asyncio.sleep(answer.throttle_ms / 1000)

    def _led_by(self, node: int) -> list[_Cursor]:
        """The topic-partitions of a broker; the one that waited longest is first, so that big ones starve no other."""
        return sorted((each for each in self._open.values() if each.node == node), key=lambda each: each.turn)

    def _size(self, cursor: _Cursor) -> int:
        """How much to ask for: not much more than the rest of the range is likely to take."""
        likely = (cursor.range.end - cursor.position) * cursor.bytes_per_offset * 1.1 + _SLACK
        return int(min(likely, self._options.max_partition_fetch_bytes, self._options.fetch_max_bytes))

    def _request(self, asked: list[_Cursor], sizes: list[int], most: int) -> Fetch:
        topics: dict[str, list[tuple[int, int, int]]] = {}
        for cursor, size in zip(asked, sizes, strict=True):
            topics.setdefault(cursor.range.tp.topic, []).append((cursor.range.tp.partition, cursor.position, size))
        committed = self._options.isolation == "read_committed" and not asked[0].probe
        least = min(self._options.fetch_min_bytes, most)
        rack = "" if asked[0].by_leader else self._options.rack
        return Fetch(self._options.fetch_max_wait_ms, least, most, int(committed), list(topics.items()), rack)

    async def _take(self, node: int, asked: list[_Cursor], answer: Answer) -> None:
        """Hand over what an answer brought, and move the cursors."""
        events: list[Event] = []
        parts = {part.tp: part for part in answer.parts}
        astray = []
        for cursor in asked:
            part = parts.get(cursor.range.tp)  # none while the broker throttles us
            code = answer.error or (part.error if part else 0)
            if cursor.range.tp not in self._open or (part is None and not code):
                continue
            if self._turns(cursor, part, code, first=cursor is asked[0]):
                continue
            if code == OFFSET_OUT_OF_RANGE:
                astray.append(cursor)
            elif code or part is None:
                self._blame(cursor, code)
            elif _brings(part):
                events += self._batches(cursor, part, answer)
            elif cursor is asked[0]:  # others may have found no room in the answer
                self._nothing(cursor, part)
        if events:
            self._outstanding += len(answer.data)
            self._deliver(Delivery(tuple(events), len(answer.data)))
        for cursor in astray:
            await self._find_start(node, cursor)

    def _batches(self, cursor: _Cursor, part: Part, answer: Answer) -> list[Event]:
        tp, before = cursor.range.tp, cursor.position
        table, error = tabulate(tp, answer.data, part.start, part.end, before)
        events: list[Event] = []
        if cursor.probe:
            cursor.probe = False
            first = int(table[0, BASE_OFFSET]) if len(table) else before
            if first > before:
                events.append(self._move(cursor, first))
            return events
        reached = int(table[-1, LAST_OFFSET]) + 1 if len(table) else before
        if reached > before:
            cursor.bytes_per_offset = (part.end - part.start) / (reached - before)
            self._move(cursor, reached)
            events.append(Fetched(cursor.range, answer.data, table, part.aborted))
        if error:
            events.append(RangeFault(tp, error, error.offset))
            self.drop(tp)
        return events

    def _nothing(self, cursor: _Cursor, part: Part) -> None:
        """No batch although it was this one's turn: an open transaction, or a hole up to where others' begin.

        A look at uncommitted batches tells: if the next one begins behind the position, nothing is before it.
        """
        committed = self._options.isolation == "read_committed"
        visible = part.last_stable if committed else part.high_watermark
        cursor.probe = committed and visible > cursor.position and cursor.trouble is None
        self._trouble(cursor, troubles.held_back(cursor.range, cursor.position, visible), at_home=True)

    async def _find_start(self, node: int, cursor: _Cursor) -> None:
        """The position is outside of the log: find out on which side."""
        tp, position = cursor.range.tp, cursor.position
        start, end = [await self._log_offset(node, tp, which) for which in (_EARLIEST, _LATEST)]
        if position >= start:
            self._trouble(cursor, troubles.beyond_end(cursor.range, position, end))
        elif self._options.on_data_loss == "fail":
            self._fail(cursor, troubles.lost(cursor.range, position, start))
        else:
            gone = Lost(tp, position, min(start, cursor.range.end))
            self._deliver(Delivery((gone, self._move(cursor, gone.end)), 0))

    async def _log_offset(self, node: int, tp: TopicPartition, which: int) -> int:
        """Where the log begins or ends; -1 if the broker does not say."""
        answer = await self._brokers.send(node, OffsetRequest(-1, 0, [(tp.topic, [(tp.partition, which)])]))
        ((_, ((_, error, _, offset),)),) = answer.topics
        return -1 if error else int(offset)

    def _move(self, cursor: _Cursor, reached: int) -> Reached:
        """Progress: whatever trouble there was is over."""
        self._turn += 1
        cursor.turn, cursor.trouble = self._turn, None
        cursor.position = min(reached, cursor.range.end)
        if cursor.position == cursor.range.end:
            self.drop(cursor.range.tp)
        return Reached(cursor.range, cursor.position)

    def _blame(self, cursor: _Cursor, code: int) -> None:
        """An error code for a topic-partition: final, or to be looked at again after a back-off."""
        refused = troubles.refusal(cursor.range.tp, code)
        if refused:
            self._fail(cursor, refused)
        else:
            self._trouble(cursor, troubles.trouble(cursor.range, cursor.position, code))

    def _trouble(self, cursor: _Cursor, error: PenstockError, *, at_home: bool = False) -> None:
        """Remember why there is no progress; unless `at_home`, look for the leader anew."""
        if cursor.away:
            self._go_home(cursor)
            return
        if cursor.trouble is None:
            cursor.since = _now()
        cursor.trouble = error
        if not at_home:
            cursor.node = None

    def _turns(self, cursor: _Cursor, part: Part | None, code: int, *, first: bool) -> bool:
        """Whether another broker is to be asked: the nearer replica that a leader names, or the leader again."""
        if cursor.away and (code or (first and not _brings(part))):
            self._go_home(cursor)
            return True
        if part is None or code or cursor.away or part.nearer < 0:
            return False
        cursor.node, cursor.away = part.nearer, True
        return True

    def _go_home(self, cursor: _Cursor) -> None:
        """A nearer replica fails or lags behind: the leader is asked from now on, without our rack."""
        cursor.node, cursor.away, cursor.by_leader = None, False, True

    def _fail(self, cursor: _Cursor, error: PenstockError) -> None:
        self.drop(cursor.range.tp)
        self._deliver(Delivery((RangeFault(cursor.range.tp, error, cursor.position),), 0))


def _brings(part: Part | None) -> bool:
    """Whether there are record batches in it."""
    return part is not None and part.end > part.start


def _now() -> float:
    return asyncio.get_running_loop().time()
