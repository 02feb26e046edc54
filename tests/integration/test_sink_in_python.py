"""The sink in a Python program of its user's: `penstock.Sink` against a real broker and S3 server, with real Spark."""

import subprocess
import sys

import pytest
from confluent_kafka import Producer
from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock import Sink
from penstock.spark import session

pytestmark = [pytest.mark.stack, pytest.mark.spark]


@pytest.fixture
def sink(stack, bucket):
    """A sink of bytes in files of three; the Spark that it starts is stopped in the end."""

    def make(topic):
        info = stack.as_json()
        connector = {
            "name": bucket,
            "topics": topic,
            "flush.size": "3",
            "s3.bucket.name": bucket,
            "format.class": "bytes",
            "value.converter": "bytes",
            **{key: info[key] for key in ("s3.region", "store.url", "aws.access.key.id", "aws.secret.access.key")},
        }
        return Sink.from_properties(connector, {"bootstrap.servers": stack.bootstrap_servers})

    yield make
    SparkContext.getOrCreate().stop()


def produce(stack, topic, values, partition=0):
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(60) == 0


def test_flush_closes_what_is_open(stack, s3, bucket, sink, make_topic):
    topic = make_topic(2)
    produce(stack, topic, [b"1", b"2", b"3", b"4"])
    produce(stack, topic, [b"only"], partition=1)
    opened = sink(topic)
    assert opened.run_once().objects == 1
    assert opened.flush().records == 2
    status = opened.status()
    assert [(each.position, each.lag) for each in status.partitions] == [(4, 0), (1, 0)]
    assert status.partitions[1].last_object.endswith("+1+0000000000.bin")
    listed = s3.list_objects_v2(Bucket=bucket, Prefix="topics/")["Contents"]
    bodies = (s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read() for each in listed)
    assert sorted(bodies) == [b"1\n2\n3\n", b"4\n", b"only\n"]


def test_spark_sql_is_started_when_somebody_asks_for_it(stack, sink, make_topic):
    topic = make_topic()
    produce(stack, topic, [b"1", b"2", b"3"])
    assert sink(topic).run(until_done=True).committed.records == 3
    context = SparkContext.getOrCreate()
    assert SparkSession.getActiveSession() is None
    assert session(1, {}).sparkContext is context
    assert session(1, {}).range(3).count() == 3


@pytest.mark.parametrize(
    ("name", "value", "words"), [("spark.master", "locall[2]", "'locall[2]'"), ("spark.driver.memory", "5x", "Java")]
)
def test_a_spark_that_does_not_start_is_one_sentence(name, value, words):
    program = (
        "import sys; from penstock.errors import PenstockError; from penstock.spark import context\n"
        "try: context(1, {sys.argv[1]: sys.argv[2]})\n"
        "except PenstockError as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", program, name, value], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("Spark does not start: ")
    assert words in ran.stdout
    assert ran.stdout.endswith("check it and the other spark.* settings\n")
    assert ran.stdout.count("\n") == 1
