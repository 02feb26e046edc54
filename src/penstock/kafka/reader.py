"""Reads planned ranges of topic-partitions as Records: the synchronous face of the fetcher.

One background thread does all network I/O; checking, decompressing and laying out happen in the caller's thread while
the next answers are under way. Nothing outlives the generator.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from penstock.errors import DataError
from penstock.kafka.batches import Fetched, decode, nothing
from penstock.kafka.brokers import Brokers
from penstock.kafka.decompress import Arena
from penstock.kafka.fetch import Fetcher, Reached
from penstock.kafka.troubles import Lost, RangeFault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from penstock.kafka.fetch import Delivery, Event
    from penstock.kafka.settings import KafkaSettings
    from penstock.model import Gather, PlannedRange, Records, TopicPartition


_LEAST_PARTITION_FETCH, _MOST_FETCH = 2 << 20, 4 << 20


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """How to read.

    `connection`: keyword arguments of an AIOKafkaClient, or what makes them in the process that reads, because an
    SSLContext cannot be pickled. `fetch_max_bytes`, `max_partition_fetch_bytes`: most bytes of one answer and of one
    topic-partition in it; a larger batch arrives nevertheless. `prefetch_bytes`: most bytes of answers that wait or
    are under way. `max_batch_bytes`: what one batch may decompress to. `on_data_loss`: "fail" ends a range whose
    offsets were deleted, "skip" goes on behind them and says so with a Lost. `unavailable_timeout_ms`: how long a
    topic-partition may make no progress because of the brokers. `fetch_min_bytes`, `fetch_max_wait_ms`: a broker
    answers once it has so much, or after so long. `rack`: replicas in it are asked where the brokers say so.
    """

    connection: Mapping[str, object] | Callable[[], Mapping[str, object]] = field(repr=False)
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    fetch_max_bytes: int = 32 << 20
    max_partition_fetch_bytes: int = 8 << 20
    prefetch_bytes: int = 64 << 20
    max_batch_bytes: int = 256 << 20
    on_data_loss: Literal["fail", "skip"] = "fail"
    check_crcs: bool = True
    unavailable_timeout_ms: int = 60_000
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    rack: str = ""

    @classmethod
    def of(cls, kafka: KafkaSettings, *, skip_lost: bool = False) -> ReaderOptions:
        """As a task reads: what the client's settings say, within what a task may hold of answers."""
        return cls(
            kafka.aiokafka_kwargs,
            isolation=kafka.isolation_level,
            fetch_max_bytes=min(kafka.fetch_max_bytes, _MOST_FETCH),
            max_partition_fetch_bytes=max(kafka.max_partition_fetch_bytes, _LEAST_PARTITION_FETCH),
            prefetch_bytes=2 * _MOST_FETCH,
            on_data_loss="skip" if skip_lost else "fail",
            check_crcs=kafka.check_crcs,
            fetch_min_bytes=kafka.fetch_min_bytes,
            fetch_max_wait_ms=kafka.fetch_max_wait_ms,
            rack=kafka.client_rack,
        )


def read(
    ranges: Sequence[PlannedRange], options: ReaderOptions, gather: Gather
) -> Iterator[Records | RangeFault | Lost]:
    """Read the ranges, interleaved, each in offset order; at most one per topic-partition.

    The last Records of a range has `next_offset == range.end`, and may be empty; or a RangeFault ends the range,
    behind all records before it. Closing the generator early ends the fetching.

    Raises:
        KafkaUnavailable: no broker can be reached, or they refuse this client.
    """
    positions = {each.tp: each.start for each in ranges}
    if len(positions) != len(ranges):
        msg = "two ranges of one topic-partition"
        raise ValueError(msg)
    waiting = []
    for each in ranges:
        if each.offsets > 0:
            waiting.append(each)
        else:
            yield nothing(each, each.end, gather)
    if not waiting:
        return
    arena = Arena(options.max_batch_bytes)
    with closing(_Fetching(waiting, options)) as fetching:
        for delivery in fetching:
            for event in delivery.events:
                for item in _work_off(event, positions, options, gather, arena):
                    if isinstance(item, RangeFault):
                        fetching.drop(item.tp)
                    yield item
            fetching.release(delivery.size)


def _work_off(
    event: Event, positions: dict[TopicPartition, int], options: ReaderOptions, gather: Gather, arena: Arena
) -> Iterator[Records | RangeFault | Lost]:
    """What an event means for the caller. A topic-partition that failed has no position any more."""
    tp = event.range.tp if isinstance(event, (Fetched, Reached)) else event.tp
    if tp not in positions:
        return
    if isinstance(event, Fetched):
        try:
            for records in decode(event, positions[tp], gather, arena, check_crcs=options.check_crcs):
                positions[tp] = records.next_offset
                yield records
        except DataError as error:
            del positions[tp]
            yield RangeFault(tp, error, error.offset)
    elif isinstance(event, Reached):
        positions[tp] = event.offset
        yield nothing(event.range, event.offset, gather)
    else:
        if isinstance(event, RangeFault):
            del positions[tp]
        yield event


class _Fetching:
    """A Fetcher in an event loop in a thread; iterating gives what it delivers."""

    def __init__(self, ranges: Sequence[PlannedRange], options: ReaderOptions) -> None:
        connection: Any = options.connection
        self._brokers = Brokers(connection() if callable(connection) else connection)
        self._queue: queue.SimpleQueue[Delivery | None] = queue.SimpleQueue()
        self._fetcher = Fetcher(ranges, options, self._brokers, self._queue.put)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="penstock-fetch", daemon=True)
        self._thread.start()
        self._run: Future[None] = asyncio.run_coroutine_threadsafe(self._fetcher.run(), self._loop)
        self._run.add_done_callback(lambda _: self._queue.put(None))

    def __iter__(self) -> Iterator[Delivery]:
        while (delivery := self._queue.get()) is not None:
            yield delivery
        self._run.result()

    def release(self, size: int) -> None:
        self._loop.call_soon_threadsafe(self._fetcher.release, size)

    def close(self) -> None:
        """Stop fetching and close the connections."""
        asyncio.run_coroutine_threadsafe(self._finish(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def drop(self, tp: TopicPartition) -> None:
        self._loop.call_soon_threadsafe(self._fetcher.drop, tp)

    async def _finish(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._brokers.close()
        await self._loop.shutdown_default_executor()
