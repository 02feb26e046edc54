"""The reader against librdkafka, record by record, on a real broker."""

import itertools
import random
import threading
import uuid

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient

from penstock.errors import DataLossError
from penstock.kafka.reader import ReaderOptions, read
from penstock.kafka.settings import KafkaSettings
from penstock.kafka.troubles import RangeFault
from penstock.model import Gather, PlannedRange, TopicPartition

pytestmark = pytest.mark.stack

ALL = Gather(keys=True, headers=True)


@pytest.fixture(scope="module")
def servers(stack):
    return stack.bootstrap_servers


def ours(servers, ranges, gather=ALL, **options):
    settings = KafkaSettings.parse({"bootstrap.servers": servers})
    found, faults, ends = [], [], {}
    for item in read(ranges, ReaderOptions(settings.aiokafka_kwargs, **options), gather):
        if isinstance(item, RangeFault):
            faults.append(item)
            continue
        ends[item.tp] = item.next_offset
        found += [record(item, row) for row in range(len(item))]
    return found, faults, ends


def record(records, row):
    at = (records.tp.partition, int(records.offsets[row]), int(records.timestamps[row]))
    return (*at, records.keys[row], records.values[row], headers(records.headers[row]))


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return (value >> 1) ^ -(value & 1), at


def headers(area):
    count, at = varint(area, 0)
    found = []
    for _ in range(count):
        size, at = varint(area, at)
        name, at = area[at : at + size].decode(), at + size
        size, at = varint(area, at)
        found.append((name, None if size < 0 else area[at : at + size]))
        at += max(size, 0)
    assert at == len(area)
    return found


