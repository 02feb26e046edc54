"""Committed objects back into Kafka: `penstock restore` on a real broker, S3 server and registry."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, IsolationLevel
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import OffsetSpec

from connecting import Rec
from penstock.cli.main import cli
from penstock.cli.options import Session
from penstock.errors import PenstockError, TakenOverError
from penstock.model import TopicPartition
from penstock.restore import maps
from penstock.restore.offsets import Position
from penstock.restore.records import Record
from penstock.restore.target import Place, Target

pytestmark = pytest.mark.stack

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "int"}, {"name": "s", "type": "string"}]}


@pytest.fixture
def settled(kafka_admin):
    """Wait until no transaction is open: brokers write its end to the partitions after they have confirmed it."""

    def wait(asked: list[KafkaTopicPartition]) -> None:
        def ends(level: IsolationLevel) -> list[int]:
            latest = {place: OffsetSpec.latest() for place in asked}
            return [each.result().offset for each in kafka_admin.list_offsets(latest, isolation_level=level).values()]

        until = time.monotonic() + 60
        while ends(IsolationLevel.READ_COMMITTED) != ends(IsolationLevel.READ_UNCOMMITTED):
            assert time.monotonic() < until, asked
            time.sleep(0.05)

    return wait


@pytest.fixture
def read_back(stack, settled):
    """What a read_committed consumer sees of a topic: partition -> messages, up to the end of each."""

    def read(topic: str, partitions: int) -> dict[int, list[Any]]:
        places = [KafkaTopicPartition(topic, number, 0) for number in range(partitions)]
        settled(places)
        consumer = Consumer(
            {
                "bootstrap.servers": stack.bootstrap_servers,
                "group.id": "read-back",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        consumer.assign(places)
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
def files(stack, describe, tmp_path):
    """The files that a user has: the connector's and the worker's."""

    def write(topic: str, properties: dict[str, str], *, avro: bool = False) -> tuple[str, str]:
        connector, worker = tmp_path / "sink.properties", tmp_path / "worker.properties"
        given = describe(topic, properties, avro=avro)
        connector.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        worker.write_text(f"bootstrap.servers={stack.bootstrap_servers}\n")
        return str(connector), str(worker)

    return write


@pytest.fixture
def restore(capsys):
    """`penstock restore` in this process: its map, and its words. Errors are raised."""

    def run(files: tuple[str, str], *options: str) -> tuple[list[dict[str, Any]], str]:
        capsys.readouterr()
        arguments = ["restore", files[0], "--worker", files[1], "--output", "json", *options]
        cli.main(arguments, standalone_mode=False, obj=Session())
        said = capsys.readouterr()
        return json.loads(said.out).get("offsets", []), said.err

    return run


def killed(files, *options, at):
    """The same command in a process that is killed at a point; what it had said."""
    command = [PENSTOCK, "restore", files[0], "--worker", files[1], *options]
    environment = {**os.environ, "PENSTOCK_CRASH_AT": at}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


def as_kafka_had(message):
    return message.key(), message.value(), message.headers(), message.timestamp()[1]


def values(messages):
    return [message.value() for message in messages]


def test_a_killed_restore_goes_on_and_each_record_comes_back_once(connect, make_topic, files, read_back, restore):
    """Killed between two transactions, and with a transaction's records at the broker but not committed."""
    topic, again = make_topic(2), make_topic(2)
    records = [
        Rec(
            {"n": n, "s": "x" * (n % 7)},
            ts=1_700_000_000_000 + n // 10 % 2,
            schema=SCHEMA,
            key=b"k%d" % n if n % 3 else None,
            headers=(("h", b"%d" % n), ("none", None)) if n % 2 else (),
            partition=n // 10 % 2,
        )
        for n in range(80)
    ]
    properties = {"store.kafka.keys": "true", "store.kafka.headers": "true", "flush.size": "10"}
    properties["headers.format.class"] = "parquet"
    connect(records, properties, topic)
    given = files(topic, properties, avro=True)
    options = ["--to-topic", again, "--transaction-records", "7"]
    killed(given, *options, at="restore.committed#3")
    killed(given, *options, at="restore.sent#2")
    rows, said = restore(given, *options)
    assert said == f"{80 - 3 * 7 - 7} records restored\n"
    was, now = read_back(topic, 2), read_back(again, 2)
    for number in (0, 1):
        assert list(map(as_kafka_had, now[number])) == list(map(as_kafka_had, was[number]))
        assert len(now[number]) == 40
    told = {
        (row["partition"], row["old_start"] + at): row["new_start"] + at for row in rows for at in range(row["records"])
    }
    pairs = [(old, new) for number in (0, 1) for old, new in zip(was[number], now[number], strict=True)]
    assert told == {(old.partition(), old.offset()): new.offset() for old, new in pairs}
    assert {row["exact"] for row in rows} == {"yes"}
    assert restore(given, *options) == (rows, "0 records restored\n")


