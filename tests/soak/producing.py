"""Records that can be told apart: how they are made, and how they are found again in Kafka and in objects."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass, field

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition

PARTITIONS = 4
_VALUE = re.compile(rb'"p":(\d+),"n":(\d+)')
_SPAN = 10**12


def value(partition: int, number: int, padding: int = 0) -> bytes:
    return b'{"p":%d,"n":%d,"x":"%s"}' % (partition, number, b"x" * padding)


def ids(body: bytes) -> np.ndarray:
    """A number for each value in some bytes."""
    return np.array([int(p) * _SPAN + int(n) for p, n in _VALUE.findall(body)], np.int64)


@dataclass
class Producing:
    """Produces at a steady rate, and does not mind a broker that goes and comes back. Use it in a `with` block."""

    servers: str
    topic: str
    per_second: int
    padding: int = 0
    acknowledged: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Producing:  # noqa: PYI034 - Self needs Python 3.11
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join()

    def _run(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.servers,
                "enable.idempotence": True,
                "linger.ms": 20,
                "delivery.timeout.ms": 600_000,
                "log_level": 0,
                "log.connection.close": False,
            }
        )
        began, made = time.monotonic(), 0
        while not self._stop.wait(0.05):
            due = int((time.monotonic() - began) * self.per_second)
            for number in range(made, due):
                partition = number % PARTITIONS
                producer.produce(
                    self.topic, value(partition, number, self.padding), partition=partition, on_delivery=self._heard
                )
                producer.poll(0)
            made = due
        while producer.flush(10):
            pass

    def _heard(self, error: object, _message: object) -> None:
        assert error is None, error
        self.acknowledged += 1


def in_kafka(servers: str, topic: str) -> np.ndarray:
    """The numbers of all values in the topic: what there is to write, each as often as it is there."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": f"count-{topic}", "enable.auto.commit": False})
    left, found = 0, []
    try:
        starts = []
        for partition in range(PARTITIONS):
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=60)
            left += high - low
            starts.append(TopicPartition(topic, partition, low))
        consumer.assign(starts)
        while left > 0:
            messages = consumer.consume(10_000, timeout=10)
            assert messages, f"Kafka hands out nothing more, but {left} records are missing"
            left -= len(messages)
            found.append(ids(b"".join(message.value() for message in messages)))
    finally:
        consumer.close()
    return np.concatenate(found) if found else np.array([], np.int64)
