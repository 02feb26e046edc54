"""SIGKILL between any two steps of a cycle: afterwards the same three objects, each record once."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import fastavro
import pytest
from confluent_kafka import Producer

from penstock.crashpoints import POINTS
from unsparked import forks

pytestmark = [pytest.mark.stack, pytest.mark.spark]

SCHEMA = '{"type":"record","name":"myrecord","fields":[{"name":"f1","type":"string"}]}'
IN_PARTS = {"part.after", "complete.before"}
# Spark takes most of a run's time; where it cannot matter, the job runs in the process that is killed.
WITH_SPARK = {"job.started", "object.before", "object.after"}
PENSTOCK = str(Path(sys.executable).with_name("penstock"))


@pytest.fixture(scope="module")
def quickstart(stack, tmp_path_factory, make_topic, produce_avro):
    """A topic with the quickstart's nine records, and a way to write a connector's file for it."""
    directory = tmp_path_factory.mktemp("crash")
    topic = make_topic()
    produce_avro(topic, SCHEMA, [{"f1": f"value{n}"} for n in range(1, 10)])

    def connector(bucket: str, **extra: str) -> Path:
        info = stack.as_json()
        properties = {
            "name": f"crash-{bucket}",
            "connector.class": "io.confluent.connect.s3.S3SinkConnector",
            "topics": topic,
            "flush.size": "3",
            "s3.bucket.name": bucket,
            "storage.class": "io.confluent.connect.s3.storage.S3Storage",
            "format.class": "io.confluent.connect.s3.format.avro.AvroFormat",
            "value.converter": "avro",
            "value.converter.schema.registry.url": info["schema.registry.url"],
            **{name: info[name] for name in ("s3.region", "store.url", "aws.access.key.id", "aws.secret.access.key")},
            **extra,
        }
        file = directory / f"{bucket}.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        return file

    worker = directory / "worker.properties"
    worker.write_text(f"bootstrap.servers={stack.bootstrap_servers}\n")
    return topic, worker, connector


@pytest.fixture(scope="module")
def run():
    """Run a connector in a process of its own until it is done, or killed: `run(worker, connector, "job.done")`."""

    def call(worker, connector, crash_at=None, *, spark=False):
        if not spark:
            return forked.run(worker, connector, crash_at)
        environment = os.environ | ({} if crash_at is None else {"PENSTOCK_CRASH_AT": crash_at})
        command = [PENSTOCK, "run", str(worker), str(connector), "--until-done"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)

    with forks() as forked:
        yield call


def objects(s3, bucket):
    listed = s3.list_objects_v2(Bucket=bucket, Prefix="topics/").get("Contents", [])
    return {
        each["Key"]: [
            r["f1"] for r in fastavro.reader(io.BytesIO(s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read()))
        ]
        for each in listed
    }


@pytest.mark.parametrize("point", [p for p in POINTS if p not in IN_PARTS])
def test_killed_at_a_point_the_next_run_leaves_the_same_three_objects(run, quickstart, s3, bucket, point):
    topic, worker, connector = quickstart
    file = connector(bucket, **{"checkpoint.interval.entries": "1"})
    killed = run(worker, file, crash_at=point, spark=point in WITH_SPARK)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = run(worker, file, spark=point == "job.started")
    assert again.returncode == 0, again.stderr
    prefix = f"topics/{topic}/partition=0/{topic}+0+"
    assert objects(s3, bucket) == {
        f"{prefix}{start:010d}.avro": [f"value{n}" for n in range(start + 1, start + 4)] for start in (0, 3, 6)
    }


@pytest.fixture(scope="module")
def big(stack, make_topic):
    """A topic with four values that make two objects of two parts each."""
    topic = make_topic(**{"max.message.bytes": "4000000"})
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers, "message.max.bytes": 4_000_000})
    values = [bytes([65 + n]) * 3_000_000 for n in range(4)]
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0
    return topic, values


@pytest.mark.parametrize("point", sorted(IN_PARTS))
@pytest.mark.parametrize("time", [1, 2])
def test_killed_amid_the_parts_of_an_object_the_next_run_leaves_whole_ones(
    run, quickstart, big, s3, bucket, point, time
):
    _, worker, connector = quickstart
    topic, values = big
    raw = {"topics": topic, "value.converter": "bytes", "format.class": "bytes", "format.bytearray.separator": "-"}
    file = connector(bucket, **raw, **{"flush.size": "2", "s3.part.size": str(5 << 20), "name": f"parts-{bucket}"})
    killed = run(worker, file, crash_at=f"{point}#{time}")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = run(worker, file)
    assert again.returncode == 0, again.stderr
    found = {
        each["Key"]: s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read()
        for each in s3.list_objects_v2(Bucket=bucket, Prefix="topics/")["Contents"]
    }
    prefix = f"topics/{topic}/partition=0/{topic}+0+"
    assert found == {f"{prefix}{n:010d}.bin": values[n] + b"-" + values[n + 1] + b"-" for n in (0, 2)}
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)


@pytest.mark.parametrize("point", ["intent.appended", "object.after", "job.done"])
def test_a_changed_flush_size_after_a_crash_duplicates_nothing(run, quickstart, s3, bucket, point):
    _, worker, connector = quickstart
    assert run(worker, connector(bucket), crash_at=point).returncode == -signal.SIGKILL
    again = run(worker, connector(bucket, **{"flush.size": "2"}))
    assert again.returncode == 0, again.stderr
    found = objects(s3, bucket)
    assert sorted(value for values in found.values() for value in values) == [f"value{n}" for n in range(1, 10)]
