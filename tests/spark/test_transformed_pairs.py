"""A query over every converter into every structured format; and keys, schemas and errors around it."""

from __future__ import annotations

import gzip
import json

import pytest
from confluent_kafka import Consumer

from connecting import Rec, serializers
from penstock.errors import ConfigError
from penstock.loading import load
from penstock.pipeline import check
from protobuf_orders import types

pytestmark = [pytest.mark.spark, pytest.mark.stack]

PEOPLE = [{"id": n, "name": f"Name {n}", "vip": n % 2 == 0} for n in range(6)]
PERSON = {
    "type": "record",
    "name": "Person",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}, {"name": "vip", "type": "boolean"}],
}
MESSAGE = 'syntax = "proto3"; package shop; message Person { int64 id = 1; string name = 2; bool vip = 3; }'
QUERY = "SELECT id * 2 AS twice, upper(name) AS name, _offset AS at FROM records WHERE NOT vip"
WANTED = [{"twice": 2 * n, "name": f"NAME {n}", "at": n} for n in (1, 3, 5)]


@pytest.fixture(scope="module")
def serialize(stack):
    with serializers(stack) as call:
        yield call


@pytest.fixture
def people(serialize, write_records, connector):
    """Produce them with a converter's serializer; what a connector that reads them says."""
    person = types(MESSAGE)("shop.Person")

    def produce(converter):
        rows = PEOPLE
        if converter == "protobuf":
            rows = [serialize("protobuf", connector.topic, person(**row)) for row in PEOPLE]
        elif converter == "json_schema":
            rows = [serialize("json_schema", connector.topic, row) for row in PEOPLE]
        schema = PERSON if converter == "avro" else None
        keys = {"key": b"key", "headers": (("h", b"1"),)}
        write_records(connector.topic, [Rec(row, 1_700_000_000_000 + n, schema, **keys) for n, row in enumerate(rows)])
        return read_by(connector, converter)

    return produce


def read_by(connector, converter):
    if converter == "json":
        return {"flush.size": "3"}
    url = {"value.converter.schema.registry.url": connector.stack.schema_registry_url}
    return {"value.converter": converter, "value.converter.schemas.enable": None, "flush.size": "3", **url}


@pytest.mark.parametrize("file_format", ["json", "avro", "parquet"])
@pytest.mark.parametrize("converter", ["json", "avro", "protobuf", "json_schema"])
def test_a_result_is_the_same_whatever_values_were_and_become(converter, file_format, people, connector):
    given = {"transform.sql": QUERY, "format.class": file_format, "parquet.codec": "none", **people(converter)}
    if file_format != "parquet":
        del given["parquet.codec"]
    assert connector.run(given) == []
    assert list(connector.objects().values()) == [WANTED]


def test_a_result_has_columns_so_that_raw_bytes_are_refused_and_block_gzip_holds_json(people, connector, s3):
    given = {"transform.sql": QUERY, **people("json")}
    config, _ = load(connector.properties({**given, "format.class": "bytes"}), {"bootstrap.servers": "k:9092"}, None)
    with pytest.raises(
        ConfigError, match=r"transform\.sql gives columns, .* set format\.class to avro, json or parquet"
    ):
        check(config)
    assert connector.run({**given, "format.class": "block_gzip"}) == []
    listed = s3.list_objects_v2(Bucket=connector.bucket)["Contents"]
    (key,) = [each["Key"] for each in listed if each["Key"].endswith(".gz")]
    body = s3.get_object(Bucket=connector.bucket, Key=key)["Body"].read()
    assert [json.loads(line) for line in gzip.decompress(body).splitlines()] == WANTED


def test_an_envelope_has_the_result_beside_what_kafka_had(people, connector):
    given = {"transform.sql": QUERY, "format.class": "json", "store.envelope": "true", **people("avro")}
    assert connector.run(given) == []
    ((name, rows),) = connector.objects().items()
    assert name == "partition=0/0+0000000001"
    assert [row["value"] for row in rows] == WANTED
    assert [(row["offset"], row["timestamp"], row["topic"]) for row in rows] == [
        (n, 1_700_000_000_000 + n, connector.topic) for n in (1, 3, 5)
    ]


def test_keys_and_headers_are_those_of_the_records_that_are_kept(people, connector):
    companions = {"store.kafka.keys": "true", "keys.format.class": "bytes", "store.kafka.headers": "true"}
    companions |= {"headers.format.class": "json", "key.converter": "bytes"}
    assert connector.run({"transform.sql": QUERY, **companions, **people("avro")}) == []
    found = connector.objects()
    kinds = {name.partition(".")[2].removesuffix(".bin"): rows for name, rows in found.items()}
    assert kinds[""] == WANTED
    assert [row for row in kinds["keys"] if row] == [b"key"] * 3
    assert len(kinds["headers"]) == 3


@pytest.mark.parametrize("rule", ["NONE", "BACKWARD", "UNION"])
def test_a_field_that_comes_goes_through_the_rules_of_schemas(rule, write_records, connector):
    """Values of two versions in turn: the result has the new field from the version on that brought it."""
    second = {**PERSON, "fields": [*PERSON["fields"], {"name": "city", "type": ["null", "string"], "default": None}]}
    given = read_by(connector, "avro")
    given |= {"transform.sql": "SELECT * FROM records", "format.class": "avro", "schema.compatibility": rule}
    given["flush.size"] = "2"
    write_records(connector.topic, [Rec(PEOPLE[0], schema=PERSON)])
    with connector.opened(given) as running:
        running.cycle(running.ends(), thorough=True)
        later = [Rec({**row, "city": "x"}, schema=second) for row in PEOPLE[1:3]]
        write_records(connector.topic, [*later, *(Rec(row, schema=PERSON) for row in PEOPLE[3:6])])
        while running.cycle(running.ends(), thorough=True) is not None:
            pass
    rows = [row for rows in connector.objects().values() for row in rows]
    assert [row["id"] for row in rows] == list(range(6))
    assert [row.get("city") for row in rows] == [None, "x", "x", None, None, None]


def test_what_a_query_fails_on_goes_to_the_dead_letter_topic_as_it_was(make_topic, connector):
    connector.produce(PEOPLE)
    letters = make_topic()
    rules = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": letters, "flush.size": "5"}
    rules |= {"errors.deadletterqueue.context.headers.enable": "true"}
    assert connector.run({"transform.sql": "SELECT id, 10 div (id - 2) AS d FROM records", **rules}) == []
    (rows,) = connector.objects().values()
    assert [row["id"] for row in rows] == [0, 1, 3, 4, 5]
    consumer = Consumer(
        {
            "bootstrap.servers": connector.stack.bootstrap_servers,
            "group.id": "letters",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe([letters])
    letter = consumer.poll(60)
    consumer.close()
    assert (letter.key(), json.loads(letter.value())) == (b"k2", PEOPLE[2])
    headers = dict(letter.headers())
    assert headers["__connect.errors.topic"] == connector.topic.encode()
    assert headers["__connect.errors.offset"] == b"2"
    assert headers["__connect.errors.stage"] == b"TRANSFORMATION"
    assert b"Division by zero" in headers["__connect.errors.exception.message"]
