"""The options of `penstock.kafka`: Spark's own names first, ours beside them; every mistake is found in one pass."""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from penstock.config.classes import CONVERTERS
from penstock.config.declare import Property
from penstock.config.kinds import LONG_MAX, Bool, Choice, Int, Named, Text, Topics
from penstock.config.options import PREFIX, check_option_names, read_options
from penstock.config.properties import Value
from penstock.config.reading import Findings, read_value
from penstock.config.topic_pattern import TopicPattern
from penstock.errors import ConfigError
from penstock.kafka.settings import KafkaSettings
from penstock.sources.positions import EARLIEST, LATEST, AtOffsets, AtTimes, Everywhere, parse_assignment, parse_offsets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.model import TopicPartition
    from penstock.sources.positions import Place

FORMAT = "penstock.kafka"
Mode = Literal["either", "batch", "stream"]

_KAFKA = "kafka."
_DURATION = re.compile(r"([0-9]+)\s*(ms|s|m|min|h|d)?")
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, None: 1}


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time as Spark writes it, in milliseconds."""

    label: str = "duration"
    rule: str = "a length of time like `15m`, `30s` or `500ms`"

    def parse(self, text: str) -> int:
        """The milliseconds. Raises ValueError."""
        match = _DURATION.fullmatch(text.strip().lower())
        if match is None:
            msg = f"must be {self.rule}"
            raise ValueError(msg)
        return int(match[1]) * _UNITS[match[2]]


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a function reads that raises ValueError("must be ...")."""

    parse: Any
    rule: str
    label: str = "json"


_TIME = Int(0, LONG_MAX)
_COUNT = Int(1, LONG_MAX)
_TIMES = Parsed(lambda text: AtTimes(times=parse_offsets(text)), 'JSON like `{"topic": {"0": 23, "1": -2}}`')


def _place(text: str) -> Place:
    """`earliest`, `latest` or an offset for each topic-partition."""
    word = text.strip().lower()
    if word in ("earliest", "latest"):
        return Everywhere(EARLIEST if word == "earliest" else LATEST)
    try:
        return AtOffsets(parse_offsets(text))
    except ValueError as error:
        msg = f"must be earliest, latest or {str(error).removeprefix('must be ')}"
        raise ValueError(msg) from None


_PLACE = Parsed(_place, 'earliest, latest or JSON like `{"topic": {"0": 23, "1": -2}}`')
CONVERTER_NAMES = ("avro", "protobuf", "json_schema", "json", "string", "bytes")
"""Those of `penstock.converters`, which takes long to import."""
_BATCH, _STREAM = "batch", "stream"

OPTIONS: tuple[tuple[Property, str], ...] = (
    (Property(name="subscribe", kind=Topics(), doc="Topics to read."), ""),
    (Property(name="subscribePattern", kind=TopicPattern(), doc="Topics whose whole name matches are read."), ""),
    (
        Property(
            name="assign",
            kind=Parsed(parse_assignment, 'JSON like `{"topic": [0, 1]}`'),
            doc="Topic-partitions to read. Exactly one of these three options must be given.",
        ),
        "",
    ),
    (
        Property(
            name="startingOffsets",
            kind=_PLACE,
            doc="Where to begin; -2 is earliest, -1 latest. Without it a batch begins at the earliest offset, a stream "
            "at the latest.",
        ),
        "",
    ),
    (Property(name="endingOffsets", kind=_PLACE, doc="Where to end; latest without it."), _BATCH),
    (Property(name="startingTimestamp", kind=_TIME, doc="Begin at the first record of that millisecond or later."), ""),
    (Property(name="endingTimestamp", kind=_TIME, doc="End before the first record of it or later."), _BATCH),
    (
        Property(name="startingOffsetsByTimestamp", kind=_TIMES, doc="The same, a time for each topic-partition."),
        "",
    ),
    (Property(name="endingOffsetsByTimestamp", kind=_TIMES, doc="The same, a time for each."), _BATCH),
    (
        Property(
            name="startingOffsetsByTimestampStrategy",
            kind=Choice(("error", "latest"), any_case=True),
            default="error",
            doc="What to do where no record is as late as the starting time.",
        ),
        "",
    ),
    (
        Property(
            name="failOnDataLoss",
            kind=Bool(),
            default="true",
            doc="Whether offsets or topics that Kafka no longer has are an error; else they are passed over.",
        ),
        "",
    ),
    (Property(name="includeHeaders", kind=Bool(), default="false", doc="Whether there is a column `headers`."), ""),
    (Property(name="minPartitions", kind=_COUNT, doc="Read with at least about so many Spark partitions."), ""),
    (Property(name="maxRecordsPerPartition", kind=_COUNT, doc="Most offsets of one Spark partition."), ""),
    (Property(name="maxOffsetsPerTrigger", kind=_COUNT, doc="Most offsets of one micro-batch."), _STREAM),
    (Property(name="minOffsetsPerTrigger", kind=_COUNT, doc="A micro-batch waits for so many offsets,"), _STREAM),
    (Property(name="maxTriggerDelay", kind=Duration(), default="15m", doc="or until so long has passed."), _STREAM),
    (
        Property(
            name="value.converter",
            kind=Named(CONVERTERS),
            default="bytes",
            supported=CONVERTER_NAMES,
            origin="Connect",
            doc="How `value` is decoded; its options follow as `value.converter.*`. Without it, `value` is binary.",
        ),
        "",
    ),
    (
        Property(
            name="value.schema",
            kind=Text(),
            origin="Penstock",
            doc="The type of `value`, as the JSON of a Spark type (`schema.json()`), where it is not to be found out.",
        ),
        "",
    ),
    (
        Property(
            name="value.sample.records",
            kind=_COUNT,
            default="1000",
            origin="Penstock",
            doc="How many records of each topic-partition are looked at to find the type of JSON values.",
        ),
        "",
    ),
    (
        Property(
            name="errors.tolerance",
            kind=Choice(("none", "all")),
            default="none",
            origin="Connect",
            doc="What a value that cannot be decoded is: the end of the query, or null.",
        ),
        "",
    ),
)
"""Each option, and the one kind of query that has it ("" for both)."""

