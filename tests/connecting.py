"""Records and what produces them, a job that runs in this process, and what lies in a bucket afterwards."""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow.parquet as pq
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from penstock.job import Spec, run_share
from penstock.summary import CycleSummary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from penstock.dev.settings import StackInfo

CUSTOMER = {
    "title": "Customer",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "name": {"type": "string"}, "vip": {"type": "boolean"}},
    "required": ["id"],
}
"""The JSON Schema of what `serializers` makes."""


@dataclass(frozen=True)
class Rec:
    """A record to produce. `value`: a JSON value, raw bytes, or, with `schema`, an Avro value."""

    value: Any
    ts: int = 1_717_171_717_171
    schema: Any = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int = 0


@dataclass(frozen=True)
class Outcome:
    """What a run left in the bucket: object name without `topics/<topic>/` and extension -> its records."""

    objects: dict[str, list[Any]]
    faults: list[str]
    open: int
    warnings: tuple[str, ...] = ()
    committed: CycleSummary = field(default_factory=CycleSummary)


@dataclass
class InProcess:
    """A job without Spark: what a task does, here."""

    kafka: Any

    def __call__(self, plan: Any, config: Any, seq: int) -> list[Any]:
        return run_share(Spec(config, self.kafka, seq, plan.now_ms), plan.ranges)

    def cancel(self) -> None:
        """It ends by itself."""


@contextmanager
def record_writer(stack: StackInfo) -> Iterator[Callable[[str, Iterable[Rec]], None]]:
    """Produces records, the schemas of Avro values registered: `write(topic, records)`."""
    registry = SchemaRegistryClient({"url": stack.schema_registry_url})
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers, "linger.ms": 5, "log_level": 0})

    def write(topic: str, records: Iterable[Rec]) -> None:
        records = list(records)
        # Smaller schemas are older versions, in whatever order their records come.
        for text in sorted({_text(rec.schema) for rec in records if rec.schema is not None}, key=len):
            registry.register_schema(f"{topic}-value", Schema(text, "AVRO"))
        for rec in records:
            value = rec.value
            if rec.schema is not None and value is not None:
                serialize = AvroSerializer(registry, _text(rec.schema), conf={"auto.register.schemas": False})
                value = serialize(value, SerializationContext(topic, MessageField.VALUE))
            elif value is not None and not isinstance(value, bytes):
                value = json.dumps(value).encode()
            producer.produce(
                topic,
                value,
                rec.key,
                rec.partition,
                timestamp=rec.ts,
                headers=list(rec.headers) if rec.headers else None,
            )
        assert producer.flush(30) == 0

    yield write
    registry.__exit__()


def _text(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)


@contextmanager
def serializers(stack: StackInfo) -> Iterator[Callable[..., bytes]]:
    """Confluent's: `serialize("protobuf", topic, message)`, `serialize("json_schema", topic, customer)`."""
    client = SchemaRegistryClient({"url": stack.schema_registry_url})

    def call(kind: str, topic: str, value: Any, part: str = MessageField.VALUE) -> bytes:
        if kind == "protobuf":
            made = ProtobufSerializer(type(value), client, {"use.deprecated.format": False})
        else:
            made = JSONSerializer(json.dumps(CUSTOMER), client)
        return made(value, SerializationContext(topic, part))

    yield call
    client.__exit__()


def stored(s3, bucket: str, topic: str) -> dict[str, list[Any]]:
    """Every object that is no part of the state log, with its records."""
    found = {}
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    for each in (item for page in pages for item in page.get("Contents", [])):
        key = each["Key"]
        if key.startswith("_penstock/"):
            continue
        body = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        short = key.removeprefix(f"topics/{topic}/").replace(f"{topic}+", "").replace(topic, "TOPIC")
        if key.endswith(".avro"):
            found[short.removesuffix(".avro")] = list(fastavro.reader(io.BytesIO(body)))
        elif key.endswith(".parquet"):
            found[short.removesuffix(".parquet")] = pq.read_table(io.BytesIO(body)).to_pylist()
        elif key.endswith(".json"):
            found[short.removesuffix(".json")] = [json.loads(line) for line in body.splitlines()]
        else:
            found[short] = body.split(b"\n")
    return found
