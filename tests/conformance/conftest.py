"""One connector run on given records: real broker, S3 server and registry; the job runs in this process."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from connecting import InProcess, Outcome, Rec, record_writer, stored
from penstock.loading import load
from penstock.loop import keep_running
from penstock.report import run_summary
from penstock.running import Running
from penstock.summary import CycleSummary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


@pytest.fixture(scope="session")
def write_records(stack) -> Iterator[Callable[[str, Iterable[Rec]], None]]:
    """Produce records: `write_records(topic, records)`."""
    with record_writer(stack) as write:
        yield write


@pytest.fixture
def describe(stack, bucket) -> Callable[..., dict[str, str]]:
    """The properties of a connector on the stack: `describe(topic, avro=True, **{"flush.size": "3"})`."""

    def build(topic: str, properties: Mapping[str, str | None], *, avro: bool = False) -> dict[str, str]:
        given = {
            "name": bucket,
            "connector.class": "io.confluent.connect.s3.S3SinkConnector",
            "topics": topic,
            "s3.bucket.name": bucket,
            "storage.class": "io.confluent.connect.s3.storage.S3Storage",
            "format.class": "avro" if avro else "json",
            "value.converter": "avro" if avro else "json",
            "flush.size": "1000",
            **{n: v for n, v in stack.as_json().items() if n in ("s3.region", "store.url") or n.startswith("aws.")},
            **({"value.converter.schema.registry.url": stack.schema_registry_url} if avro else {}),
            **({} if avro else {"value.converter.schemas.enable": "false"}),
            **properties,
        }
        return {key: value for key, value in given.items() if value is not None}

    return build


@pytest.fixture
def opened(stack) -> Callable[[Mapping[str, str]], Running]:
    """A connector that holds its state log, whose jobs run in this process."""

    def make(properties: Mapping[str, str]) -> Running:
        config, kafka = load(properties, {"bootstrap.servers": stack.bootstrap_servers}, None)
        return Running.open(config, kafka, InProcess(kafka))

    return make


@pytest.fixture
def connect(s3, bucket, make_topic, write_records, describe, opened) -> Callable[..., Outcome]:
    """Run a connector until it is done: `connect(records, {"flush.size": "3"})`."""

    def run(records: Iterable[Rec], properties: Mapping[str, str | None], topic: str | None = None) -> Outcome:
        records = list(records)
        name = topic or make_topic(max((r.partition for r in records), default=0) + 1)
        write_records(name, records)
        with opened(describe(name, properties, avro=any(r.schema is not None for r in records))) as running:
            committed = keep_running(running, threading.Event(), until_done=True)
            faults = [fault.message for fault in running.engine.faults.values()]
            still_open = sum(count for _, count in run_summary(running, CycleSummary()).open)
            return Outcome(stored(s3, bucket, name), faults, still_open, running.config.warnings, committed)

    return run
