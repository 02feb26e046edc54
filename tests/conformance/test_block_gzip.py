"""Block-GZIP end to end: the scenario of the first connector's own system test, from its own files (seed 003)."""

from __future__ import annotations

import gzip
import json
import re
import threading
import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from connecting import InProcess, Rec
from penstock.crashpoints import watched
from penstock.loading import load
from penstock.loop import keep_running
from penstock.running import Running

pytestmark = pytest.mark.stack

CONNECTOR = """\
name=s3-sink-{topic}
connector.class=com.deviantart.kafka_connect_s3.S3SinkConnector
tasks.max=3
topics={topic}
s3.bucket={bucket}
s3.prefix=systest
s3.endpoint={endpoint}
s3.path_style=true
local.buffer.dir=/tmp/connect-system-test
aws.access.key.id={key}
aws.secret.access.key={secret}
s3.region={region}
"""
WORKER = """\
bootstrap.servers={brokers}
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
internal.key.converter=org.apache.kafka.connect.json.JsonConverter
internal.value.converter=org.apache.kafka.connect.json.JsonConverter
internal.key.converter.schemas.enable=true
internal.value.converter.schemas.enable=true
offset.storage.file.filename=/tmp/connect.offsets
offset.flush.interval.ms=1000
consumer.metadata.max.age.ms=1000
"""


class KilledError(BaseException):
    """The process ends here."""


def message(number):
    return b'{"foo": "bar", "counter":%d}' % number


@pytest.fixture
def files(stack, bucket, topic, tmp_path):
    """The two files as their users have them, on the test's servers."""
    said = stack.as_json()
    connector, worker = tmp_path / "connector.properties", tmp_path / "worker.properties"
    connector.write_text(
        CONNECTOR.format(
            topic=topic,
            bucket=bucket,
            endpoint=said["store.url"],
            key=said["aws.access.key.id"],
            secret=said["aws.secret.access.key"],
            region=said["s3.region"],
        )
    )
    worker.write_text(WORKER.format(brokers=stack.bootstrap_servers))
    return connector, worker


@pytest.fixture
def start(files):
    """The connector on an empty machine: nothing is left of an earlier one but what is in S3."""

    def make():
        config, kafka = load(*files)
        return Running.open(config, kafka, InProcess(kafka))

    return make


def produce(stack, topic, numbers, partitions):
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers, "log_level": 0})
    for number in numbers:
        producer.produce(topic, message(number), str(number).encode(), number % partitions)
    assert producer.flush(30) == 0


class Bucket:
    """What lies under the prefix."""

    def __init__(self, s3, name, topic):
        self.s3, self.name, self.topic = s3, name, topic

    def body(self, key):
        return self.s3.get_object(Bucket=self.name, Key=key)["Body"].read()

    def keys(self):
        listed = self.s3.list_objects_v2(Bucket=self.name, Prefix="systest/").get("Contents", [])
        return sorted(each["Key"] for each in listed)

    def check(self, partition, first, numbers, length):
        """The newest object of a partition, its index and its cursor are as the first connector's."""
        cursor = self.body(f"systest/last_chunk_index.{self.topic}-{partition:05d}.txt").decode()
        name = re.escape(f"{self.topic}-{partition:05d}-{first:012d}.index.json")
        assert re.fullmatch(rf"systest/\d{{4}}-\d\d-\d\d/{name}", cursor)
        lines = b"".join(message(number) + b"\n" for number in numbers)
        body = self.body(cursor.replace(".index.json", ".gz"))
        assert gzip.decompress(body) == lines
        assert self.body(cursor).decode() == (
            f'{{"chunks":[{{"byte_length_uncompressed":{len(lines)},"num_records":{len(numbers)},'
            f'"byte_length":{length},"byte_offset":0,"first_record_offset":{first},'
            f'"next_record_offset":{first + len(numbers)}}}]}}'
        )
        assert len(body) == length


def until_written(running, ends):
    """Run until everything up to `ends` offsets in all is committed."""
    stop = threading.Event()
    thread = threading.Thread(target=keep_running, args=(running, stop), kwargs={"until_done": False})
    thread.start()
    while sum(running.engine.log.head.positions.values()) < ends:
        time.sleep(0.05)
    stop.set()
    thread.join(60)
    assert not thread.is_alive()


def test_the_first_connector_s_own_system_test(stack, topic, s3, bucket, start):
    there = Bucket(s3, bucket, topic)
    produce(stack, topic, range(100), 1)
    with start() as running:
        until_written(running, 100)
    assert len(there.keys()) == 3
    there.check(0, 0, range(100), 275)

    produce(stack, topic, range(100, 200), 1)
    with start() as running:
        until_written(running, 200)
        there.check(0, 100, range(100, 200), 272)
        admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
        admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
        while len(admin.list_topics(topic, 10).topics[topic].partitions) < 3:
            time.sleep(0.1)
        produce(stack, topic, range(200, 300), 3)
        until_written(running, 300)
    there.check(0, 200, range(201, 300, 3), 137)
    there.check(1, 0, range(202, 300, 3), 137)
    there.check(2, 0, range(200, 300, 3), 139)
    assert len(there.keys()) == 3 + 2 + 2 + 2 * 3


def test_a_crash_before_the_cursor_is_written_leaves_no_old_one_after_the_next_start(stack, topic, s3, bucket, start):
    produce(stack, topic, range(100), 1)
    there = Bucket(s3, bucket, topic)

    def crash(name):
        if name == "commit.appended" and len(there.keys()):
            raise KilledError

    def run_until_killed():
        with start() as running, watched(crash):
            while True:
                keep_running(running, threading.Event(), until_done=True)
                time.sleep(0.3)

    with pytest.raises(KilledError):
        run_until_killed()
    assert not [each for each in there.keys() if "last_chunk_index" in each]  # noqa: SIM118 - it is no dict
    with start():
        there.check(0, 0, range(100), 275)


def test_block_gzip_in_the_sink_s_own_layout(connect, s3, bucket):
    properties = {
        "format.class": "block_gzip",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter.schemas.enable": None,
        "compressed_block_size": "8",
        "flush.size": "3",
        "format.key.delimiter": ":",
    }
    outcome = connect([Rec(b"one", key=b"a"), Rec(b"two"), Rec(b"three", key=b"c")], properties)
    name = "partition=0/0+0000000000"
    assert sorted(outcome.objects) == [f"{name}.gz", f"{name}.index"]
    assert (outcome.committed.records, outcome.committed.objects) == (3, 2)
    listed = [each["Key"] for each in s3.list_objects_v2(Bucket=bucket, Prefix="topics/")["Contents"]]
    body, index = (s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in sorted(listed))
    assert gzip.decompress(body) == b"a:one\n:two\nc:three\n"
    members = json.loads(index)["chunks"]
    assert [member["num_records"] for member in members] == [1, 1, 1]
