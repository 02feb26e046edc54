"""Where the console commands find Kafka and the registry, and what they say when it is away."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError, KafkaUnavailable, PenstockError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from confluent_kafka import Consumer, KafkaException, Producer

_TIMEOUT_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Connection:
    """`kafka`: librdkafka's configuration. `registry`: converter options with `schema.registry.url`, if known."""

    servers: str
    kafka: dict[str, Any] = field(repr=False)
    registry: Mapping[str, str] = field(repr=False)


def connection(worker: Path | None, directory: Path) -> Connection:
    """By a worker's file, or by the embedded stack in `directory`.

    Raises:
        ConfigError: the file is wrong, or neither is there.
    """
    import os

    from penstock.config.load import kafka_properties
    from penstock.config.properties import of_mapping, read
    from penstock.config.variables import resolve
    from penstock.dev import stack
    from penstock.kafka.settings import KafkaSettings

    properties = None if worker is None else resolve(read(worker), os.environ)
    info = stack.load_info(directory) if properties is None else None
    if properties is None and info is None:
        msg = "no embedded stack runs here; start it with `penstock start`, or name a worker file with --worker"
        raise ConfigError([msg])
    embedded = None if info is None else info.as_json()
    given = kafka_properties(of_mapping({}, str(worker or directory)), properties, embedded)
    settings = KafkaSettings.parse({name: value.text for name, value in given.items()}, lambda name: given[name].where)
    prefix = "value.converter."
    registry = {n.removeprefix(prefix): v.text for n, v in (properties or {}).items() if n.startswith(prefix)}
    if embedded is not None:
        registry = {"schema.registry.url": embedded["schema.registry.url"]}
    return Connection(settings.bootstrap_servers, settings.librdkafka_config(), registry)


def kafka_failure(error: KafkaException, place: Connection) -> PenstockError:
    """A sentence for what librdkafka raised."""
    reason = error.args[0].str()
    return KafkaUnavailable(f"Kafka at {place.servers}: {reason}; check that it runs and that the login is right")


def topic_partitions(client: Producer | Consumer, topic: str, *, create: bool = False) -> tuple[int, ...]:
    """The partitions of a topic; empty where it does not exist, or is only made by the first record.

    `create`: ask so that a broker which may make topics makes it. Raises KafkaException.
    """
    import time

    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        found = client.list_topics(topic, timeout=_TIMEOUT_SECONDS).topics[topic]
        if found.partitions or not create or time.monotonic() > deadline:
            return tuple(sorted(found.partitions))
        time.sleep(0.1)
