"""A connector's file, a worker's file and the embedded stack to what a sink is made from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from penstock.config.load import kafka_properties, load_sink
from penstock.config.properties import Properties, of_mapping, read
from penstock.config.variables import resolve
from penstock.dev import stack
from penstock.errors import ConfigError
from penstock.kafka.settings import KafkaSettings

if TYPE_CHECKING:
    from penstock.config import SinkConfig

Source = str | Path | Properties | Mapping[str, str]
DEFAULT_DIRECTORY = Path("~/.penstock")


def load(
    connector: Source, worker: Source | None = None, directory: Path | None = None
) -> tuple[SinkConfig, KafkaSettings]:
    """Everything that can be known without asking anyone.

    Raises:
        ConfigError: every mistake of both files at once.
    """
    sink = _properties(connector, "connector")
    workers = None if worker is None else _properties(worker, "worker")
    embedded = None if workers is not None else _embedded(directory)
    problems: list[str] = []
    config = settings = None
    try:
        config = load_sink(sink, workers, embedded)
    except ConfigError as error:
        problems += error.problems
    try:
        given = kafka_properties(sink, workers, embedded)
        settings = KafkaSettings.parse(
            {name: value.text for name, value in given.items()},
            lambda name: given[name].where if name in given else "",
            {name: value.written for name, value in given.items() if value.written is not None},
        )
    except ConfigError as error:
        problems += error.problems
    if config is None or settings is None:
        raise ConfigError(problems)
    return config, settings


def _properties(source: Source, file: str) -> Properties:
    if isinstance(source, Properties):
        return resolve(source, os.environ)
    if isinstance(source, Mapping):
        return resolve(of_mapping(cast("Mapping[str, str]", source), file), os.environ)
    return resolve(read(source), os.environ)


def _embedded(directory: Path | None) -> dict[str, str] | None:
    info = stack.load_info((directory or DEFAULT_DIRECTORY).expanduser().absolute())
    return None if info is None else info.as_json()
