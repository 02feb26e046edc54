"""Keys, headers, tombstones, and records that are left out (reference s3-sink-connector 1.3, 2.6, 2.7, 4.6)."""

from __future__ import annotations

import base64
import io
import json

import fastavro
import pytest
from confluent_kafka import Consumer, TopicPartition

from connecting import Rec
from penstock.errors import ConfigError, KafkaUnavailable

pytestmark = pytest.mark.stack

KEYS = {"store.kafka.keys": "true", "flush.size": "2"}
HEADERS = {"store.kafka.headers": "true", "flush.size": "2"}


@pytest.fixture
def raw(s3, bucket):
    """The bytes of an object, by the end of its key."""

    def read(end):
        listed = [each["Key"] for each in s3.list_objects_v2(Bucket=bucket)["Contents"]]
        (key,) = [key for key in listed if key.endswith(end) and not key.startswith("_penstock/")]
        return s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    return read


def avro(body):
    reader = fastavro.reader(io.BytesIO(body))
    return reader.writer_schema, list(reader)


def test_text_keys_in_avro(connect, raw):
    outcome = connect([Rec({"n": 0}, key=b"k0"), Rec({"n": 1}, key=b"k1")], KEYS)
    assert sorted(outcome.objects) == ["partition=0/0+0000000000", "partition=0/0+0000000000.keys"]
    assert avro(raw("+0+0000000000.keys.avro")) == ("string", ["k0", "k1"])


def test_a_null_key_is_kept(connect, raw):
    connect([Rec({"n": 0}, key=b"k0"), Rec({"n": 1})], KEYS)
    assert avro(raw(".keys.avro")) == (["null", "string"], ["k0", None])


@pytest.mark.parametrize(
    ("properties", "end", "expected"),
    [
        ({"keys.format.class": "json"}, ".keys.json", b'"k0"\nnull\n'),
        ({"keys.format.class": "bytes"}, ".keys.bin", b"k0\n\n"),
        (
            {"keys.format.class": "bytes", "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"},
            ".keys.bin",
            b"k0\n\n",
        ),
    ],
)
def test_keys_in_other_formats(connect, raw, properties, end, expected):
    connect([Rec({"n": 0}, key=b"k0"), Rec({"n": 1})], {**KEYS, **properties})
    assert raw(end) == expected


def test_json_keys(connect, raw):
    json_keys = {"key.converter": "json", "key.converter.schemas.enable": "false", "keys.format.class": "json"}
    connect([Rec({"n": 0}, key=b'{"id": 1}'), Rec({"n": 1}, key=b"7")], {**KEYS, **json_keys})
    assert raw(".keys.json") == b'{"id": 1}\n7\n'


def test_each_encoded_partition_has_keys_of_its_own(connect):
    records = [Rec({"n": n, "c": "ab"[n % 2]}, key=b"k%d" % n) for n in range(4)]
    outcome = connect(records, {**KEYS, "flush.size": "4", "partitioner.class": "field", "partition.field.name": "c"})
    assert outcome.objects["c=a/0+0000000000.keys"] == ["k0", "k2"]
    assert outcome.objects["c=b/0+0000000001.keys"] == ["k1", "k3"]


def test_headers(connect, raw):
    records = [
        Rec({"n": 0}, headers=(("a", b"8"), ("b", b"text"), ("a", b"again"))),
        Rec({"n": 1}, headers=(("raw", b"\xff\x00"),)),
    ]
    connect(records, HEADERS)
    schema, rows = avro(raw(".headers.avro"))
    assert schema == {
        "type": "array",
        "items": {
            "type": "record",
            "name": "io.confluent.connect.avro.ConnectDefault",
            "fields": [{"name": "key", "type": "string"}, {"name": "value", "type": "string"}],
        },
    }
    assert rows == [
        [{"key": "a", "value": "8"}, {"key": "b", "value": "text"}, {"key": "a", "value": "again"}],
        [{"key": "raw", "value": base64.b64encode(b"\xff\x00").decode()}],
    ]


def test_no_headers_and_null_headers_are_kept(connect, raw):
    connect([Rec({"n": 0}), Rec({"n": 1}, headers=(("a", None), ("b", b"")))], HEADERS)
    assert avro(raw(".headers.avro"))[1] == [[], [{"key": "a", "value": None}, {"key": "b", "value": ""}]]


def test_headers_in_json(connect, raw):
    connect([Rec({"n": 0}, headers=(("a", b"1"),)), Rec({"n": 1})], {**HEADERS, "headers.format.class": "json"})
    assert raw(".headers.json") == b'{"headers":[{"key":"a","value":"1"}]}\n{"headers":[]}\n'


def test_tombstones_are_keys_in_a_directory_of_their_own(connect):
    records = [Rec({"n": 0}, key=b"k0"), Rec(None, key=b"k1"), Rec(None, key=b"k2"), Rec({"n": 3}, key=b"k3")]
    outcome = connect(
        records, {**KEYS, "flush.size": "4", "behavior.on.null.values": "write", "keys.format.class": "json"}
    )
    assert outcome.objects == {
        "partition=0/0+0000000000": [{"n": 0}, {"n": 3}],
        "partition=0/0+0000000000.keys": ["k0", "k3"],
        "tombstone/0+0000000001.keys": ["k1", "k2"],
    }


