"""Ranges of topic-partitions as `Records`: raw Fetch requests over aiokafka's connections.

All of a task's topic-partitions that one broker leads share its requests, so a thousand small partitions cost a few.
The next request is on its way while the caller works on the last response. One thread, one event loop of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiokafka import TopicPartition as KafkaTopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError
from aiokafka.protocol.fetch import FetchRequest

from penstock.errors import DataError, DataLossError, KafkaUnavailable, PenstockError
from penstock.kafka.batches import Fetched, decode, index
from penstock.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Literal

    from penstock.model import Gather, PlannedRange, Records

_OUT_OF_RANGE, _UNKNOWN_TOPIC = 1, (3, 100)
_MOVED = (5, 6, 9, 56, 74, 75)  # leader elections, lost replicas, stale epochs: the metadata is old
_NOT_ALLOWED = 29
_WAIT_MS, _PAUSE_SECONDS = 500, 0.2
_MOST_EMPTY = 20


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """How to read. `connection`: the keyword arguments of an AIOKafkaClient, made in the process that reads."""

    connection: Callable[[], Mapping[str, object]]
    servers: str
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    fetch_max_bytes: int = 16 * 1024 * 1024
    max_partition_fetch_bytes: int = 4 * 1024 * 1024
    check_crcs: bool = True
    patience_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class RangeFault:
    """Why one topic-partition cannot be read any further; the others go on. `offset`: where it stands."""

    tp: TopicPartition
    error: PenstockError
    offset: int


def read(ranges: Sequence[PlannedRange], options: ReaderOptions, gather: Gather) -> Iterator[Records | RangeFault]:
    """The visible records of the ranges: each topic-partition in offset order, interleaved with the others.

    The last `Records` of a range has `next_offset` at the range's end, even where no visible record is there.

    Raises:
        KafkaUnavailable: no broker answers.
    """
    reading = _Reading(options, {r.tp: _Position(r, r.start) for r in ranges})
    try:
        reading.connect()
        while reading.positions:
            for item in reading.next():
                if isinstance(item, RangeFault):
                    yield item
                else:
                    yield from _records(item, reading, gather)
    finally:
        reading.close()


def _records(fetched: _Ready, reading: _Reading, gather: Gather) -> Iterator[Records | RangeFault]:
    planned = fetched.planned
    try:
        records = decode(fetched.data, fetched.start, planned.end, gather, check_crc=reading.options.check_crcs)
    except DataError as error:
        reading.positions.pop(planned.tp, None)
        yield from _before(fetched, error, gather)
        yield RangeFault(planned.tp, error, error.offset)
    else:
        yield records


def _before(fetched: _Ready, error: DataError, gather: Gather) -> Iterator[Records]:
    """The good records in front of a damaged batch."""
    if error.offset > fetched.start:
        with suppress(DataError):
            yield decode(fetched.data, fetched.start, error.offset, gather, check_crc=False)


@dataclass(slots=True)
class _Position:
    """How far a range was requested. `empty`: answers in a row that held nothing."""

    planned: PlannedRange
    offset: int
    empty: int = 0
    since: float | None = None


@dataclass(frozen=True, slots=True)
class _Ready:
    """A response for one range, from `start` on."""

    planned: PlannedRange
    start: int
    data: Fetched


@dataclass(slots=True)
class _Reading:
    """The state of one `read`: positions, and one request under way per broker."""

    options: ReaderOptions
    positions: dict[TopicPartition, _Position]
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    client: Any = None
    requests: dict[int, asyncio.Task[Any]] = field(default_factory=dict)
    asked: dict[int, dict[TopicPartition, int]] = field(default_factory=dict)
    order: deque[TopicPartition] = field(default_factory=deque)
    silent_since: float | None = None

    def connect(self) -> None:
        """Find the brokers and who leads what."""
        self.order.extend(self.positions)
        self.loop.run_until_complete(self._connect())

    async def _connect(self) -> None:
        try:
            # Made inside the loop, which aiokafka takes for its own.
            self.client = AIOKafkaClient(**self.options.connection())
            await self.client.bootstrap()
            await self.client.set_topics({tp.topic for tp in self.positions})
        except (KafkaError, OSError) as error:
            raise self._unavailable(error) from error

    def close(self) -> None:
        """Give up what is under way, close connections and loop."""
        for request in self.requests.values():
            request.cancel()
        if self.client is not None:
            self.loop.run_until_complete(self._close())
        self.loop.close()

    async def _close(self) -> None:
        await asyncio.gather(*self.requests.values(), return_exceptions=True)
        await self.client.close()

    def next(self) -> list[_Ready | RangeFault]:
        """What the next response, or several at once, gives; empty after an answer without records."""
        return self.loop.run_until_complete(self._next())

    async def _next(self) -> list[_Ready | RangeFault]:
        self._request()
        if not self.requests:
            await self._refresh()
            return self._overdue()
        done, _ = await asyncio.wait(self.requests.values(), return_when=asyncio.FIRST_COMPLETED)
        found: list[_Ready | RangeFault] = []
        for node in [node for node, request in self.requests.items() if request in done]:
            found += await self._answer(node, self.requests.pop(node))
        self._request()
        for _ in range(3):  # long enough for the next requests to be written
            await asyncio.sleep(0)
        return found

    def _request(self) -> None:
        """Ask each broker that is not busy for all ranges that it leads, each in its turn first."""
        by_node: dict[int, list[TopicPartition]] = {}
        for tp in self.order:
            leader = self.client.cluster.leader_for_partition(KafkaTopicPartition(tp.topic, tp.partition))
            if tp in self.positions and leader is not None and leader != -1 and leader not in self.requests:
                by_node.setdefault(leader, []).append(tp)
        self.order.rotate(-1)
        for node, tps in by_node.items():
            self.asked[node] = {tp: self.positions[tp].offset for tp in tps}
            self.requests[node] = self.loop.create_task(self.client.send(node, self._fetch(tps)))

    def _fetch(self, tps: list[TopicPartition]) -> FetchRequest:
        topics: dict[str, list[tuple[int, int, int]]] = {}
        for tp in tps:
            wanted = (tp.partition, self.positions[tp].offset, self.options.max_partition_fetch_bytes)
            topics.setdefault(tp.topic, []).append(wanted)
        level = 1 if self.options.isolation == "read_committed" else 0
        return FetchRequest(_WAIT_MS, 1, self.options.fetch_max_bytes, level, list(topics.items()))

    async def _answer(self, node: int, request: asyncio.Task[Any]) -> list[_Ready | RangeFault]:
        asked = self.asked.pop(node)
        try:
            response = request.result()
        except (KafkaError, OSError) as error:
            await self._lost(error)
            return []
        self.silent_since = None
        found: list[_Ready | RangeFault] = []
        moved = False
        for topic, partitions in response.topics:
            for partition in partitions:
                tp = TopicPartition(topic, partition[0])
                if tp in self.positions:
                    code = partition[1]
                    moved |= code in _MOVED or code in _UNKNOWN_TOPIC
                    item = self._partition(tp, asked[tp], partition)
                    found += [] if item is None else [item]
        if moved:
            await self._refresh()
        return found

    def _partition(self, tp: TopicPartition, start: int, partition: tuple[Any, ...]) -> _Ready | RangeFault | None:
        """What a response says of one partition: (id, error, high watermark, last stable offset, log start, ...)."""
        position, code = self.positions[tp], partition[1]
        if code:
            return self._fault(tp, position, code)
        position.since = None
        try:
            data = index(tp, partition[-1] or b"", start, partition[5] or ())
        except DataError as error:
            return self._stop(tp, error, start)
        behind = data.next_offset
        if behind is None:
            return self._nothing(tp, position)
        position.empty = 0
        position.offset = behind
        planned = position.planned
        if behind >= planned.end:
            del self.positions[tp]
        return _Ready(planned, start, data)

    def _nothing(self, tp: TopicPartition, position: _Position) -> RangeFault | None:
        """No whole batch: other partitions filled the response, the broker throttles, or offsets are gone."""
        position.empty += 1
        if position.empty < _MOST_EMPTY:
            return None
        msg = (
            f"{tp}: the broker gives no record at offset {position.offset}, though the log ends at "
            f"{position.planned.end} or later; check the broker's log and quotas"
        )
        return self._stop(tp, KafkaUnavailable(msg), position.offset)

    def _fault(self, tp: TopicPartition, position: _Position, code: int) -> RangeFault | None:
        if code == _OUT_OF_RANGE:
            msg = (
                f"{tp}: Kafka no longer has the records from offset {position.offset} on (deleted by retention, or the "
                "topic was made anew); set on.data.loss=skip to go on behind them"
            )
            return self._stop(tp, DataLossError(msg), position.offset)
        if code == _NOT_ALLOWED:
            msg = f"{tp}: this login may not read topic `{tp.topic}`; give it the ACL READ on it"
            return self._stop(tp, KafkaUnavailable(msg, transient=False), position.offset)
        position.since = position.since or time.monotonic()
        if time.monotonic() - position.since < self.options.patience_seconds:
            return None
        if code in _UNKNOWN_TOPIC:
            msg = f"topic `{tp.topic}` or its partition {tp.partition} does not exist any more; was it deleted?"
            return self._stop(tp, DataLossError(msg), position.offset)
        msg = f"{tp}: its broker does not serve it (Kafka's error {code}); check the cluster"
        return self._stop(tp, KafkaUnavailable(msg), position.offset)

    def _stop(self, tp: TopicPartition, error: PenstockError, offset: int) -> RangeFault:
        del self.positions[tp]
        return RangeFault(tp, error, offset)

    async def _lost(self, error: Exception) -> None:
        """A broker went away: look who leads now; give up when none has answered for long."""
        now = time.monotonic()
        self.silent_since = self.silent_since or now
        if now - self.silent_since > self.options.patience_seconds:
            raise self._unavailable(error) from error
        await self._refresh()

    async def _refresh(self) -> None:
        await asyncio.sleep(_PAUSE_SECONDS)
        with suppress(KafkaError, OSError):
            await self.client.force_metadata_update()

    def _overdue(self) -> list[_Ready | RangeFault]:
        """Ranges that have had no leader for too long."""
        found: list[_Ready | RangeFault] = []
        for tp, position in list(self.positions.items()):
            fault = self._fault(tp, position, _MOVED[0])
            found += [] if fault is None else [fault]
        return found

    def _unavailable(self, error: Exception) -> KafkaUnavailable:
        reason = str(error) or type(error).__name__
        msg = f"Kafka at {self.options.servers} does not answer ({reason}); check bootstrap.servers and the brokers"
        return KafkaUnavailable(msg)