_NO_POLLING = "there is no consumer that polls"
WITHOUT_EFFECT = MappingProxyType(
    {
        "groupIdPrefix": "no consumer group is used",
        "kafka.group.id": "no consumer group is used",
        "kafkaConsumer.pollTimeoutMs": "kafka.request.timeout.ms counts",
        "fetchOffset.numRetries": "kafka.default.api.timeout.ms counts",
        "fetchOffset.retryIntervalMs": "kafka.retry.backoff.ms counts",
        "includeTimestampType": "the column is always there",
        "kafkaConsumer.cache.timeout": _NO_POLLING,
        "kafkaConsumer.cache.evictorThreadRunInterval": _NO_POLLING,
        "fetchedData.cache.timeout": _NO_POLLING,
        "fetchedData.cache.evictorThreadRunInterval": _NO_POLLING,
    }
)
_REFUSED = MappingProxyType(
    {
        "kafka.auto.offset.reset": "says nothing here: use startingOffsets",
        "kafka.key.deserializer": "cannot be set: keys are binary; use a function of Spark's on the column",
        "kafka.value.deserializer": "cannot be set: use value.converter",
        "kafka.enable.auto.commit": "cannot be set: offsets are kept in Spark's checkpoint",
    }
)
_DECLARED = {each.name: each for each, _ in OPTIONS}
_CHOICES = ("subscribe", "subscribePattern", "assign")


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """What a query reads, and how. Exactly one of `topics`, `pattern` and `assigned` is there.

    `start`, `end`: None where the kind of query decides. `converter_options`: pairs, without their prefix; secrets
    may be among them, so no repr shows them. `value_schema`: the JSON of a Spark type, or "".
    """

    kafka: KafkaSettings
    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None
    assigned: tuple[TopicPartition, ...]
    start: Place | None
    end: Place | None
    late_start: Literal["error", "latest"]
    fail_on_data_loss: bool
    headers: bool
    min_partitions: int
    max_records: int | None
    max_offsets: int | None
    min_offsets: int
    max_delay_ms: int
    converter: str
    converter_options: Mapping[str, str]
    value_schema: str
    sample_records: int
    tolerant: bool

    def __repr__(self) -> str:
        return f"KafkaOptions({self.kafka!r}, converter={self.converter!r})"


def parse(options: Mapping[str, str], mode: Mode) -> KafkaOptions:
    """Read the options of a query; names in any case, as in Spark. "either": what a batch and a stream agree on.

    Raises:
        ConfigError: with every mistake there is.
    """
    findings = Findings()
    given = _canonical(options)
    _check_names(given, mode, findings)
    parsed = {name: read_value(declared, given, FORMAT, findings) for name, declared in _DECLARED.items()}
    _check_choice(given, findings)
    _check_edges(given, parsed, mode, findings)
    converter = parsed["value.converter"]
    converting = _converter_options(converter, given, findings) if converter else {}
    kafka = _settings(given, findings)
    if findings.problems or kafka is None:
        raise ConfigError(findings.sentences(given))
    return KafkaOptions(
        kafka,
        parsed["subscribe"] or (),
        parsed["subscribePattern"],
        parsed["assign"] or (),
        _edge(parsed, "starting"),
        _edge(parsed, "ending"),
        parsed["startingOffsetsByTimestampStrategy"],
        parsed["failOnDataLoss"],
        parsed["includeHeaders"],
        parsed["minPartitions"] or 0,
        parsed["maxRecordsPerPartition"],
        parsed["maxOffsetsPerTrigger"],
        parsed["minOffsetsPerTrigger"] or 0,
        parsed["maxTriggerDelay"],
        converter,
        converting,
        parsed["value.schema"] or "",
        parsed["value.sample.records"],
        tolerant=parsed["errors.tolerance"] == "all",
    )


