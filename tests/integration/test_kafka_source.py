"""penstock.kafka against a plain librdkafka consumer, row by row, on a real broker; Spark itself is not needed here."""

import datetime as dt
import json
import operator
import random
import uuid

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient
from kafka_rows import NAMES, in_order, ours
from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    Not,
    StringEndsWith,
)

from penstock.errors import ConfigError, DataLossError
from penstock.sources.kafka import KafkaSource

pytestmark = pytest.mark.stack

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
FIRST_MS = 1_700_000_000_000


def theirs(stack, topics):
    """All rows by librdkafka."""
    consumer = Consumer(
        {
            "bootstrap.servers": stack.bootstrap_servers,
            "group.id": uuid.uuid4().hex,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    listed = consumer.list_topics(timeout=30).topics
    places = [KafkaTopicPartition(name, part, 0) for name in topics for part in listed[name].partitions]
    consumer.assign(places)
    found, ended = [], 0
    while ended < len(places):
        message = consumer.poll(30)
        assert message is not None
        if message.error():
            ended += 1
            continue
        kind, millis = message.timestamp()
        headers = message.headers()
        found.append(
            (
                message.key(),
                message.value(),
                message.topic(),
                message.partition(),
                message.offset(),
                EPOCH + dt.timedelta(milliseconds=millis),
                kind - 1,
                None if headers is None else [{"key": name, "value": value} for name, value in headers],
            )
        )
    consumer.close()
    return in_order(found)


@pytest.fixture(scope="module")
def filled(stack, make_topic):
    """(a topic of three partitions with everything a record may be, one with the broker's times, all their rows)."""
    first, stamped = make_topic(3), make_topic(1, **{"message.timestamp.type": "LogAppendTime"})
    rng = random.Random(8)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer({"bootstrap.servers": stack.bootstrap_servers, "compression.type": codec, "linger.ms": 20})
        for number in range(80):
            producer.produce(
                rng.choice((first, first, stamped)) if number % 9 else first,
                None if number % 7 == 0 else rng.randbytes(rng.choice((0, 3, 200))),
                None if number % 5 == 0 else f"k{number}".encode(),
                timestamp=FIRST_MS + rng.randrange(100_000),
                headers=[("h", b"x"), ("é", None), ("h", b"")][: rng.randrange(4)] or None,
            )
        assert producer.flush(30) == 0
    writer = Producer({"bootstrap.servers": stack.bootstrap_servers, "transactional.id": uuid.uuid4().hex})
    writer.init_transactions(30)
    for end in (writer.abort_transaction, writer.commit_transaction):
        writer.begin_transaction()
        for number in range(5):
            writer.produce(first, f"{end.__name__}{number}", partition=2, timestamp=FIRST_MS + number)
        writer.flush(30)
        end(30)
    return first, stamped, theirs(stack, (first, stamped))


def test_the_rows_are_librdkafkas(stack, filled):
    first, stamped, rows = filled
    found = ours(stack, {"subscribe": f"{first},{stamped}", "includeHeaders": "true"})
    assert len(found) == 405
    assert found == rows
    assert {row[6] for row in rows} == {0, 1}, "both kinds of times were there"


def test_without_includeheaders_there_is_no_such_column(stack, filled):
    source = KafkaSource({"kafka.bootstrap.servers": stack.bootstrap_servers, "subscribe": filled[0]})
    assert source.schema().simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"subscribe": "B"}, lambda a, r: r[2] != a),
        ({"subscribePattern": "(?:A)"}, lambda a, r: r[2] == a),
        ({"assign": '{"A": [0, 2]}'}, lambda a, r: r[2] == a and r[3] != 1),
        (
            {"subscribe": "A", "startingOffsets": '{"A": {"0": 5, "1": -2, "2": 20}}'},
            lambda a, r: r[2] == a and r[4] >= {0: 5, 1: 0, 2: 20}[r[3]],
        ),
        (
            {"subscribe": "A", "endingOffsets": '{"A": {"0": 5, "1": -1, "2": 20}}'},
            lambda a, r: r[2] == a and r[4] < {0: 5, 1: 1000, 2: 20}[r[3]],
        ),
        ({"assign": '{"A": [1]}', "minPartitions": "7"}, lambda a, r: r[2] == a and r[3] == 1),
        ({"subscribe": "A", "maxRecordsPerPartition": "9"}, lambda a, r: r[2] == a),
    ],
)
def test_what_is_read_is_what_the_options_say(stack, filled, options, wanted):
    first, stamped, rows = filled
    given = {name: text.replace("A", first).replace("B", stamped) for name, text in options.items()}
    found = ours(stack, {"includeHeaders": "true", **given})
    assert found == [row for row in rows if wanted(first, row)]
    assert found


def test_times_begin_and_end_at_the_first_record_that_is_so_late(stack, filled):
    first, _, rows = filled
    start, end = FIRST_MS + 40_000, FIRST_MS + 99_000

    def place(partition, time_ms):
        late = [
            r[4] for r in rows if r[2:4] == (first, partition) and r[5] >= EPOCH + dt.timedelta(milliseconds=time_ms)
        ]
        return min(late, default=10**6)

    options = {
        "subscribe": first,
        "startingTimestamp": str(start),
        "endingTimestamp": str(end),
        "includeHeaders": "true",
    }
    wanted = [r for r in rows if r[2] == first and place(r[3], start) <= r[4] < place(r[3], end)]
    assert ours(stack, options) == wanted
    times = {first: {str(partition): start + partition for partition in range(3)}}
    options = {"subscribe": first, "startingOffsetsByTimestamp": json.dumps(times), "includeHeaders": "true"}
    assert ours(stack, options) == [r for r in rows if r[2] == first and r[4] >= place(r[3], start + r[3])]


