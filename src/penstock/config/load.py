"""Files to one `SinkConfig` and the Kafka client's properties: every mistake is found in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.config import rules, store_rules
from penstock.config.accepted import is_accepted
from penstock.config.classes import CONVERTERS
from penstock.config.declare import arguments, declarations
from penstock.config.foreign import is_foreign, understood
from penstock.config.kinds import Named
from penstock.config.options import KEY_PREFIX as KEY_OPTION
from penstock.config.options import PREFIX as OPTION
from penstock.config.options import REGISTRY, check_option_names, read_options
from penstock.config.properties import Value
from penstock.config.reading import Findings, check_dependence, read_value, unknown
from penstock.config.sink import OWN_OPTIONS, SHAPING_OPTIONS, SinkConfig
from penstock.config.store import PROVIDER_OPTIONS
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from penstock.config.properties import Properties

_BROKERS = "bootstrap.servers"
_OVERRIDE, _CONSUMER, _SPARK = "consumer.override.", "consumer.", "spark."
_CONVERTER = "value.converter"
_KEY_CONVERTER = "key.converter"
_PROVIDER = "s3.credentials.provider.class"
_CLIENT = (_BROKERS, "security.protocol", "sasl.", "ssl.", "client.", "request.timeout.ms")
_KEYS = ("aws.access.key.id", "aws.secret.access.key")
_STACK = "the embedded stack"
_DECLARED = tuple(declarations(SinkConfig).values())
_KNOWN = frozenset(name for each in _DECLARED for name in (each.name, *each.aliases)) | {"transforms", "predicates"}


def is_worker(properties: Mapping[str, Value]) -> bool:
    """Whether a file is a worker's: it says where Kafka is, and names no connector."""
    return _BROKERS in properties and "connector.class" not in properties


def load_sink(
    connector: Properties, worker: Properties | None, embedded: Mapping[str, str] | None = None
) -> SinkConfig:
    """The configuration of a connector.

    `worker` gives the converter where the connector names none, and `spark.*`. `embedded` are the names of `penstock
    start --output json`; where there is no worker file they stand in for it, and for what the connector does not say of
    its store.

    Raises:
        ConfigError: every mistake of both files, in their order.
    """
    findings = Findings()
    connector = understood(connector, worker, findings) if is_foreign(connector) else connector
    given = _with_defaults(connector, worker, embedded)
    order = tuple(dict.fromkeys((*connector, *(worker or ()), *given)))
    parsed = {each.name: read_value(each, given, connector.file, findings) for each in _DECLARED}
    for each in _DECLARED:
        check_dependence(each, parsed, given, findings)
    options = read_options(parsed[_CONVERTER], given, connector.file, findings) if parsed[_CONVERTER] else {}
    key_options = _key_converter(parsed, given, connector.file, findings)
    rules.check(parsed, given, connector.file, findings)
    _check_names(given, findings, own_provider=":" in (parsed[_PROVIDER] or ""))
    _check_worker(worker, findings)
    if findings.problems:
        raise ConfigError(findings.sentences(order))
    texts = {each.name: found[1].text for each in _shaping() if (found := each.find(given)) is not None}
    texts |= {name: value.text for name, value in given.items() if name.startswith(OWN_OPTIONS)}
    texts |= {name: given[name].text.strip() for name in SHAPING_OPTIONS if name in given}
    return SinkConfig(
        **arguments(SinkConfig, {name: parsed[each.name] for name, each in declarations(SinkConfig).items()}),
        given=texts,
        converter_options=options,
        key_converter_options=key_options,
        provider_options=store_rules.provider_options(parsed, given),
        spark={name: value.text for name, value in given.items() if name.startswith(_SPARK)},
        places={name: value.where for name, value in given.items() if name.startswith("transform.")},
        warnings=(*connector.warnings, *(worker.warnings if worker else ()), *findings.oddities(order)),
    )


def _key_converter(parsed: dict[str, Any], given: Mapping[str, Value], file: str, findings: Findings) -> dict[str, str]:
    """Replace the key converter by its short name and read its options, where keys are stored at all."""
    if not (parsed["store.kafka.keys"] or parsed["store.envelope"]):
        return {}
    text = parsed[_KEY_CONVERTER] or "string"
    try:
        parsed[_KEY_CONVERTER] = Named(CONVERTERS).parse(text)
    except ValueError as error:
        findings.problem(_KEY_CONVERTER, f"{given[_KEY_CONVERTER].where}: {_KEY_CONVERTER} {error}, got `{text}`")
        return {}
    return read_options(parsed[_KEY_CONVERTER], given, file, findings, KEY_OPTION)