def test_tombstones_count_and_do_not_close_the_hour(connect):
    hourly = {
        "partitioner.class": "hourly",
        "locale": "en",
        "timezone": "UTC",
        "timestamp.extractor": "RecordField",
        "timestamp.field": "t",
        "rotate.interval.ms": "3600000",
        "behavior.on.null.values": "write",
        "tombstone.encoded.partition": "gone",
        "store.kafka.keys": "true",
        "keys.format.class": "json",
        "flush.size": "3",
    }
    t = 1_717_171_717_171
    outcome = connect([Rec({"t": t}, t, key=b"1"), Rec(None, t, key=b"2"), Rec({"t": t}, t, key=b"3")], hourly)
    assert sorted(outcome.objects) == [
        "gone/0+0000000001.keys",
        "year=2024/month=05/day=31/hour=16/0+0000000000",
        "year=2024/month=05/day=31/hour=16/0+0000000000.keys",
    ]


def test_tombstones_need_stored_keys(connect):
    with pytest.raises(ConfigError, match=r"which writes keys; set store\.kafka\.keys=true as well"):
        connect([], {"behavior.on.null.values": "write"})


BAD = {
    "no JSON": Rec(b"{oops", key=b"k", headers=(("h", b"v"),)),
    "no path": Rec({"c": [1]}, key=b"k"),
}
TOLERANT = {
    "errors.tolerance": "all",
    "partitioner.class": "field",
    "partition.field.name": "c",
    "flush.size": "3",
    "errors.dir": "bad",
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_tolerated_record_is_left_out_and_kept_in_an_error_object(connect, raw, name, place):
    """At the first, a middle or the last place of a file, and alone behind the last cut."""
    good = [Rec({"n": n, "c": "x"}) for n in range(3)]
    outcome = connect([*good[:place], BAD[name], *good[place:]], TOLERANT)
    assert outcome.faults == []
    (values,) = [rows for key, rows in outcome.objects.items() if key.startswith("c=x")]
    assert [row["n"] for row in values] == [0, 1, 2]
    (kept,) = [json.loads(line) for line in raw(f"+0+{place:010d}.jsonl").splitlines()]
    assert (kept["offset"], kept["partition"], base64.b64decode(kept["key"])) == (place, 0, b"k")
    assert base64.b64decode(kept["value"]) == (BAD[name].value if name == "no JSON" else b'{"c": [1]}')
    assert ("not JSON" in kept["reason"]) == (name == "no JSON")
    assert outcome.open == 0


def test_where_all_records_are_bad_all_are_in_error_objects(connect):
    outcome = connect([Rec(b"{")] * 5, TOLERANT)
    assert sum(len(lines) - 1 for lines in outcome.objects.values()) == 5
    assert outcome.open == 0


def letters(stack, topic, count):
    consumer = Consumer({"bootstrap.servers": stack.bootstrap_servers, "group.id": "letters"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = [consumer.poll(30) for _ in range(count)]
    assert consumer.poll(0.5) is None
    consumer.close()
    return found


def test_dead_letters_have_the_record_and_where_it_was(connect, stack, topic):
    dead = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{topic}-dead",
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
        "flush.size": "2",
    }
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "int"}]}
    records = [
        Rec({"n": 0}, schema=schema),
        Rec(b"not avro", key=b"k", headers=(("mine", b"1"),)),
        Rec({"n": 2}, schema=schema),
    ]
    connect(records, dead, topic)
    (letter,) = letters(stack, f"{topic}-dead", 1)
    assert (letter.key(), letter.value()) == (b"k", b"not avro")
    headers = dict(letter.headers())
    assert headers["mine"] == b"1"
    assert headers["__connect.errors.topic"] == topic.encode()
    assert headers["__connect.errors.partition"] == b"0"
    assert headers["__connect.errors.offset"] == b"1"
    assert headers["__connect.errors.stage"] == b"VALUE_CONVERTER"
    assert b"not Avro in Confluent's wire format" in headers["__connect.errors.exception.message"]


@pytest.mark.parametrize(("report", "count"), [("true", 1), ("false", 0)])
def test_null_values_that_are_left_out_are_reported(connect, stack, topic, report, count):
    dead = {
        "behavior.on.null.values": "ignore",
        "report.null.values.to.dlq": report,
        "errors.deadletterqueue.topic.name": f"{topic}-dead",
        "errors.deadletterqueue.topic.replication.factor": "1",
        "flush.size": "2",
    }
    outcome = connect([Rec({"n": 0}), Rec(None, key=b"gone"), Rec({"n": 2})], dead, topic)
    assert outcome.objects == {"partition=0/0+0000000000": [{"n": 0}, {"n": 2}]}
    assert [(each.key(), each.value()) for each in letters(stack, f"{topic}-dead", count)] == [(b"gone", None)] * count


def test_a_dead_letter_topic_that_cannot_be_made_is_told_at_start(connect, topic):
    dead = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": f"{topic}-dead"}
    with pytest.raises(KafkaUnavailable, match=r"cannot be made: .*topic\.replication\.factor"):
        connect([Rec({"n": 0})], dead, topic)
