"""What Kafka does to a sink that runs: topics made anew, retention that overtakes it, transactions that stay open."""

import threading

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import NewPartitions, NewTopic
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_fixed

from connecting import InProcess
from penstock import crashpoints
from penstock.loading import load
from penstock.loop import keep_running, open_patiently
from penstock.model import TopicPartition
from penstock.running import Running

pytestmark = pytest.mark.stack


@pytest.fixture
def opened(stack, bucket):
    """A connector of lines whose job runs in this process."""

    def make(topic, **changes):
        given = stack.as_json()
        properties = {
            "name": bucket,
            "connector.class": "io.confluent.connect.s3.S3SinkConnector",
            "storage.class": "io.confluent.connect.s3.storage.S3Storage",
            "topics": topic,
            "flush.size": "2",
            "format.class": "bytes",
            "value.converter": "bytes",
            "s3.bucket.name": bucket,
            **{key: given[key] for key in ("s3.region", "store.url", "aws.access.key.id", "aws.secret.access.key")},
            **{key.replace("_", "."): value for key, value in changes.items()},
        }
        config, kafka = load(properties, {"bootstrap.servers": stack.bootstrap_servers}, None)
        return Running.open(config, kafka, InProcess(kafka))

    return make


@pytest.fixture
def written(s3, bucket):
    """All values in the objects, in the order of their names."""

    def read():
        listed = s3.list_objects_v2(Bucket=bucket, Prefix="topics/").get("Contents", [])
        bodies = [s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read() for each in listed]
        return b"".join(bodies).decode().split()

    return read


def until_done(running):
    running._discovered = running._discovered and -1.0  # look for what is new at once
    keep_running(running, threading.Event(), until_done=True)
    return {tp: fault.message for tp, fault in running.engine.faults.items()}


def produce(stack, topic, values, partition=0):
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(30) == 0


def make_anew(admin, topic):
    admin.delete_topics([topic])[topic].result(30)
    # The old one is still being deleted for a moment.
    anew = Retrying(retry=retry_if_exception_type(KafkaException), stop=stop_after_attempt(100), wait=wait_fixed(0.1))
    anew(lambda: admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30))


class Once:
    """Does something at the first time that a point of the cycle is reached."""

    def __init__(self, point, act):
        self.point, self.act = point, act

    def __call__(self, reached):
        if reached == self.point and self.act is not None:
            act, self.act = self.act, None
            act()


class Waits:
    """An event that is never set; its third wait makes a topic with records."""

    def __init__(self, act):
        self.act, self.waits = act, 0

    def is_set(self):
        return False

    def wait(self, _seconds):
        self.waits += 1
        if self.waits == 3:
            self.act()


def test_a_topic_that_is_not_there_yet_is_waited_for(stack, opened, written, kafka_admin, bucket, caplog):
    topic = f"later-{bucket}"

    def make():
        kafka_admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
        produce(stack, topic, "abcd")

    stop = Waits(make)
    with open_patiently(lambda: opened(topic), stop) as running:
        assert stop.waits >= 3
        assert until_done(running) == {}
    assert written() == list("abcd")
    assert f"waiting seconds=1 reason=topics: there is no topic `{topic}` at {stack.bootstrap_servers}" in caplog.text


def test_a_topic_made_anew_and_longer_than_before_is_named_by_its_id(stack, opened, topic, kafka_admin, written):
    produce(stack, topic, "abcd")
    with opened(topic) as running:
        assert until_done(running) == {}
        known = dict(running.engine.log.head.topics)
    make_anew(kafka_admin, topic)
    produce(stack, topic, "ABCDEFGH")
    with opened(topic) as running:
        (message,) = until_done(running).values()
        found = running.kafka.topic_ids([topic])[topic]
        assert running.engine.log.head.positions == {TopicPartition(topic, 0): 4}
    assert message == (
        f"{topic}-0: the topic was deleted and made anew: its id is `{found}`, but objects are committed up to "
        f"offset 4 of `{known[topic]}`; write it under a connector name and topics.dir of its own"
    )
    assert written() == list("abcd")


def test_a_topic_made_anew_while_a_job_reads_it_commits_nothing(stack, opened, topic, kafka_admin):
    produce(stack, topic, "abcd")

    def meanwhile():
        make_anew(kafka_admin, topic)
        produce(stack, topic, "ABCDEFGH")

    with opened(topic) as running, crashpoints.watched(Once("intent.appended", meanwhile)):
        (message,) = until_done(running).values()
        assert "the topic was deleted and made anew" in message
        assert running.engine.log.head.positions == {TopicPartition(topic, 0): 0}
        assert running.engine.log.head.open_intent is None


@pytest.mark.parametrize("choice", ["fail", "skip"])
def test_retention_that_overtakes_a_running_job(choice, stack, opened, topic, kafka_admin, written):
    produce(stack, topic, "abcdefgh")

    def meanwhile():
        for future in kafka_admin.delete_records([KafkaTopicPartition(topic, 0, 5)]).values():
            future.result(timeout=30)

    with opened(topic, on_data_loss=choice) as running, crashpoints.watched(Once("intent.appended", meanwhile)):
        faults = until_done(running)
        assert "offsets `[0, 5)` were deleted from Kafka before they were read" in faults[TopicPartition(topic, 0)]
        faults = until_done(running)
        if choice == "fail":
            assert "Kafka deleted the records from offset 0 to 4 before they were written" in str(faults)
            assert written() == []
        else:
            assert faults == {}
            assert written() == ["f", "g"]


def test_a_partition_that_is_added_is_written_from_its_start(stack, opened, topic, kafka_admin, written):
    produce(stack, topic, "ab")
    with opened(topic, consumer_override_auto_offset_reset="latest") as running:
        until_done(running)
        kafka_admin.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
        produce(stack, topic, "cd", partition=1)
        assert until_done(running) == {}
        assert running.engine.log.head.positions[TopicPartition(topic, 1)] == 2
    assert written() == ["c", "d"]


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_long_transaction_holds_back_what_comes_behind_it(end, stack, opened, topic, written):
    produce(stack, topic, "ab")
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in "cd":
        producer.produce(topic, value, partition=0)
    producer.flush(30)
    produce(stack, topic, "efgh")
    with opened(topic) as running:
        assert until_done(running) == {}
        assert written() == ["a", "b"]
        producer.commit_transaction(30) if end == "commit" else producer.abort_transaction(30)
        while running.ends()[TopicPartition(topic, 0)] < 9:  # the marker is written a little later
            pass
        assert until_done(running) == {}
    assert written() == list("abcdefgh" if end == "commit" else "abefgh")
