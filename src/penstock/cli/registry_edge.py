"""Avro values of the console commands through the Schema Registry, in Confluent's wire format."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import fastavro
import httpx2 as httpx
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from penstock.cli.avro_json import AvroSchema, parse_schema
from penstock.errors import PenstockError, RegistryUnavailable, UsageError
from penstock.fields.avro import depth_guard
from penstock.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.cli.kafka_edge import Connection

_MAGIC = b"\x00"


def registry_of(place: Connection) -> Registry:
    """The registry of a connection. Raises ConfigError where none is named."""
    return Registry.of(place.registry, "value.converter")


def avro_writer(
    place: Connection, topic: str, part: str, schema: str | None
) -> tuple[AvroSchema, Callable[[object], bytes | None]]:
    """The schema (registered under `<topic>-<part>`, or the latest there) and a function that frames a value."""
    client = SchemaRegistryClient(dict(_config(registry_of(place))))
    subject = f"{topic}-{part}"
    try:
        if schema is None:
            latest = client.get_latest_version(subject)
            text, schema_id = str(latest.schema.schema_str), latest.schema_id
        else:
            text, schema_id = schema, _registered(client, subject, schema, part)
    except SchemaRegistryError as error:
        msg = f"the Schema Registry refuses subject `{subject}`: {error.error_message}; give --{part}-schema that fits"
        raise PenstockError(msg) from error
    except (httpx.HTTPError, OSError) as error:
        url = place.registry["schema.registry.url"].rpartition("@")[2]
        msg = f"the Schema Registry at {url} does not answer ({type(error).__name__}); check that it runs"
        raise RegistryUnavailable(msg) from error
    parsed = parse_schema(text)
    head = _MAGIC + int(schema_id or 0).to_bytes(4, "big")

    def write(value: object) -> bytes | None:
        stream = io.BytesIO()
        stream.write(head)
        try:
            fastavro.schemaless_writer(stream, parsed.parsed, value)
        except (ValueError, TypeError, OverflowError) as error:
            msg = f"does not fit the schema: {error}"
            raise ValueError(msg) from error
        return stream.getvalue()

    return parsed, write


def _registered(client: SchemaRegistryClient, subject: str, schema: str, part: str) -> int:
    try:
        parse_schema(schema)
    except ValueError as error:
        msg = f"--{part}-schema is {error}"
        raise UsageError(msg) from None
    return client.register_schema(subject, Schema(schema, "AVRO"))


def _config(registry: Registry) -> dict[str, Any]:
    login = {"basic.auth.user.info": registry.login} if registry.login else {}
    return {"url": registry.url, "max.retries": 2, "timeout": 10, **registry.tls, **login}


def avro_reader(place: Connection, topic: str) -> Callable[[bytes], Any]:
    """A function that reads a framed value; its schemas are looked up once."""
    registry, parsed, guards = registry_of(place), {}, {}

    def read(value: bytes) -> Any:  # noqa: ANN401 - Avro data
        schema_id = int.from_bytes(value[1:5], "big")
        if schema_id not in parsed:
            found = registry.schema(schema_id, f"{topic}-value") if value[:1] == _MAGIC else None
            if found is None:
                msg = f"is no Avro value of a schema in the registry (it begins with `{value[:5].hex(' ')}`)"
                raise PenstockError(msg)
            parsed[schema_id] = parse_schema(found.text).parsed
            guards[schema_id] = depth_guard(json.loads(found.text))
        try:
            guards[schema_id](value[5:])
        except ValueError as error:
            msg = f"does not fit its schema: {error}"
            raise PenstockError(msg) from error
        return fastavro.schemaless_reader(io.BytesIO(value[5:]), parsed[schema_id], None)

    return read
