"""Our development registry against the real client."""

from __future__ import annotations

import uuid

import pytest
import requests
from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
    ServerConfig,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

ONE = '{"type":"record","name":"r","fields":[{"name":"f1","type":"string"}]}'
TWO = '{"type":"record","name":"r","fields":[{"name":"f1","type":"string"},{"name":"f2","type":"int","default":0}]}'
BAD = '{"type":"record","name":"r","fields":[{"name":"f1","type":"int"}]}'


@pytest.fixture
def client(stack):
    with SchemaRegistryClient({"url": stack.schema_registry_url}) as opened:
        yield opened


@pytest.fixture
def subject():
    return f"subject/{uuid.uuid4().hex} value"


def refused(code):
    return pytest.raises(SchemaRegistryError, match=f"SR code {code}")


def test_register_look_up_and_read_back(client, subject):
    schema_id = client.register_schema(subject, Schema(ONE, "AVRO"))
    assert client.register_schema(subject, Schema(ONE.replace(",", " , "), "AVRO")) == schema_id
    assert client.get_schema(schema_id).schema_str == ONE
    assert subject in client.get_subjects()
    assert client.register_schema(subject, Schema(TWO, "AVRO")) != schema_id
    assert client.get_versions(subject) == [1, 2]
    latest = client.get_latest_version(subject)
    assert (latest.subject, latest.version, latest.schema.schema_str) == (subject, 2, TWO)
    assert client.lookup_schema(subject, Schema(ONE, "AVRO")).version == 1
    assert client.get_version(subject, 1).schema_id == schema_id


def test_refusals_have_confluents_codes(client, subject):
    with refused(40401):
        client.get_versions(subject)
    with refused(40403):
        client.get_schema(2_000_000)
    with refused(42201):
        client.register_schema(subject, Schema('{"type":"nosuch"}', "AVRO"))
    client.register_schema(subject, Schema(ONE, "AVRO"))
    with refused(40402):
        client.get_version(subject, 9)
    with refused(40403):
        client.lookup_schema(subject, Schema(TWO, "AVRO"))
    with refused(409):
        client.register_schema(subject, Schema(BAD, "AVRO"))
    with refused(42203):
        client.set_compatibility(subject, "SOMETIMES")
    with refused(40408):
        client.get_compatibility(subject)


def test_compatibility_is_answered_and_levels_are_kept(client, subject):
    client.register_schema(subject, Schema(ONE, "AVRO"))
    assert client.test_compatibility(subject, Schema(TWO, "AVRO"))
    assert not client.test_compatibility(subject, Schema(BAD, "AVRO"))
    client.set_config(subject, ServerConfig(compatibility=ConfigCompatibilityLevel.NONE))
    assert client.get_compatibility(subject) == "NONE"
    assert client.test_compatibility(subject, Schema(BAD, "AVRO"), version=1)
    assert client.get_compatibility() == "BACKWARD"


def test_a_verbose_question_gets_the_reasons_and_the_content_type_is_confluents(stack, client, subject):
    client.register_schema(subject, Schema(ONE, "AVRO"))
    url = f"{stack.schema_registry_url}/compatibility/subjects/{requests.utils.quote(subject, safe='')}/versions/latest"
    answer = requests.post(url, params={"verbose": "true"}, json={"schema": BAD}, timeout=10)
    assert answer.headers["Content-Type"] == "application/vnd.schemaregistry.v1+json"
    assert answer.json()["is_compatible"] is False
    assert "/f1" in answer.json()["messages"][0]


def test_deleted_versions_are_gone_but_their_ids_still_resolve(stack, client, subject):
    schema_id = client.register_schema(subject, Schema(ONE, "AVRO"))
    client.register_schema(subject, Schema(TWO, "AVRO"))
    assert client.delete_version(subject, 1) == 1
    assert client.get_versions(subject) == [2]
    assert client.delete_subject(subject) == [2]
    assert subject not in client.get_subjects()
    with SchemaRegistryClient({"url": stack.schema_registry_url}) as without_cache:
        assert without_cache.get_schema(schema_id).schema_str == ONE


def test_the_avro_serializer_round_trips_and_uses_the_wire_format(client):
    topic = f"topic-{uuid.uuid4().hex}"
    context = SerializationContext(topic, MessageField.VALUE)
    data = AvroSerializer(client, ONE)({"f1": "value1"}, context)
    schema_id = client.get_latest_version(f"{topic}-value").schema_id
    assert data == b"\0" + schema_id.to_bytes(4, "big") + b"\x0cvalue1"
    assert AvroDeserializer(client)(data, context) == {"f1": "value1"}


def test_references_and_other_kinds_come_back_as_they_were_sent(client, subject):
    inner = '{"type":"record","name":"n.I","fields":[{"name":"x","type":"int"}]}'
    client.register_schema(f"{subject}-inner", Schema(inner, "AVRO"))
    outer = '{"type":"record","name":"n.O","fields":[{"name":"i","type":"n.I"}]}'
    references = [SchemaReference("n.I", f"{subject}-inner", 1)]
    outer_id = client.register_schema(subject, Schema(outer, "AVRO", references))
    assert client.get_schema(outer_id).references == references
    json_id = client.register_schema(f"{subject}-json", Schema('{"type":"object"}', "JSON"))
    assert client.get_schema(json_id).schema_type == "JSON"
