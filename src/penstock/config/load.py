"""Files to one `SinkConfig` and the Kafka client's properties: every mistake is found in one pass."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.config.declare import declarations
from penstock.config.framework import NOT_YET, WITHOUT_EFFECT, without_effect
from penstock.config.properties import Value
from penstock.config.sink import SinkConfig
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.config.declare import Property
    from penstock.config.properties import Properties

_OVERRIDE, _CONSUMER, _CONVERTER, _SPARK = "consumer.override.", "consumer.", "value.converter.", "spark."
_CLIENT = ("bootstrap.servers", "security.protocol", "sasl.", "ssl.", "client.", "request.timeout.ms")
_REGISTRY = "schema.registry.url"
_STORE = ("store.url", "aws.access.key.id", "aws.secret.access.key")


def is_worker(properties: Mapping[str, Value]) -> bool:
    """Whether a file is a worker's: it says where Kafka is, and names no connector."""
    return "bootstrap.servers" in properties and "connector.class" not in properties


def load_sink(
    connector: Properties, worker: Properties | None, embedded: Mapping[str, str] | None = None
) -> SinkConfig:
    """The configuration of a connector.

    `worker` gives the converters where the connector names none. `embedded` are the names of `penstock start --output
    json`; they stand in for a worker file and for what the connector does not say of its store.

    Raises:
        ConfigError: every mistake there is, in the order of the file.
    """
    reading = _Reading(_with_defaults(connector, worker, embedded), connector.file)
    config = reading.config()
    if reading.problems or config is None:
        raise ConfigError(reading.problems)
    return config


def kafka_properties(
    connector: Properties, worker: Properties | None, embedded: Mapping[str, str] | None = None
) -> dict[str, Value]:
    """Kafka's own client properties: the worker's, its `consumer.*`, the connector's `consumer.override.*`."""
    given = dict(worker.items()) if worker is not None else {}
    merged = {name: value for name, value in given.items() if name.startswith(_CLIENT)}
    if worker is None and embedded is not None:
        merged["bootstrap.servers"] = Value(embedded["bootstrap.servers"], "the embedded stack")
    merged |= _without(_CONSUMER, {name: value for name, value in given.items() if not name.startswith(_OVERRIDE)})
    merged |= _without(_OVERRIDE, connector)
    if "bootstrap.servers" not in merged:
        msg = (
            f"{connector.file}: nothing says where Kafka is; name a worker file with bootstrap.servers before the "
            "connector's, or start the embedded stack with `penstock start`"
        )
        raise ConfigError([msg])
    return merged


def _without(prefix: str, given: Mapping[str, Value]) -> dict[str, Value]:
    """What stands behind a prefix."""
    return {name.removeprefix(prefix): value for name, value in given.items() if name.startswith(prefix)}


def _with_defaults(
    connector: Properties, worker: Properties | None, embedded: Mapping[str, str] | None
) -> dict[str, Value]:
    given = dict(connector.items())
    if "value.converter" not in given:
        given |= {name: value for name, value in (worker or {}).items() if f"{name}.".startswith(_CONVERTER)}
    if worker is None and embedded is not None:
        place = "the embedded stack"
        given.setdefault("value.converter", Value("avro", place))
        given.setdefault(_CONVERTER + _REGISTRY, Value(embedded[_REGISTRY], place))
        if not any(name in given for name in _STORE):
            given |= {name: Value(embedded[name], place) for name in _STORE}
    return given


@dataclass(slots=True)
class _Reading:
    """One pass over a connector's properties that collects all problems."""

    given: Mapping[str, Value]
    file: str
    problems: list[str] = field(default_factory=list)

    def config(self) -> SinkConfig | None:
        """The configuration, unless there are problems."""
        declared = {
            name: (attribute, each)
            for attribute, each in declarations(SinkConfig).items()
            for name in (each.name, *each.aliases)
        }
        values: dict[str, Any] = {}
        for name, value in self.given.items():
            if name in declared:
                attribute, each = declared[name]
                if each.find(self.given) is not None:
                    self._parse(attribute, each, value, values)
            else:
                self._undeclared(name, value, tuple(declared))
        for attribute, each in declarations(SinkConfig).items():
            if each.required and each.find(self.given) is None and attribute not in values:
                self.problems.append(f"{self.file}: {each.name} must be set: {each.doc}")
        self._together(values)
        if self.problems:
            return None
        texts = {
            each.name: found[1].text
            for each in declarations(SinkConfig).values()
            if each.shapes and (found := each.find(self.given)) is not None
        }
        return SinkConfig(given=texts, converter_options=self._behind(_CONVERTER), spark=self._with(_SPARK), **values)

    def _parse(self, attribute: str, each: Property, value: Value, values: dict[str, Any]) -> None:
        try:
            parsed = each.kind.parse(value.text)
        except ValueError as error:
            self.problems.append(f"{value.where}: {each.name} {error}, got `{each.shown(value)}`")
            return
        if each.supported is not None and parsed not in each.supported:
            known = f"; so far it can be {each.supported_words}" if each.supported_words else ""
            self.problems.append(f"{value.where}: not supported yet: {each.name}=`{each.shown(value)}`{known}")
            return
        values[attribute] = parsed

    def _undeclared(self, name: str, value: Value, declared: tuple[str, ...]) -> None:
        if name in NOT_YET:
            if value.text.strip().lower() not in NOT_YET[name]:
                shown = "****" if "password" in name or "key" in name else value.shown
                self.problems.append(f"{value.where}: not supported yet: {name}=`{shown}`; take it out")
        elif name.startswith((_CONVERTER, _OVERRIDE, _SPARK)) or without_effect(name):
            return
        else:
            known = [*declared, *NOT_YET, *(each for each in WITHOUT_EFFECT if not each.endswith("."))]
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
            hint = f"; did you mean `{near[0]}`?" if near else "; docs/configuration.md lists all"
            self.problems.append(f"{value.where}: unknown property `{name}`{hint}")

    def _together(self, values: Mapping[str, Any]) -> None:
        """Rules between properties (reference s3-sink-connector 1.8, and our own)."""
        if ("topics" in values) == ("topics_regex" in values) and not any("topics" in p for p in self.problems):
            which = "not both" if "topics" in values else "neither is"
            self.problems.append(f"{self.file}: one of topics and topics.regex must be set, {which}")
        keys = [bool(values.get("access_key_id")), bool(values.get("secret_access_key"))]
        if any(keys) and not all(keys):
            self.problems.append(f"{self.file}: aws.access.key.id and aws.secret.access.key go together; set both")
        schemas = self.given.get("value.converter.schemas.enable")
        if values.get("value_converter") == "json" and (schemas is None or schemas.text.strip().lower() != "false"):
            where = self.file if schemas is None else schemas.where
            self.problems.append(
                f"{where}: not supported yet: JSON with schemas; set value.converter.schemas.enable=false, "
                "which is not Connect's default"
            )

    def _behind(self, prefix: str) -> dict[str, str]:
        return {name.removeprefix(prefix): value.text for name, value in self.given.items() if name.startswith(prefix)}

    def _with(self, prefix: str) -> dict[str, str]:
        return {name: value.text for name, value in self.given.items() if name.startswith(prefix)}