def _canonical(options: Mapping[str, str]) -> dict[str, Value]:
    """The options by their names as documented, whatever case they came in."""
    names = {name.lower(): name for name in (*_DECLARED, *WITHOUT_EFFECT)}
    return {names.get(name.lower(), name): Value(text, FORMAT) for name, text in options.items()}


def _check_names(given: Mapping[str, Value], mode: Mode, findings: Findings) -> None:
    """Names that nobody knows, that are refused, or that the kind of query does not have."""
    check_option_names(given, findings)
    only = {each.name: kind for each, kind in OPTIONS}
    known = [*_DECLARED, *WITHOUT_EFFECT]
    for name in given:
        if name in _REFUSED:
            findings.problem(name, f"{FORMAT}: {name} {_REFUSED[name]}")
        elif name in only and mode != "either" and only[name] not in ("", mode):
            findings.problem(name, f"{FORMAT}: {name} is an option of a {only[name]} query, this one is a {mode}")
        elif name not in known and not name.startswith((_KAFKA, PREFIX)):
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
            advice = f"did you mean `{near[0]}`?" if near else "docs/spark.md lists all"
            findings.problem(name, f"{FORMAT}: unknown option `{name}`; {advice}")


def _check_choice(given: Mapping[str, Value], findings: Findings) -> None:
    chosen = [name for name in _CHOICES if name in given]
    if len(chosen) != 1:
        got = f", got {' and '.join(chosen)}" if chosen else ", got none of them"
        findings.problem(None, f"{FORMAT}: give exactly one of subscribe, subscribePattern and assign{got}")


def _check_edges(given: Mapping[str, Value], parsed: Mapping[str, Any], mode: Mode, findings: Findings) -> None:
    """A batch cannot begin at the end, and no query can end at the start."""
    for name, wrong, word in (("startingOffsets", LATEST, "latest"), ("endingOffsets", EARLIEST, "earliest")):
        place = parsed[name]
        if name == "startingOffsets" and mode != "batch":
            continue
        offsets = {place.offset} if isinstance(place, Everywhere) else set()
        offsets |= set(place.offsets.values()) if isinstance(place, AtOffsets) else set()
        if wrong in offsets:
            where = "begin" if name == "startingOffsets" else "end"
            problem = f"{name} cannot {where} at {word} ({wrong}), got `{given[name].shown}`"
            findings.problem(name, f"{FORMAT}: {problem}")
    if parsed["value.schema"] and not _is_json(parsed["value.schema"]):
        findings.problem("value.schema", f"{FORMAT}: value.schema must be the JSON of a Spark type (`schema.json()`)")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _edge(parsed: Mapping[str, Any], side: str) -> Place | None:
    """The most exact of the ways to say it counts, in Spark's order."""
    if (time_ms := parsed[f"{side}Timestamp"]) is not None:
        return AtTimes(time_ms)
    place: Place | None = parsed[f"{side}OffsetsByTimestamp"] or parsed[f"{side}Offsets"]
    return place


def _converter_options(converter: str, given: dict[str, Value], findings: Findings) -> dict[str, str]:
    """As in a connector's properties, but that JSON is plain JSON where nothing else is said."""
    if converter == "json":
        given = {f"{PREFIX}schemas.enable": Value("false", FORMAT), **given}
    return read_options(converter, given, FORMAT, findings)


def _settings(given: Mapping[str, Value], findings: Findings) -> KafkaSettings | None:
    """What stands behind `kafka.`, without what is known to be without effect."""
    passed = {
        name.removeprefix(_KAFKA): value.text
        for name, value in given.items()
        if name.startswith(_KAFKA) and name not in WITHOUT_EFFECT and name not in _REFUSED
    }
    try:
        return KafkaSettings.parse(passed)
    except ConfigError as error:
        for problem in error.problems:
            findings.problem(_KAFKA + problem.partition(" ")[0], f"{FORMAT}: {_KAFKA}{problem}")
        return None
