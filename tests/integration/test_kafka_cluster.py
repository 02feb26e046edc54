from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.errors import DataLossError, KafkaUnavailable
from penstock.kafka.cluster import MARK, Cluster, GroupOffset
from penstock.kafka.settings import KafkaSettings
from penstock.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.dev.settings import StackInfo

pytestmark = pytest.mark.stack


@pytest.fixture
def anyone(stack: StackInfo) -> KafkaSettings:
    return KafkaSettings.parse({"bootstrap.servers": stack.bootstrap_servers})


def produce(settings: KafkaSettings, topic: str, *values: str, timestamp: int = 0) -> None:
    producer = Producer(settings.librdkafka_config())
    for value in values:
        producer.produce(topic, value, partition=0, timestamp=timestamp)
    assert producer.flush(30) == 0


def test_topics_are_listed_with_their_partitions_and_without_kafkas_own(
    anyone: KafkaSettings, make_topic: Callable[..., str]
) -> None:
    one, three = make_topic(), make_topic(3)
    with Cluster(anyone) as cluster:
        cluster.mirror("some-group", {TopicPartition(one, 0): 0})  # makes __consumer_offsets
        topics = cluster.topics()
    assert topics[one] == (0,)
    assert topics[three] == (0, 1, 2)
    assert not [name for name in topics if name.startswith("__")]


def test_a_topic_that_is_made_again_has_another_id(
    anyone: KafkaSettings, kafka_admin: AdminClient, make_topic: Callable[..., str]
) -> None:
    topic = make_topic()
    with Cluster(anyone) as cluster:
        first = cluster.topic_ids([topic])
        assert cluster.topic_ids([topic]) == first
        kafka_admin.delete_topics([topic])[topic].result()
        deadline = time.monotonic() + 30
        while topic in cluster.topics():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        kafka_admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
        while topic not in cluster.topics():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert cluster.topic_ids([topic])[topic] != first[topic]


def test_log_starts_follow_deleted_records(
    anyone: KafkaSettings, kafka_admin: AdminClient, make_topic: Callable[..., str]
) -> None:
    topic = make_topic()
    tp = TopicPartition(topic, 0)
    produce(anyone, topic, *"abcde")
    with Cluster(anyone) as cluster:
        assert cluster.log_starts([tp]) == {tp: 0}
        for future in kafka_admin.delete_records([KafkaTopicPartition(topic, 0, 3)]).values():
            future.result()
        assert cluster.log_starts([tp]) == {tp: 3}
        assert cluster.log_ends([tp]) == {tp: 5}


def test_the_log_ends_where_an_open_transaction_begins_unless_uncommitted_records_are_wanted(
    stack: StackInfo, anyone: KafkaSettings, make_topic: Callable[..., str]
) -> None:
    topic = make_topic()
    tp = TopicPartition(topic, 0)
    produce(anyone, topic, "a", "b")
    producer = Producer(anyone.librdkafka_config() | {"transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, "open", partition=0)
    producer.flush(30)
    reckless = KafkaSettings.parse(
        {"bootstrap.servers": stack.bootstrap_servers, "isolation.level": "read_uncommitted"}
    )
    with Cluster(anyone) as careful, Cluster(reckless) as other:
        assert careful.log_ends([tp]) == {tp: 2}
        assert other.log_ends([tp]) == {tp: 3}
        producer.commit_transaction(30)
        deadline = time.monotonic() + 30
        while careful.log_ends([tp]) != {tp: 4}:  # the commit marker has an offset too, and is written a little later
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_offsets_for_times_are_of_the_first_record_that_is_not_earlier(
    anyone: KafkaSettings, make_topic: Callable[..., str]
) -> None:
    topic = make_topic()
    tp = TopicPartition(topic, 0)
    for time_ms in (1000, 2000, 3000):
        produce(anyone, topic, "x", timestamp=time_ms)
    with Cluster(anyone) as cluster:
        assert cluster.offsets_for_times({tp: 0}) == {tp: 0}
        assert cluster.offsets_for_times({tp: 1001}) == {tp: 1}
        assert cluster.offsets_for_times({tp: 3000}) == {tp: 2}
        assert cluster.offsets_for_times({tp: 3001}) == {tp: None}


def test_nothing_asked_is_nothing_answered(anyone: KafkaSettings) -> None:
    with Cluster(anyone) as cluster:
        assert cluster.log_ends([]) == {}
        assert cluster.topic_ids([]) == {}
        assert cluster.committed("no-group", []) == {}
        cluster.mirror("no-group", {})


def test_a_topic_or_partition_that_is_not_there_is_data_loss(
    anyone: KafkaSettings, make_topic: Callable[..., str]
) -> None:
    topic = make_topic()
    with Cluster(anyone) as cluster:
        with pytest.raises(DataLossError, match=r"^topic `no-such-topic` does not exist \(any more\)"):
            cluster.log_ends([TopicPartition("no-such-topic", 0)])
        with pytest.raises(DataLossError, match=rf"^partition 7 of topic `{topic}` does not exist"):
            cluster.log_starts([TopicPartition(topic, 0), TopicPartition(topic, 7)])
        with pytest.raises(DataLossError, match=r"^topic `no-such-topic` does not exist"):
            cluster.topic_ids(["no-such-topic"])


def test_mirrored_offsets_carry_our_mark_and_others_do_not(
    anyone: KafkaSettings, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(3)
    tps = [TopicPartition(topic, partition) for partition in range(3)]
    consumer = Consumer(anyone.librdkafka_config() | {"group.id": "connect-mirrored"})
    consumer.commit(offsets=[KafkaTopicPartition(topic, 1, 5)], asynchronous=False)
    consumer.close()
    with Cluster(anyone) as cluster:
        cluster.mirror("connect-mirrored", {tps[0]: 42})
        assert cluster.committed("connect-mirrored", tps) == {tps[0]: GroupOffset(42, MARK), tps[1]: GroupOffset(5, "")}
        assert cluster.committed("connect-never-seen", tps) == {}


def test_mirroring_is_refused_while_kafka_connect_runs_the_connector(
    anyone: KafkaSettings, make_topic: Callable[..., str]
) -> None:
    topic = make_topic()
    consumer = Consumer(anyone.librdkafka_config() | {"group.id": "connect-alive"})
    consumer.subscribe([topic])
    deadline = time.monotonic() + 60
    while not consumer.assignment():
        consumer.poll(0.1)
        assert time.monotonic() < deadline
    try:
        with Cluster(anyone) as cluster, pytest.raises(KafkaUnavailable) as caught:
            cluster.mirror("connect-alive", {TopicPartition(topic, 0): 0})
    finally:
        consumer.close()
    assert str(caught.value) == (
        "Kafka Connect is still running connector `alive`: its consumer group `connect-alive` has members; "
        "stop it there first, for both would write the same records"
    )
    assert not caught.value.transient
