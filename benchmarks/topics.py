"""Topics that hold what a shape says, filled with whole record batches over aiokafka's client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import requests
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.produce import ProduceRequest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from benchmarks.shapes import FIRST_MS, SCHEMA, Shape, batch, batches, stamped

if TYPE_CHECKING:
    from penstock.dev.settings import StackInfo

_IN_FLIGHT, _REQUEST_BYTES, _REQUEST_PARTITIONS = 6, 4 << 20, 200
_LARGEST_RECORD = 64 << 20


@dataclass(slots=True)
class Topic:
    """A topic and how many records each of its partitions holds. `fill` may be called again to make it longer."""

    info: StackInfo
    name: str
    shape: Shape
    filled: list[int] = field(default_factory=list)
    _schema_id: int = 0
    _template: list[bytes] = field(default_factory=list)

    @classmethod
    def make(cls, info: StackInfo, name: str, shape: Shape) -> Topic:
        """An empty topic; its schema is registered where values are Avro."""
        admin = AdminClient({"bootstrap.servers": info.bootstrap_servers})
        new = NewTopic(name, shape.partitions, 1, config={"max.message.bytes": str(_LARGEST_RECORD)})
        admin.create_topics([new])[name].result(60)
        _await_leaders(admin, name, shape.partitions)
        topic = cls(info, name, shape, [0] * shape.partitions)
        if shape.kind == "avro":
            url = f"{info.schema_registry_url}/subjects/{name}-value/versions"
            topic._schema_id = requests.post(url, json={"schema": json.dumps(SCHEMA)}, timeout=30).json()["id"]
        topic._template = list(batches(shape, topic._schema_id))
        return topic

    @property
    def records(self) -> int:
        """How many it holds."""
        return sum(self.filled)

    def fill(self, records: int) -> None:
        """Append `records`, spread over the partitions as the shape says."""
        goals = [have + more for have, more in zip(self.filled, self.shape.shares(records), strict=True)]
        asyncio.run(_send_all(self, goals))

    def delete(self) -> None:
        """Delete it with its records."""
        admin = AdminClient({"bootstrap.servers": self.info.bootstrap_servers})
        admin.delete_topics([self.name])[self.name].result(60)

    def next_batch(self, partition: int, goal: int) -> bytes:
        """The next batch of a partition on its way to `goal` records, counted as sent."""
        at, size = self.filled[partition], self.shape.per_batch
        first_ms = FIRST_MS + at * self.shape.step_ms
        index, inside = divmod(at, size)
        count = min(size - inside, goal - at)  # behind a short batch another one, so that whole ones follow again
        self.filled[partition] = at + count
        if count < size:
            number = index % len(self._template) * size + inside
            return stamped(batch(self.shape, self._schema_id, number, count), first_ms)
        return stamped(self._template[index % len(self._template)], first_ms)


def _await_leaders(admin: AdminClient, name: str, partitions: int) -> None:
    """Until every partition answers: a broker takes a while to make a thousand."""
    wanted = {TopicPartition(name, number): OffsetSpec.latest() for number in range(partitions)}
    deadline = time.monotonic() + 60
    while wanted:
        for each, future in admin.list_offsets(wanted).items():
            with contextlib.suppress(KafkaException):
                future.result()
                del wanted[each]
        if time.monotonic() > deadline:
            msg = f"{len(wanted)} partitions of {name} have no leader after a minute"
            raise RuntimeError(msg)


async def _send_all(topic: Topic, goals: list[int]) -> None:
    client = AIOKafkaClient(bootstrap_servers=topic.info.bootstrap_servers, request_timeout_ms=120_000)
    await client.bootstrap()
    try:
        await client._wait_on_metadata(topic.name)  # noqa: SLF001 - as aiokafka's own producer does
        node = next(iter(client.cluster.brokers())).nodeId  # the stack has one broker
        waiting: deque[asyncio.Task[None]] = deque()
        while any(have < goal for have, goal in zip(topic.filled, goals, strict=True)):
            if len(waiting) >= _IN_FLIGHT:
                await waiting.popleft()
            waiting.append(asyncio.create_task(_send(client, node, topic.name, _round(topic, goals))))
            await asyncio.sleep(0)
        for task in waiting:
            await task
    finally:
        await client.close()


def _round(topic: Topic, goals: list[int]) -> list[tuple[int, bytes]]:
    """What one request carries: one batch each of the partitions that lag behind most, within its size."""
    lagging = [p for p, goal in enumerate(goals) if topic.filled[p] < goal]
    lagging.sort(key=lambda p: topic.filled[p] / goals[p])
    chosen: list[tuple[int, bytes]] = []
    size = 0
    for partition in lagging[:_REQUEST_PARTITIONS]:
        made = topic.next_batch(partition, goals[partition])
        chosen.append((partition, made))
        size += len(made)
        if size >= _REQUEST_BYTES:
            break
    return chosen


async def _send(client: AIOKafkaClient, node: int, topic: str, parts: list[tuple[int, bytes]]) -> None:
    answer = await client.send(node, ProduceRequest(None, 1, 60_000, [(topic, parts)]))
    failed = {part[0]: part[1] for _, answered in answer.topics for part in answered if part[1]}
    if failed:
        msg = f"the broker refused batches of {topic}: error codes by partition {failed}"
        raise RuntimeError(msg)
