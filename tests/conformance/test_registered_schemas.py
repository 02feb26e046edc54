"""Protobuf and JSON Schema written by Confluent's own serializers: values and keys, in every format that takes them."""

import datetime as dt

import pytest
from confluent_kafka.serialization import MessageField
from google.protobuf.message_factory import GetMessageClass

from connecting import Rec, serializers
from penstock.converters.protobuf_files import protobuf_file

pytestmark = pytest.mark.stack

COMMON = 'syntax = "proto3"; package common; message Place { string city = 1; }'
ORDER = """syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto"; import "common/place.proto";
message Unused { int32 u = 1; }
message Order { int64 id = 1; oneof to { common.Place place = 2; string email = 3; } map<string, double> prices = 4;
  google.protobuf.Timestamp at = 5; }
message Key { string id = 1; }"""
DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def serialize(stack):
    with serializers(stack) as call:
        yield call


@pytest.fixture(scope="module")
def messages():
    pool = protobuf_file(ORDER, {"common/place.proto": COMMON}).pool
    return lambda name: GetMessageClass(pool.FindMessageTypeByName(name))


@pytest.fixture
def registered(stack):
    def describe(kind, file_format, **more):
        url = {"value.converter.schema.registry.url": stack.schema_registry_url}
        converters = {
            "protobuf": "io.confluent.connect.protobuf.ProtobufConverter",
            "json_schema": "io.confluent.connect.json.JsonSchemaConverter",
        }
        return {
            "value.converter": converters[kind],
            "value.converter.schemas.enable": None,
            "format.class": file_format,
            **url,
            **more,
        }

    return describe


@pytest.mark.parametrize("file_format", ["json", "avro"])
def test_protobuf_of_confluent_s_serializer(connect, topic, serialize, messages, registered, stack, file_format):
    order, key = messages("shop.Order"), messages("shop.Key")
    records = [
        Rec(
            serialize("protobuf", topic, order(id=n, prices={"a": 0.5 * n}, at={"seconds": n * 86_400}, **sent)),
            key=serialize("protobuf", topic, key(id=f"k{n}"), MessageField.KEY),
        )
        for n, sent in enumerate([{"email": "e"}, {"place": {"city": "c"}}, {}])
    ]
    keys = {
        "store.kafka.keys": "true",
        "keys.format.class": file_format,
        "key.converter": "io.confluent.connect.protobuf.ProtobufConverter",
        "key.converter.schema.registry.url": stack.schema_registry_url,
    }
    times = {
        "partitioner.class": "time",
        "path.format": "'day'=d",
        "partition.duration.ms": str(DAY_MS),
        "locale": "en",
        "timezone": "UTC",
        "timestamp.extractor": "RecordField",
        "timestamp.field": "at",
        "flush.size": "1",
    }
    outcome = connect(records, registered("protobuf", file_format, **keys, **times), topic)
    assert outcome.faults == []
    values = [outcome.objects[f"day={n + 1}/0+{n:010}"][0] for n in range(3)]
    assert [each["to_0"] for each in values] == [
        {"place": None, "email": "e"},
        {"place": {"city": "c"}, "email": None},
        None,
    ]
    at = [dt.datetime(1970, 1, 1 + n, tzinfo=dt.timezone.utc) for n in range(3)]
    assert [each["at"] for each in values] == (at if file_format == "avro" else [n * DAY_MS for n in range(3)])
    prices = [{"key": "a", "value": 0.5}] if file_format == "avro" else {"a": 0.5}
    assert (values[1]["id"], values[1]["prices"]) == (1, prices)
    assert [outcome.objects[f"day={n + 1}/0+{n:010}.keys"] for n in range(3)] == [[{"id": f"k{n}"}] for n in range(3)]


@pytest.mark.parametrize("file_format", ["json", "avro"])
def test_json_schema_of_confluent_s_serializer(connect, topic, serialize, registered, file_format):
    given = [{"id": 1, "name": "a", "vip": True}, {"id": 2, "vip": False}, {"id": 3, "name": "c"}]
    records = [Rec(serialize("json_schema", topic, each)) for each in given]
    properties = {
        "value.converter.use.optional.for.nonrequired": "true",
        "partitioner.class": "field",
        "partition.field.name": "vip",
        "flush.size": "3",
    }
    outcome = connect(records, registered("json_schema", file_format, **properties), topic)
    nothing = {"name": None, "vip": None}
    assert outcome.objects == {
        f"vip={label}/0+{n:010}": [nothing | given[n]] for n, label in enumerate(["true", "false", "null"])
    }


@pytest.mark.parametrize("kind", ["protobuf", "json_schema"])
def test_a_bad_record_stops_its_partition_and_names_it(connect, topic, serialize, messages, registered, kind):
    value = messages("shop.Order")(id=1) if kind == "protobuf" else {"id": 1, "name": "a", "vip": True}
    good = serialize(kind, topic, value)
    records = [Rec(good), Rec(good[:5] + b"\x04"), Rec(good)]
    outcome = connect(records, registered(kind, "json", **{"flush.size": "1"}), topic)
    assert list(outcome.objects) == ["partition=0/0+0000000000"]
    (fault,) = outcome.faults
    assert f"{topic}-0@1: its value " in fault
