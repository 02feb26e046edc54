"""The type that penstock.kafka gives to values, and the values as that type holds them, on real servers."""

import datetime as dt
import json

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from kafka_rows import ours

from penstock.errors import ConfigError, DataError
from penstock.sources.kafka import KafkaSource

pytestmark = pytest.mark.stack


def avro(stack, **more):
    return {"value.converter": "avro", "value.converter.schema.registry.url": stack.schema_registry_url, **more}


def test_avro_versions_are_merged_to_one_type(stack, make_topic, produce_avro):
    topic = make_topic()
    old = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}, {"name": "gone", "type": "string"}]}
    when = {"type": "long", "logicalType": "timestamp-millis"}
    price = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    new = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "gone", "type": ["null", "string"], "default": None},
            {"name": "when", "type": when, "default": 0},
            {"name": "price", "type": ["null", price], "default": None},
            {"name": "tags", "type": {"type": "map", "values": "int"}, "default": {}},
            {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["A", "B"]}, "default": "A"},
            {"name": "in", "type": {"type": "record", "name": "I", "fields": [{"name": "x", "type": "float"}]}},
        ],
    }
    moment = dt.datetime(2024, 5, 6, 7, 8, 9, 123_000, dt.timezone.utc)
    wide = {"id": 2**40, "gone": None, "when": moment, "price": None, "tags": {"a": 1}, "kind": "B", "in": {"x": 0.5}}
    produce_avro(topic, json.dumps(old), [{"id": 1, "gone": "x"}])
    registry = SchemaRegistryClient({"url": stack.schema_registry_url})
    registry.set_compatibility(f"{topic}-value", "NONE")
    produce_avro(topic, json.dumps(new), [wide])
    registry.__exit__()
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers})
    producer.produce(topic, None)
    producer.flush(30)
    source = KafkaSource({"kafka.bootstrap.servers": stack.bootstrap_servers, "subscribe": topic, **avro(stack)})
    assert source.schema()["value"].dataType.simpleString() == (
        "struct<id:bigint,gone:string,when:timestamp,price:decimal(9,2),tags:map<string,int>,kind:string,in:struct<x:float>>"
    )
    first, second, tombstone = (row[1] for row in ours(stack, {"subscribe": topic, **avro(stack)}))
    lacking = dict.fromkeys(("when", "price", "tags", "kind", "in"))
    assert first == {"id": 1, "gone": "x", **lacking}
    assert second == {**wide, "tags": [("a", 1)]}
    assert tombstone is None


def test_versions_that_no_type_holds_are_named(stack, make_topic, produce_avro):
    one, two = make_topic(), make_topic()
    for topic, kind, value in ((one, "int", 1), (two, "string", "x")):
        schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": kind}]}
        produce_avro(topic, json.dumps(schema), [{"id": value}])
    with pytest.raises(
        ConfigError, match=r"`value.id` is `int32` in one schema and `string` in another.*value\.schema"
    ):
        ours(stack, {"subscribe": f"{one},{two}", **avro(stack)})


def test_json_gets_its_type_from_the_newest_records(stack, make_topic):
    topic = make_topic()
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers})
    documents = [
        '{"a": 1, "b": "x"}',
        '{"a": 2.5, "c": [1, null]}',
        "null",
        '\n{"b": {"q": [1]},\n"n": null}',
        None,
        "{}",
    ]
    for document in documents:
        producer.produce(topic, document)
    producer.flush(30)
    options = {"subscribe": topic, "value.converter": "json"}
    source = KafkaSource({"kafka.bootstrap.servers": stack.bootstrap_servers, **options})
    assert source.schema()["value"].dataType.simpleString() == "struct<a:double,b:string,c:array<bigint>,n:string>"
    nothing = dict.fromkeys("abcn")
    assert [row[1] for row in ours(stack, options)] == [
        {**nothing, "a": 1.0, "b": "x"},
        {**nothing, "a": 2.5, "c": [1, None]},
        None,
        {**nothing, "b": '{"q":[1]}'},
        None,
        nothing,
    ]
    kind = {"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": True, "metadata": {}}]}
    fixed = {**options, "value.schema": json.dumps(kind)}
    with pytest.raises(
        DataError, match=rf"^{topic}-0@1: its value cannot be decoded \(`2.5` does not fit the type `int64`"
    ):
        ours(stack, fixed)
    found = [row[1] for row in ours(stack, {**fixed, "errors.tolerance": "all"})]
    assert found == [{"a": 1}, None, None, {"a": None}, None, {"a": None}]


def test_a_value_that_is_not_what_its_converter_reads_is_named_by_its_place(stack, make_topic, produce_avro):
    topic = make_topic()
    schema = (
        '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}, {"name": "s", "type": "string"}]}'
    )
    produce_avro(topic, schema, [{"id": 1, "s": "a"}, {"id": 2, "s": "b"}])
    (good, *_) = ours(stack, {"subscribe": topic})
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers})
    for value in (b"plain", good[1][:-1], good[1], b"\x00\x7f\xff\xff\xff\x02"):
        producer.produce(topic, value)
    producer.flush(30)
    with pytest.raises(DataError, match=rf"^{topic}-0@2: its value is not Avro in Confluent's wire format"):
        ours(stack, {"subscribe": topic, **avro(stack)})
    after = {"startingOffsets": json.dumps({topic: {"0": 3}})}
    with pytest.raises(DataError, match=rf"^{topic}-0@3: its value does not fit the schema it names"):
        ours(stack, {"subscribe": topic, **avro(stack), **after})
    found = ours(stack, {"subscribe": topic, **avro(stack, **{"errors.tolerance": "all"})})
    assert [None if row[1] is None else row[1]["id"] for row in found] == [1, 2, None, None, 1, None]


def test_text_is_text(stack, make_topic):
    topic = make_topic()
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers})
    for value in ("é", None, b"\xff", ""):
        producer.produce(topic, value, timestamp=1_700_000_000_000)
    producer.flush(30)
    assert [row[1] for row in ours(stack, {"subscribe": topic, "value.converter": "string"})] == [
        "é",
        None,
        "\ufffd",
        "",
    ]
