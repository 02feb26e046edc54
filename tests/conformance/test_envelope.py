"""`store.envelope`: each record with all that Kafka has of it, in every structured format."""

from __future__ import annotations

import datetime as dt
import io

import fastavro
import pyarrow.parquet as pq
import pytest

from connecting import Rec
from penstock.errors import ConfigError

pytestmark = pytest.mark.stack

USER = {"type": "record", "name": "n.User", "fields": [{"name": "n", "type": "int"}]}
WIDER = {**USER, "fields": [*USER["fields"], {"name": "m", "type": ["null", "string"], "default": None}]}
ENVELOPE = {"store.envelope": "true", "behavior.on.null.values": "write"}
RECORDS = [
    Rec({"n": 0}, 1_000, key=b"k0", headers=(("a", b"x"), ("b", None), ("a", b"\xff"))),
    Rec(None, 2_000, key=b"k1"),
    Rec({"n": 2}, 3_000),
]


@pytest.fixture
def body(s3, bucket):
    """The bytes of the one object."""

    def read():
        (key,) = [each["Key"] for each in s3.list_objects_v2(Bucket=bucket, Prefix="topics/")["Contents"]]
        return s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    return read


def around(topic, number, key, value, timestamp, headers=()):
    return {
        "key": key,
        "value": value,
        "headers": [{"key": name, "value": item} for name, item in headers],
        "timestamp": timestamp,
        "topic": topic,
        "partition": 0,
        "offset": number,
    }


def at(ms):
    return dt.datetime.fromtimestamp(ms / 1000, dt.timezone.utc)


def expected(topic, headers, time=lambda ms: ms):
    return [
        around(topic, 0, "k0", {"n": 0}, time(1000), headers),
        around(topic, 1, "k1", None, time(2000)),
        around(topic, 2, None, {"n": 2}, time(3000)),
    ]


TEXTS = (("a", "x"), ("b", None), ("a", "/w=="))
BYTES = (("a", b"x"), ("b", None), ("a", b"\xff"))


def test_json_lines(connect, topic):
    outcome = connect(RECORDS, {**ENVELOPE, "flush.size": "3"}, topic)
    assert outcome.objects == {"partition=0/0+0000000000": expected(topic, TEXTS)}


def with_schema(records):
    return [Rec(each.value, each.ts, USER, each.key, each.headers) for each in records]


def test_avro(connect, topic, body):
    connect(with_schema(RECORDS), {**ENVELOPE, "flush.size": "3"}, topic)
    reader = fastavro.reader(io.BytesIO(body()))
    assert list(reader) == expected(topic, BYTES, at)
    assert [each["name"] for each in reader.writer_schema["fields"]] == [*around("", 0, None, None, 0)]


@pytest.mark.parametrize("with_schemas", [True, False])
def test_parquet(connect, topic, body, with_schemas):
    records = with_schema(RECORDS) if with_schemas else RECORDS
    connect(records, {**ENVELOPE, "flush.size": "3", "format.class": "parquet"}, topic)
    rows = pq.read_table(io.BytesIO(body())).to_pylist()
    if with_schemas:
        assert rows == expected(topic, BYTES, at)
    else:
        assert rows == expected(topic, TEXTS)


@pytest.mark.parametrize("file_format", ["avro", "json"])
def test_a_null_value_closes_no_file_whatever_schemas_were_seen_before(connect, topic, make_topic, file_format):
    for number in range(2):  # converters are kept: other schemas have other codes
        other = {**USER, "name": f"n.Other{number}{file_format}"}
        connect([Rec({"n": 0}, schema=other)], {**ENVELOPE, "flush.size": "1", "name": f"o{number}"}, make_topic())
    records = [Rec({"n": 1}, schema=USER), Rec(None, key=b"k"), Rec({"n": 3}, schema=USER), Rec(None, key=b"k")]
    outcome = connect(records, {**ENVELOPE, "flush.size": "4", "format.class": file_format}, topic)
    values = [[row["value"] for row in rows] for key, rows in outcome.objects.items() if "0+0000000000" in key]
    assert [{"n": 1}, None, {"n": 3}, None] in values


def test_schemas_evolve_within_it(connect, topic, body):
    properties = {**ENVELOPE, "flush.size": "2", "schema.compatibility": "BACKWARD"}
    connect([Rec({"n": 1, "m": "x"}, 5, WIDER), Rec({"n": 2}, 6, USER, key=b"k")], properties, topic)
    found = list(fastavro.reader(io.BytesIO(body())))
    assert [(each["key"], each["value"]) for each in found] == [(None, {"n": 1, "m": "x"}), ("k", {"n": 2, "m": None})]


def test_a_key_that_cannot_be_converted_is_a_bad_record(connect, topic):
    properties = {**ENVELOPE, "key.converter": "json", "key.converter.schemas.enable": "false", "flush.size": "1"}
    outcome = connect([Rec({"n": 0}, key=b"1"), Rec({"n": 1}, key=b"{")], properties, topic)
    assert len(outcome.objects) == 1
    assert f"{topic}-0@1: key: its value is not JSON" in outcome.faults[0]


def test_bytes_have_no_room_for_an_envelope(connect):
    properties = {"store.envelope": "true", "format.class": "bytes", "value.converter": "bytes"}
    with pytest.raises(ConfigError, match="`bytes` have no fields"):
        connect([], {**properties, "value.converter.schemas.enable": None})