def test_a_starting_time_behind_every_record_is_an_error_or_the_end(stack, filled):
    late = {"subscribe": filled[0], "startingTimestamp": str(FIRST_MS * 2)}
    with pytest.raises(ConfigError, match=f"no record is as late as the starting time of {filled[0]}-0"):
        ours(stack, late)
    assert ours(stack, {**late, "startingOffsetsByTimestampStrategy": "latest"}) == []


def test_tasks_are_as_many_as_asked_for(stack, filled):
    assign = {"assign": json.dumps({filled[0]: [0, 1]})}
    assert len(ours(stack, assign, whole=True)) == 2
    assert len(ours(stack, {**assign, "minPartitions": "9"}, whole=True)) >= 9
    assert max(map(len, ours(stack, {**assign, "maxRecordsPerPartition": "11"}, whole=True))) <= 11


def test_filters_that_are_taken_over_keep_what_they_say(stack, filled):
    first, stamped, rows = filled
    rng = random.Random(3)
    tests = {
        EqualTo: operator.eq,
        GreaterThan: operator.gt,
        GreaterThanOrEqual: operator.ge,
        LessThan: operator.lt,
        LessThanOrEqual: operator.le,
        In: lambda value, wanted: value in wanted,
        StringEndsWith: str.endswith,
    }
    kept = 0
    for _ in range(25):
        pushed, checks = [], []
        for name in rng.sample(("topic", "partition", "offset", "timestamp"), rng.randrange(1, 4)):
            column, row = NAMES.index(name), rng.choice(rows)
            kind = rng.choice([each for each in tests if each is not StringEndsWith or name == "topic"])
            value = tuple(rng.choice(rows)[column] for _ in range(9)) if kind is In else row[column]
            each, negated = kind((name,), value), rng.random() < 0.2
            pushed.append(Not(each) if negated else each)
            checks.append(lambda r, c=column, k=kind, v=value, n=negated: tests[k](r[c], v) is not n)
        wanted = [row for row in rows if all(check(row) for check in checks)]
        assert ours(stack, {"subscribe": f"{first},{stamped}", "includeHeaders": "true"}, pushed) == wanted, pushed
        kept += len(wanted)
    assert kept > 100


def test_a_filter_spares_the_tasks_that_it_leaves_nothing(stack, filled):
    first, stamped, _ = filled
    both = {"subscribe": f"{first},{stamped}"}
    assert len(ours(stack, both, [EqualTo(("topic",), stamped)], whole=True)) == 1
    assert len(ours(stack, both, [EqualTo(("topic",), first), LessThan(("partition",), 2)], whole=True)) == 2
    assert ours(stack, both, [GreaterThan(("offset",), 10**6)], whole=True) == []
    later = EPOCH + dt.timedelta(milliseconds=2 * FIRST_MS)
    assert ours(stack, {"subscribe": first}, [GreaterThanOrEqual(("timestamp",), later)], whole=True) == []


def test_topics_and_offsets_that_are_not_there_are_named(stack, filled):
    first, _, rows = filled
    with pytest.raises(ConfigError, match=f"there is no topic `{first}x`"):
        ours(stack, {"subscribe": f"{first},{first}x"})
    with pytest.raises(ConfigError, match=f"do not exist: `{first}-7`"):
        ours(stack, {"assign": json.dumps({first: [0, 7]})})
    with pytest.raises(
        ConfigError, match=f"startingOffsets must name every topic-partition; it lacks {first}-1, {first}-2"
    ):
        ours(stack, {"subscribe": first, "startingOffsets": json.dumps({first: {"0": 1}})})
    beyond = {"assign": json.dumps({first: [0]}), "endingOffsets": json.dumps({first: {"0": 10**6}})}
    with pytest.raises(DataLossError, match=f"{first}-0@.*offsets up to `1000000` were asked for, but the log ends at"):
        ours(stack, beyond)
    assert len(ours(stack, {**beyond, "failOnDataLoss": "false"})) == len([r for r in rows if r[2:4] == (first, 0)])
    backwards = {"startingOffsets": json.dumps({first: {"0": 5}}), "endingOffsets": json.dumps({first: {"0": 3}})}
    with pytest.raises(
        ConfigError, match=rf"starting offset of {first}-0 \(`5`\) lies behind its ending offset \(`3`\)"
    ):
        ours(stack, {"assign": json.dumps({first: [0]}), **backwards})


def test_deleted_offsets_fail_or_are_passed_over(stack, make_topic):
    topic = make_topic()
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers})
    for number in range(10):
        producer.produce(topic, str(number))
    producer.flush(30)
    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
    admin.delete_records([KafkaTopicPartition(topic, 0, 4)])[KafkaTopicPartition(topic, 0)].result(timeout=30)
    from_zero = {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 0}})}
    with pytest.raises(DataLossError, match=r"offsets `\[0, 4\)` are not in Kafka any more.*failOnDataLoss=false"):
        ours(stack, from_zero)
    assert [row[4] for row in ours(stack, {**from_zero, "failOnDataLoss": "false"})] == [4, 5, 6, 7, 8, 9]


def test_retention_between_plan_and_task_names_sparks_option(stack, make_topic):
    topic = make_topic()
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers})
    for number in range(10):
        producer.produce(topic, str(number))
    producer.flush(30)
    source = KafkaSource({"kafka.bootstrap.servers": stack.bootstrap_servers, "subscribe": topic})
    reader = source.reader(source.schema())
    (part,) = reader.partitions()
    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
    admin.delete_records([KafkaTopicPartition(topic, 0, 4)])[KafkaTopicPartition(topic, 0)].result(timeout=30)
    with pytest.raises(DataLossError, match="failOnDataLoss=false goes on there"):
        list(reader.read(part))
