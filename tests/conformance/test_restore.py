"""Committed objects back into Kafka: `penstock restore` on a real broker, S3 server and registry."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from connecting import Rec

pytestmark = pytest.mark.stack

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "int"}, {"name": "s", "type": "string"}]}
ALL = {"store.kafka.keys": "true", "store.kafka.headers": "true"}
TIMES = "came back without"


@pytest.fixture
def read_back(stack):
    """What a read_committed consumer sees of a topic: partition -> messages, up to the end of each."""

    def read(topic: str, partitions: int) -> dict[int, list[Any]]:
        consumer = Consumer({
            "bootstrap.servers": stack.bootstrap_servers,
            "group.id": "read-back",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        })
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        found: dict[int, list[Any]] = {number: [] for number in range(partitions)}
        ended: set[int] = set()
        while len(ended) < partitions:
            message = consumer.poll(30)
            assert message is not None
            if message.error() is not None:
                ended.add(message.partition())
            else:
                found[message.partition()].append(message)
        consumer.close()
        return found

    return read


@pytest.fixture
def files(stack, bucket, describe, tmp_path):
    """The files that a user has: the connector's and the worker's."""

    def write(topic: str, properties: dict[str, str], *, avro: bool = False) -> tuple[str, str]:
        connector, worker = tmp_path / "sink.properties", tmp_path / "worker.properties"
        given = describe(topic, properties, avro=avro)
        connector.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        worker.write_text(f"bootstrap.servers={stack.bootstrap_servers}\n")
        return str(connector), str(worker)

    return write


def restore(files, *options, crash_at=None):
    environment = dict(os.environ) | ({"PENSTOCK_CRASH_AT": crash_at} if crash_at else {})
    command = [PENSTOCK, "restore", files[0], "--worker", files[1], "--output", "json", *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def as_kafka_had(message):
    return message.key(), message.value(), message.headers(), message.timestamp()[1]


def test_a_killed_restore_goes_on_and_each_record_comes_back_once(connect, make_topic, files, read_back):
    topic = make_topic(2)
    again = make_topic(2)
    records = [
        Rec(
            {"n": n, "s": "x" * (n % 7)},
            ts=1_700_000_000_000 + n // 10,
            schema=SCHEMA,
            key=b"k%d" % n if n % 3 else None,
            headers=(("h", b"%d" % n), ("none", None)) if n % 2 else (),
            partition=n // 10 % 2,
        )
        for n in range(80)
    ]
    properties = {**ALL, "flush.size": "10"}
    connect(records, properties, topic)
    given = files(topic, properties, avro=True)
    options = ["--to-topic", again, "--transaction-records", "7"]
    for point in ("restore.committed#3", "restore.sent#2", "restore.sent#1"):
        killed = restore(given, *options, crash_at=point)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = restore(given, *options)
    assert done.returncode == 0, done.stderr
    was, now = read_back(topic, 2), read_back(again, 2)
    assert [len(now[number]) for number in (0, 1)] == [40, 40]
    for number in (0, 1):
        assert list(map(as_kafka_had, now[number])) == list(map(as_kafka_had, was[number]))
    rows = json.loads(done.stdout)["offsets"]
    told = {
        (row["partition"], row["old_start"] + at): row["new_start"] + at
        for row in rows
        for at in range(row["records"])
        if row["exact"] == "yes"
    }
    seen = zip([m for n in (0, 1) for m in was[n]], [m for n in (0, 1) for m in now[n]], strict=True)
    assert told == {(old.partition(), old.offset()): new.offset() for old, new in seen}
    repeated = restore(given, *options)
    assert (json.loads(repeated.stdout)["offsets"], repeated.stderr) == (rows, "0 records restored\n")