def kafka_properties(
    connector: Properties, worker: Properties | None, embedded: Mapping[str, str] | None = None
) -> dict[str, Value]:
    """Kafka's own client properties: the worker's, its `consumer.*`, the connector's `consumer.override.*`."""
    given = dict(worker.items()) if worker is not None else {}
    merged = {name: value for name, value in given.items() if name.startswith(_CLIENT)}
    if worker is None and embedded is not None:
        merged[_BROKERS] = Value(embedded[_BROKERS], _STACK)
    merged |= _behind(_CONSUMER, {name: value for name, value in given.items() if not name.startswith(_OVERRIDE)})
    merged |= _behind(_OVERRIDE, connector)
    if _BROKERS not in merged:
        msg = (
            f"{connector.file}: nothing says where Kafka is; name a worker file with bootstrap.servers before the "
            "connector's, or start the embedded stack with `penstock start`"
        )
        raise ConfigError([msg])
    return merged


def _behind(prefix: str, given: Mapping[str, Value]) -> dict[str, Value]:
    """What stands behind a prefix."""
    return {name.removeprefix(prefix): value for name, value in given.items() if name.startswith(prefix)}


def store_of_stack(connector: Container[str], embedded: Mapping[str, str]) -> dict[str, str]:
    """What the stack says of its store where the connector does not; its keys are for no other store."""
    names = ["s3.bucket.name", "s3.region"]
    if "store.url" not in connector:
        own_keys = any(name in connector for name in _KEYS)
        names += ["store.url"] if own_keys else ["store.url", *_KEYS]
    return {name: embedded[name] for name in names if name in embedded and name not in connector}


def _shaping() -> list[Any]:
    return [each for each in declarations(SinkConfig).values() if each.shapes]


def _with_defaults(
    connector: Properties, worker: Properties | None, embedded: Mapping[str, str] | None
) -> dict[str, Value]:
    """What the connector says, and after it what only the worker or the stack does.

    A connector that names a converter of its own gets no options from the worker, as in Kafka Connect.
    """
    defaults: dict[str, Value] = {}
    if worker is not None:
        defaults = {name: value for name, value in worker.items() if name.startswith(_SPARK)}
        if _CONVERTER not in connector:
            defaults |= {name: value for name, value in worker.items() if f"{name}.".startswith(OPTION)}
        if _KEY_CONVERTER not in connector:
            defaults |= {name: value for name, value in worker.items() if f"{name}.".startswith(KEY_OPTION)}
    elif embedded is not None:
        defaults = {name: Value(text, _STACK) for name, text in store_of_stack(connector, embedded).items()}
        defaults |= {_CONVERTER: Value("avro", _STACK), OPTION + REGISTRY: Value(embedded[REGISTRY], _STACK)}
    return {**connector, **{name: value for name, value in defaults.items() if name not in connector}}


def _check_names(given: Mapping[str, Value], findings: Findings, *, own_provider: bool) -> None:
    """Unknown names are mistakes, and so are those that belong in the worker file.

    `own_provider`: whether what stands behind the prefix of credentials providers is for a class of the user's own.
    """
    check_option_names(given, findings)
    passed_on = (OPTION, KEY_OPTION, *OWN_OPTIONS, _OVERRIDE, _SPARK, *((PROVIDER_OPTIONS,) if own_provider else ()))
    for name, value in given.items():
        if name in _KNOWN or name.startswith(passed_on) or is_accepted(name):
            continue
        if name.startswith((*_CLIENT, _CONSUMER)):
            override = _OVERRIDE + name.removeprefix(_CONSUMER)
            findings.problem(name, f"{value.where}: {name} belongs in the worker file; here write {override}")
        else:
            findings.problem(name, unknown(name, value, _KNOWN))


def _check_worker(worker: Properties | None, findings: Findings) -> None:
    """Unknown names of a worker file; its Kafka settings are `KafkaSettings`' to check."""
    for name, value in (worker or {}).items():
        if not (
            name in (_CONVERTER, _KEY_CONVERTER)
            or name.startswith((OPTION, KEY_OPTION, _CONSUMER, _SPARK, *_CLIENT))
            or is_accepted(name)
        ):
            findings.problem(name, unknown(name, value, (_CONVERTER, "key.converter", _BROKERS, "security.protocol")))