def test_a_later_run_restores_what_was_committed_since(connect, topic, make_topic, files, read_back, restore):
    again, given = make_topic(), files(topic, {"flush.size": "2"})
    for count in (2, 4):
        connect([Rec({"n": n}) for n in (0, 1)], {"flush.size": "2"}, topic)
        rows, _ = restore(given, "--to-topic", again)
        assert sum(row["records"] for row in rows) == count
    assert [json.loads(value)["n"] for value in values(read_back(again, 1)[0])] == [0, 1, 0, 1]


def test_a_part_of_a_topic_at_a_rate_with_more_rows_than_fit_beside_a_position(
    connect, topic, make_topic, files, read_back, restore, monkeypatch
):
    monkeypatch.setattr(maps, "MOST_METADATA", 200)
    again, given = make_topic(), files(topic, {"flush.size": "5"})
    connect([Rec({"n": n}) for n in range(40)], {"flush.size": "5"}, topic)
    limits = ["--from-offset", f"{topic}-0=7", "--to-offset", "33"]
    began = time.monotonic()
    rows, _ = restore(given, "--to-topic", again, *limits, "--transaction-records", "1", "--rate", "50")
    assert time.monotonic() - began >= 25 / 50
    assert [json.loads(value)["n"] for value in values(read_back(again, 1)[0])] == list(range(7, 33))
    assert [row["old_start"] for row in rows] == list(range(7, 33))
    with pytest.raises(PenstockError, match=r"begun with the limits `.*:7.*`, got `{}`; .* --name"):
        restore(given, "--to-topic", again)


def test_what_stands_in_the_way_is_named_before_anything_is_written(
    connect, make_topic, files, s3, bucket, read_back, restore
):
    topic, narrow, taken, free = make_topic(2), make_topic(), make_topic(2), make_topic(2)
    connect([Rec({"n": n}, partition=n % 2) for n in range(4)], {"flush.size": "2"}, topic)
    connect([Rec({"n": 0})], {"flush.size": "2", "name": "other"}, taken)
    given = files(topic, {"flush.size": "2"})
    for options, words in (
        (["--to-topic", narrow], rf"`{narrow}` has 1 partitions, but records of partition 1 .*; add partitions"),
        (["--to-topic", f"{topic}-new"], rf"`{topic}-new` does not exist, .* --create-topic"),
        (["--to-topic", taken], rf"{taken}-0 holds records already, .* --append"),
        ([], rf"{topic}-0 holds records already"),
        (["--topic", "x"], rf"has committed nothing of `x`; topics with objects: `{topic}`"),
        (["--from-offset", "x"], r"--from-offset must be OFFSET or .*, got `x`"),
        (["--to-time", "soon"], r"--to-time must be a time .*, got `soon`"),
    ):
        with pytest.raises(PenstockError, match=words):
            restore(given, *options)
    with pytest.raises(PenstockError, match="`nobody` is neither a connector's file nor loaded here"):
        restore(("nobody", given[1]))
    broken = f"topics/{topic}/partition=1/{topic}+1+0000000000.json"
    whole = s3.get_object(Bucket=bucket, Key=broken)["Body"].read()
    for body, words in ((whole[:-1] + b" ", "damaged: 18 bytes with CRC-32C"), (whole + b"1\n", "damaged: 20 bytes")):
        s3.put_object(Bucket=bucket, Key=broken, Body=body)
        with pytest.raises(PenstockError, match=f"`{re.escape(broken)}` is {words}"):
            restore(given, "--to-topic", free)
    s3.delete_object(Bucket=bucket, Key=broken)
    with pytest.raises(
        PenstockError, match=f"`{re.escape(broken)}` is named by the state log but is not in the bucket"
    ):
        restore(given, "--to-topic", free)
    assert {number: len(found) for number, found in read_back(free, 2).items()} == {0: 2, 1: 0}
    s3.put_object(Bucket=bucket, Key=broken, Body=whole)
    restore(given, "--to-topic", free)
    assert {number: len(found) for number, found in read_back(free, 2).items()} == {0: 2, 1: 2}


def test_objects_of_the_same_offsets_come_one_after_the_other_only_if_that_is_accepted(
    connect, topic, make_topic, files, read_back, restore
):
    again, properties = make_topic(), {"flush.size": "6", "partitioner.class": "field", "partition.field.name": "c"}
    connect([Rec({"n": n, "c": "ab"[n % 2]}, ts=1000 + n) for n in range(6)], properties, topic)
    given = files(topic, properties)
    with pytest.raises(PenstockError, match=r"hold records of the same offsets .* --unordered"):
        restore(given, "--to-topic", again)
    rows, said = restore(given, "--to-topic", again, "--unordered")
    assert [json.loads(value)["n"] for value in values(read_back(again, 1)[0])] == [0, 2, 4, 1, 3, 5]
    assert [(row["old_start"], row["old_end"], row["records"], row["exact"]) for row in rows] == [
        (0, 5, 3, "no"),
        (1, 6, 3, "no"),
    ]
    assert "6 records come back with no key" in said
    assert "6 records come back with the time of the restore" in said


