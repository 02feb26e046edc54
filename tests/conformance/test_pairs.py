"""Every converter with Parquet's columns and block-GZIP's members: what goes in comes out (docs/formats.md)."""

from __future__ import annotations

import gzip
import io
import json

import pyarrow.parquet as pq
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass

from connecting import Rec
from penstock.converters.protobuf_files import protobuf_file

pytestmark = pytest.mark.stack

ROWS = [{"n": 1, "t": "x"}, {"n": 2, "t": None}]
AVRO = {
    "type": "record",
    "name": "r",
    "fields": [{"name": "n", "type": "int"}, {"name": "t", "type": ["null", "string"], "default": None}],
}
CONNECT = {
    "type": "struct",
    "fields": [
        {"field": "n", "type": "int32", "optional": False},
        {"field": "t", "type": "string", "optional": True},
    ],
}
JSON_SCHEMA = {
    "type": "object",
    "title": "R",
    "properties": {
        "n": {"type": "integer", "connect.index": 0},
        "t": {"oneOf": [{"type": "null"}, {"type": "string"}], "connect.index": 1},
    },
}
PROTO = 'syntax = "proto3"; message R { int32 n = 1; optional string t = 2; }'
TREE = {"type": "record", "name": "t", "fields": [{"name": "next", "type": ["null", "t"]}]}


@pytest.fixture
def produced(stack, topic):
    """(records, properties) of `ROWS` for a converter."""
    url = {"value.converter.schema.registry.url": stack.schema_registry_url, "value.converter.schemas.enable": None}
    client = SchemaRegistryClient({"url": stack.schema_registry_url})
    there = SerializationContext(topic, MessageField.VALUE)

    def make(converter):
        if converter == "avro":
            return [Rec(row, schema=AVRO) for row in ROWS], {}
        if converter == "protobuf":
            kind = GetMessageClass(protobuf_file(PROTO, {}).pool.FindMessageTypeByName("R"))
            write = ProtobufSerializer(kind, client, {"use.deprecated.format": False})
            sent = [kind(**{name: item for name, item in row.items() if item is not None}) for row in ROWS]
            return [Rec(write(each, there)) for each in sent], {"value.converter": "protobuf", **url}
        if converter == "json_schema":
            write = JSONSerializer(json.dumps(JSON_SCHEMA), client)
            return [Rec(write(row, there)) for row in ROWS], {"value.converter": "json_schema", **url}
        if converter == "json_envelope":
            both = [Rec({"schema": CONNECT, "payload": row}) for row in ROWS]
            return both, {"value.converter.schemas.enable": "true"}
        return [Rec(row) for row in ROWS], {}

    yield make
    client.__exit__()


@pytest.fixture
def body(s3, bucket):
    def read(end):
        listed = [each["Key"] for each in s3.list_objects_v2(Bucket=bucket, Prefix="topics/")["Contents"]]
        (key,) = [key for key in listed if key.endswith(end)]
        return s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    return read


@pytest.mark.parametrize("file_format", ["parquet", "block_gzip"])
@pytest.mark.parametrize("converter", ["avro", "protobuf", "json_schema", "json_envelope", "json"])
def test_records_of_every_converter(connect, topic, produced, body, converter, file_format):
    records, properties = produced(converter)
    outcome = connect(records, {"flush.size": "2", "format.class": file_format, **properties}, topic)
    assert outcome.faults == []
    if file_format == "parquet":
        assert pq.read_table(io.BytesIO(body(".snappy.parquet"))).to_pylist() == ROWS
    else:
        assert [json.loads(line) for line in gzip.decompress(body(".gz")).splitlines()] == ROWS
        assert json.loads(body(".index.json"))["chunks"][0]["num_records"] == 2


def test_a_schema_that_columns_cannot_hold_is_a_bad_record(connect, topic):
    outcome = connect([Rec({"next": None}, schema=TREE)], {"flush.size": "1", "format.class": "parquet"}, topic)
    assert outcome.objects == {}
    assert outcome.faults == [
        f"{topic}-0@0: its schema contains the record `t` within itself, which columns cannot hold"
    ]


def test_a_broken_payload_is_a_bad_record_and_the_others_are_written(connect, topic, stack, body):
    good = [Rec({"n": n, "t": None}, schema=AVRO) for n in range(2)]
    outcome = connect(good, {"flush.size": "10", "format.class": "avro"}, topic)
    assert outcome.faults == []
    client = SchemaRegistryClient({"url": stack.schema_registry_url})
    number = client.get_latest_version(f"{topic}-value").schema_id
    client.__exit__()
    wire = b"\x00" + number.to_bytes(4, "big")
    more = {
        "flush.size": "2",
        "format.class": "parquet",
        "errors.tolerance": "all",
        "errors.dir": "errors",
        "value.converter": "avro",
        "value.converter.schema.registry.url": stack.schema_registry_url,
        "value.converter.schemas.enable": None,
    }
    outcome = connect([Rec(wire + b"\x02"), Rec(wire + b"\x02\x00\x00")], more, topic)
    assert outcome.faults == []
    assert pq.read_table(io.BytesIO(body(".snappy.parquet"))).to_pylist() == [{"n": 0, "t": None}, {"n": 1, "t": None}]
