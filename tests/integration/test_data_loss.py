"""What Kafka lost before it was written is told, and skipped only where the user said so."""

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import NewTopic
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_fixed

from penstock.config.load import load_sink
from penstock.config.properties import of_mapping
from penstock.engine import Cycle
from penstock.kafka.settings import KafkaSettings
from penstock.model import Commit, Receipt, TopicPartition
from penstock.running import Running

pytestmark = pytest.mark.stack


@pytest.fixture
def running(stack, bucket):
    """Open a connector whose job writes nothing: what is looked at here comes before the job."""
    opened = []

    def open_one(topic, **changes):
        info = stack.as_json()
        given = {
            "name": bucket,
            "topics": topic,
            "flush.size": "1",
            "format.class": "bytes",
            "value.converter": "bytes",
            "s3.bucket.name": bucket,
            **{key: info[key] for key in ("s3.region", "store.url", "aws.access.key.id", "aws.secret.access.key")},
            **{key.replace("_", "."): value for key, value in changes.items()},
        }
        config = load_sink(of_mapping(given, "x"), of_mapping({}, "w"))
        settings = KafkaSettings.parse({"bootstrap.servers": stack.bootstrap_servers})
        one = Running.open(
            config, settings, lambda plan, *_: [Receipt(Commit(r.tp, r.end), r.end) for r in plan.ranges]
        )
        opened.append(one)
        return one

    yield open_one
    for each in opened:
        each.__exit__(None, None, None)


def produce(stack, topic, count):
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers})
    for number in range(count):
        producer.produce(topic, str(number).encode())
    producer.flush()


def delete_up_to(admin, topic, offset):
    for future in admin.delete_records([KafkaTopicPartition(topic, 0, offset)]).values():
        future.result(timeout=30)


def test_deleted_records_stop_their_partition_and_the_range_is_named(stack, running, make_topic, kafka_admin):
    topic = make_topic()
    produce(stack, topic, 10)
    tp = TopicPartition(topic, 0)
    running(topic)
    delete_up_to(kafka_admin, topic, 6)
    again = running(topic)
    assert again.cycle(again.ends()) is None
    assert f"{tp}: Kafka deleted the records from offset 0 to 5" in again.engine.faults[tp].message


def test_deleted_records_are_skipped_where_the_user_says_so(stack, running, make_topic, kafka_admin):
    topic = make_topic()
    produce(stack, topic, 10)
    running(topic)
    delete_up_to(kafka_admin, topic, 6)
    again = running(topic, on_data_loss="skip")
    assert isinstance(again.cycle(again.ends()), Cycle)
    assert again.engine.log.head.positions == {TopicPartition(topic, 0): 10}


def test_a_topic_made_anew_is_noticed(stack, running, make_topic, kafka_admin):
    topic = make_topic()
    produce(stack, topic, 10)
    one = running(topic)
    one.cycle(one.ends())
    kafka_admin.delete_topics([topic])[topic].result(30)
    # The old one is still being deleted for a moment.
    anew = Retrying(retry=retry_if_exception_type(KafkaException), stop=stop_after_attempt(100), wait=wait_fixed(0.1))
    anew(lambda: kafka_admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30))
    produce(stack, topic, 3)
    again = running(topic)
    assert again.cycle(again.ends()) is None
    assert "the topic was deleted and made anew" in again.engine.faults[TopicPartition(topic, 0)].message