def test_tombstones_come_back_as_null_values(connect, topic, make_topic, files, read_back, restore):
    properties = {"store.kafka.keys": "true", "behavior.on.null.values": "write", "flush.size": "2"}
    connect([Rec({"n": n} if n != 2 else None, key=b"k%d" % n) for n in range(4)], properties, topic)
    again = make_topic()
    restore(files(topic, properties), "--to-topic", again, "--unordered")
    assert [(m.key(), m.value() is None) for m in read_back(again, 1)[0]] == [
        (b"k0", False),
        (b"k1", False),
        (b"k2", True),
        (b"k3", False),
    ]


@pytest.mark.parametrize("form", ["avro", "json", "parquet"])
def test_everything_comes_back_out_of_envelopes(connect, topic, make_topic, files, read_back, restore, form):
    """In Kafka's order, although its objects hold every other record, and tombstones too."""
    wrapped = {"store.envelope": "true", "behavior.on.null.values": "write", "flush.size": "6", "format.class": form}
    fields = {"partitioner.class": "field", "partition.field.name": "s"} if form == "json" else {}
    records = [
        Rec(
            {"n": n, "s": "ab"[n % 2]} if n != 3 or fields else None,
            1_700_000_000_000 + n,
            None if form == "json" else SCHEMA,
            b"k%d" % n if n != 2 else None,
            (("h", b"x"), ("none", None)) if n % 2 else (),
        )
        for n in range(6)
    ]
    connect(records, {**wrapped, **fields}, topic)
    again = make_topic()
    rows, said = restore(files(topic, {**wrapped, **fields}, avro=form != "json"), "--to-topic", again)
    was, now = read_back(topic, 1)[0], read_back(again, 1)[0]
    assert list(map(as_kafka_had, now)) == list(map(as_kafka_had, was))
    assert [(row["old_start"], row["old_end"], row["exact"]) for row in rows] == [(0, 6, "yes")]
    assert said == "6 records restored\n"


def test_block_gzip_comes_back_with_keys(connect, topic, make_topic, files, read_back, restore):
    """With a later configuration that writes JSON lines: each object is read as it was written."""
    blocks = {
        "value.converter": "string",
        "format.class": "block_gzip",
        "flush.size": "3",
        "compressed_block_size": "8",
    }
    connect(
        [Rec(b"one", key=b"a"), Rec(b"two"), Rec(b"three", key=b"c")], {**blocks, "format.key.delimiter": ":"}, topic
    )
    later = {"value.converter": "string", "flush.size": "1", "value.converter.schemas.enable": None}
    connect([Rec(b"four", key=b"d")], later, topic)
    again = make_topic()
    _, said = restore(files(topic, later), "--to-topic", again)
    assert [(m.key(), m.value()) for m in read_back(again, 1)[0]] == [
        (b"a", b"one"),
        (None, b"two"),
        (b"c", b"three"),
        (None, b"four"),
    ]
    assert "warning: 1 records come back with no key" in said


def test_a_value_that_holds_the_separator_is_told_before_anything_is_written(
    connect, topic, make_topic, files, read_back, restore
):
    raw = {"value.converter": "bytes", "format.class": "bytes", "flush.size": "2", "s3.compression.type": "gzip"}
    raw["value.converter.schemas.enable"] = None
    connect([Rec(b"a\nb"), Rec(b"c")], raw, topic)
    again = make_topic()
    given = files(topic, raw)
    with pytest.raises(PenstockError, match=r"committed with 2 records, but more can be told apart"):
        restore(given, "--to-topic", again)
    assert read_back(again, 1) == {0: []}


def test_a_second_instance_of_a_restore_stops_the_first(stack, topic):
    place = Place(stack.bootstrap_servers, {"bootstrap.servers": stack.bootstrap_servers, "log_level": 0})
    with Target(place, topic) as first, Target(place, topic) as second:
        first.take_over()
        first.begin()
        first.send(Record(b"of the first"), TopicPartition(topic, 0))
        first.flush()
        second.take_over()
        with pytest.raises(TakenOverError, match=f"another instance of the restore `{topic}` took over"):
            first.commit({TopicPartition(topic, 0): (1, Position("{}", 0, 1))})
        assert second.positions([TopicPartition(topic, 0)]) == {}