def theirs(servers, topic, partitions, isolation="read_committed"):
    """All records by librdkafka, and per partition where its log ends."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": uuid.uuid4().hex,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    marks = {p: consumer.get_watermark_offsets(KafkaTopicPartition(topic, p), timeout=30) for p in partitions}
    consumer.assign([KafkaTopicPartition(topic, p, low) for p, (low, _) in marks.items()])
    found, ended = [], set()
    while len(ended) < len(marks):
        message = consumer.poll(10)
        assert message is not None
        if message.error():
            ended.add(message.partition())
            continue
        at = (message.partition(), message.offset(), message.timestamp()[1])
        found.append((*at, message.key(), message.value(), message.headers() or []))
    consumer.close()
    return sorted(found), marks


def ranges_of(topic, marks):
    return [PlannedRange(TopicPartition(topic, p), low, high) for p, (low, high) in marks.items() if high > low]


def same(servers, topic, partitions=(0,), isolation="read_committed"):
    expected, marks = theirs(servers, topic, partitions, isolation)
    found, faults, ends = ours(servers, ranges_of(topic, marks), isolation=isolation)
    assert not faults
    assert sorted(found) == expected
    for partition, (low, high) in marks.items():
        offsets = [r[1] for r in found if r[0] == partition]
        assert offsets == sorted(offsets)
        if high > low:
            assert ends[TopicPartition(topic, partition)] == high
    return expected


def produce(servers, topic, records, **config):
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "message.max.bytes": 20_000_000, **config})
    for record in records:
        producer.produce(topic, **record)
        producer.poll(0)
    assert producer.flush(60) == 0


def some_records(count, seed=0):
    pick = random.Random(seed)
    for number in range(count):
        yield {
            "value": pick.choice([None, b"", b"x" * pick.randrange(300), f"value {number}".encode()]),
            "key": pick.choice([None, b"", f"key {number % 7}".encode()]),
            "headers": pick.choice([[], [("a", b"1")], [("a", None), ("a", b""), ("é", b"\x00")]]),
            "timestamp": pick.choice([1, 1_600_000_000_000 + number, 1_600_000_000_000 - number]),
        }


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_with_null_and_empty_keys_values_and_headers(servers, make_topic, codec):
    topic = make_topic()
    produce(servers, topic, some_records(2_000), **{"compression.type": codec, "batch.num.messages": 300})
    assert len(same(servers, topic)) == 2_000


def test_log_append_time_is_every_record_s_time(servers, make_topic):
    topic = make_topic(**{"message.timestamp.type": "LogAppendTime"})
    produce(servers, topic, some_records(200))
    same(servers, topic)


def test_transactions_committed_aborted_interleaved_and_open(servers, make_topic):
    topic = make_topic()
    producers = []
    for number in range(3):
        producer = Producer(
            {"bootstrap.servers": servers, "transactional.id": f"{topic}-{number}", "batch.num.messages": 5}
        )
        producer.init_transactions()
        producers.append(producer)
    produce(servers, topic, some_records(20))
    for _ in range(4):
        for number, producer in enumerate(producers):
            producer.begin_transaction()
            for i in range(17):
                producer.produce(topic, f"t{number}-{i}".encode())
            producer.flush()
        producers[0].abort_transaction()
        producers[1].commit_transaction()
        producers[2].abort_transaction()
    produce(servers, topic, some_records(20, seed=1))
    assert len(same(servers, topic)) == 40 + 4 * 17
    assert len(same(servers, topic, isolation="read_uncommitted")) == 40 + 4 * 51
    producers[0].begin_transaction()
    producers[0].produce(topic, b"open")
    producers[0].flush()
    produce(servers, topic, [{"value": b"behind the open one"}])
    assert len(same(servers, topic)) == 40 + 4 * 17
    producers[0].abort_transaction()
    assert len(same(servers, topic)) == 40 + 4 * 17 + 1


def test_big_records_and_batches_larger_than_the_fetch_size(servers, make_topic):
    topic = make_topic(**{"max.message.bytes": "20000000"})
    sizes = [1, 5_000_000, 10, 2_000_000, 1]
    produce(servers, topic, [{"value": bytes([n]) * size} for n, size in enumerate(sizes)], acks="all")
    _, marks = theirs(servers, topic, [0])
    found, _, _ = ours(servers, ranges_of(topic, marks), max_partition_fetch_bytes=1000, fetch_max_bytes=1000)
    assert [len(r[4]) for r in found] == sizes
    same(servers, topic)


def test_ranges_begin_and_end_inside_of_batches(servers, make_topic):
    topic = make_topic()
    produce(servers, topic, [{"value": str(n).encode()} for n in range(100)], **{"batch.num.messages": 30})
    for start, end in itertools.product((0, 1, 29, 30, 31, 77), (32, 60, 78, 99, 100)):
        if start < end:
            found, _, ends = ours(servers, [PlannedRange(TopicPartition(topic, 0), start, end)])
            assert [r[4] for r in found] == [str(n).encode() for n in range(start, end)]
            assert ends == {TopicPartition(topic, 0): end}


def test_a_log_that_starts_above_zero_and_offsets_that_are_gone(servers, make_topic, kafka_admin: AdminClient):
    topic = make_topic(2)
    for partition in (0, 1):
        produce(servers, topic, [{"value": str(n).encode(), "partition": partition} for n in range(50)])
    futures = kafka_admin.delete_records([KafkaTopicPartition(topic, 0, 20)])
    for future in futures.values():
        future.result(timeout=30)
    expected, marks = theirs(servers, topic, [0, 1])
    assert marks[0] == (20, 50)
    assert len(expected) == 80
    same(servers, topic, (0, 1))
    gone, fine = TopicPartition(topic, 0), TopicPartition(topic, 1)
    found, faults, _ = ours(servers, [PlannedRange(gone, 5, 50), PlannedRange(fine, 0, 50)])
    assert [(fault.tp, type(fault.error), fault.offset) for fault in faults] == [(gone, DataLossError, 5)]
    assert [r[0] for r in found] == [1] * 50


def test_a_compacted_topic_has_gaps(servers, make_topic):
    topic = make_topic(
        **{
            "cleanup.policy": "compact",
            "segment.ms": "100",
            "min.cleanable.dirty.ratio": "0.001",
            "max.compaction.lag.ms": "200",
        }
    )
    for turn in range(200):
        produce(servers, topic, [{"key": f"k{n % 5}".encode(), "value": f"{turn}-{n}".encode()} for n in range(20)])
        expected, marks = theirs(servers, topic, [0])
        if len(expected) < marks[0][1] - 20:
            break
    assert len(expected) < marks[0][1]
    found, faults, ends = ours(servers, ranges_of(topic, marks))
    assert not faults
    assert ends == {TopicPartition(topic, 0): marks[0][1]}
    visible = {r[1] for r in found}
    again, _ = theirs(servers, topic, [0])
    assert {r[1] for r in again if r[1] < marks[0][1]} <= visible <= {r[1] for r in expected}


def test_many_partitions_share_their_requests(servers, make_topic):
    topic = make_topic(200)
    produce(servers, topic, [{"value": str(n).encode(), "partition": n % 200} for n in range(1_000)])
    assert len(same(servers, topic, tuple(range(200)))) == 1_000


def test_the_wire_prefix_is_stripped_and_separators_appended(servers, make_topic):
    topic = make_topic()
    values = [b"\x00\x00\x00\x00\x07abc", None, b"no", b"\x01\x00\x00\x00\x07abc", b"\x00\x00\x00\x00\x08"]
    produce(servers, topic, [{"value": value} for value in values])
    settings = KafkaSettings.parse({"bootstrap.servers": servers})
    planned = [PlannedRange(TopicPartition(topic, 0), 0, 5)]
    (records,) = read(planned, ReaderOptions(settings.aiokafka_kwargs), Gather(strip=5, separator=b";"))
    assert records.schema_ids.tolist() == [7, -2, -1, -1, 8]
    assert [records.values[row] for row in (0, 1, 4)] == [b"abc;", None, b";"]
    assert records.keys is None


def test_a_broker_collects_fetch_min_bytes_before_it_answers(servers, make_topic):
    topic = make_topic()
    produce(servers, topic, [{"value": b"x" * 300} for _ in range(10)])
    settings = KafkaSettings.parse(
        {"bootstrap.servers": servers, "fetch.min.bytes": "5000", "fetch.max.wait.ms": "29000"}
    )
    options = ReaderOptions(
        settings.aiokafka_kwargs,
        fetch_min_bytes=settings.fetch_min_bytes,
        fetch_max_wait_ms=settings.fetch_max_wait_ms,
    )
    timer = threading.Timer(0.5, produce, (servers, topic, [{"value": b"x" * 300} for _ in range(10)]))
    timer.start()
    first = next(reading := read([PlannedRange(TopicPartition(topic, 0), 0, 20)], options, Gather()))
    timer.join()
    reading.close()
    assert first.next_offset > 10


def test_a_broker_answers_after_fetch_max_wait_ms_whatever_it_has(servers, make_topic):
    topic = make_topic()
    produce(servers, topic, [{"value": b"x" * 300} for _ in range(10)])
    planned = [PlannedRange(TopicPartition(topic, 0), 0, 10)]
    found, _, _ = ours(servers, planned, fetch_min_bytes=1 << 30, fetch_max_wait_ms=100)
    assert len(found) == 10


def test_closing_early_leaves_nothing_open(servers, make_topic):
    topic = make_topic()
    produce(servers, topic, [{"value": b"x" * 1000} for _ in range(5_000)], **{"batch.num.messages": 100})
    settings = KafkaSettings.parse({"bootstrap.servers": servers})
    options = ReaderOptions(settings.aiokafka_kwargs, max_partition_fetch_bytes=100_000)
    reading = read([PlannedRange(TopicPartition(topic, 0), 0, 5_000)], options, Gather())
    assert len(next(reading)) > 0
    reading.close()
