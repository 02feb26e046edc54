"""From a configuration to the parts: the one place where families, store and log are put together."""

from __future__ import annotations

import functools
import re
import socket
import time
import uuid
from typing import TYPE_CHECKING, Literal

from penstock import converters, cutter, planner, stores
from penstock.coding import SchemaRules
from penstock.companions import Companion, Headers, Keys
from penstock.converters import ConverterOptions
from penstock.converters import build as build_converter
from penstock.converters.compatibility import Mode, joins, lacks_version, newer
from penstock.crashpoints import reach
from penstock.errors import ConfigError, StoreUnavailable
from penstock.extractors import EXTRACTORS
from penstock.fields.keys import HEADER, KEY
from penstock.formats import FORMATS, FormatOptions
from penstock.kafka.deadletters import DeadLetterTopic
from penstock.kafka.reader import ReaderOptions
from penstock.keys import Layout
from penstock.partitioners import PartitionerOptions, custom
from penstock.partitioners import build as build_partitioner
from penstock.partitioners.zones import Zone
from penstock.rangewriter import Pipeline
from penstock.registry import Registry
from penstock.rejects import ErrorPolicy
from penstock.sifting import NullValues, Sieve
from penstock.statelog.log import StateLog, Writer
from penstock.statelog.names import Names
from penstock.store.probe import refuses_overwrites
from penstock.store.s3 import store
from penstock.store.upload import Owner, Uploads, abort_leftovers

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.config import SinkConfig
    from penstock.converters.base import Converter, Kind
    from penstock.converters.connect_json import DecimalFormat
    from penstock.formats.base import Format
    from penstock.kafka.settings import KafkaSettings
    from penstock.model import TopicPartition
    from penstock.partitioners.base import Extractor, Partitioner
    from penstock.statelog import Head
    from penstock.store.s3 import S3Store
    from penstock.store.upload import ObjectWriter

_WITH_SCHEMAS = ("avro", "json_envelope")
_LEAST_PARTITION_FETCH, _MOST_FETCH = 4 * 1024 * 1024, 16 * 1024 * 1024


def build(config: SinkConfig, kafka: KafkaSettings, seq: int) -> tuple[Pipeline, ReaderOptions]:
    """What a task needs to write ranges: the parts for `config`, and how to read. `seq`: the plan's entry."""
    owner = Owner(config.name, seq, "overwrite" if config.existing_objects == "overwrite" else "fail")
    uploads = Uploads(store(stores.of_sink(config)), owner, config.part_size, stores.tagging(config))
    pipeline = Pipeline(
        _sieve(config),
        _format(config),
        layout(config),
        _cut_rules(config),
        uploads.open,
        _schema_rules(config),
        _error_policy(config, kafka, uploads),
        **_looked_at(config),
    )
    options = ReaderOptions(
        kafka.aiokafka_kwargs,
        isolation=kafka.isolation_level,
        fetch_max_bytes=min(kafka.fetch_max_bytes, _MOST_FETCH),
        max_partition_fetch_bytes=max(kafka.max_partition_fetch_bytes, _LEAST_PARTITION_FETCH),
        prefetch_bytes=3 * _MOST_FETCH,
        check_crcs=kafka.check_crcs,
        fetch_min_bytes=kafka.fetch_min_bytes,
        fetch_max_wait_ms=kafka.fetch_max_wait_ms,
        rack=kafka.client_rack,
    )
    return pipeline, options


def check(config: SinkConfig) -> None:
    """Raise `ConfigError` where the parts do not fit together: what can be known before anything is asked."""
    try:
        _sieve(config)
    except ValueError as error:
        raise ConfigError([f"{config.name}: {error}"]) from error


def content_cuts(config: SinkConfig) -> bool:
    """Whether something in the records can close files before `flush.size` does: a schema that changes, a time."""
    return _name(config) in _WITH_SCHEMAS or _cut_rules(config).by_content


def scheduled(config: SinkConfig) -> Callable[[int], int] | None:
    """The last instant of scheduled rotation up to a time in ms; None where there is no such rotation."""
    interval = config.rotation.schedule_interval_ms
    if interval <= 0:
        return None
    zone = Zone.parse(config.partitioning.timezone)
    return lambda now_ms: zone.scheduled(now_ms, interval)


def planner_rules(config: SinkConfig) -> planner.Rules:
    """What the planner goes by."""
    rotation, partitioning = config.rotation, config.partitioning
    return planner.Rules(
        max(config.flush_size, 1),
        content_cuts(config),
        rotation.interval_ms if partitioning.is_timed else -1,
        rotation.max_latency_ms,
        wall_clock=partitioning.is_timed and partitioning.extractor == "wallclock",
        max_offsets=config.cycle_max_records,
    )


def layout(config: SinkConfig) -> Layout:
    """How this connector names its objects."""
    return Layout(
        config.topics_dir,
        config.directory_delim,
        config.file_delim,
        config.pad_width,
        _format(config).extension,
        config.partitioning.path_template,
    )


def error_key(config: SinkConfig, tp: TopicPartition, offset: int) -> str:
    """The key of the error object whose first record is at `offset`."""
    name = f"{tp.topic}+{tp.partition}+{offset:0{config.pad_width}d}.jsonl"
    return f"{config.errors.directory}/{tp.topic}/{name}"


def open_store(config: SinkConfig) -> S3Store:
    """The sink's bucket, checked, with the leavings of an earlier process swept.

    Raises:
        StoreUnavailable: the bucket cannot be used, or does not keep two writers apart.
    """
    opened = store(stores.of_sink(config))
    opened.check()
    if config.fencing == "on" and not refuses_overwrites(opened, state_names(config).probe(uuid.uuid4().hex)):
        msg = (
            f"{opened.options.place} overwrites objects although told not to (no conditional writes), so two instances "
            "could not be kept apart; use another store, or set fencing=off and never run two instances"
        )
        raise StoreUnavailable(msg, transient=False)
    return opened


def check_registry(config: SinkConfig) -> None:
    """Raise `RegistryUnavailable` where the converter needs a Schema Registry and it does not answer."""
    if config.value_converter == "avro":
        Registry.of(config.converter_options, "value.converter").check()


def open_log(config: SinkConfig) -> StateLog:
    """The connector's state log, taken over."""
    log = _log(config)
    log.take_over()
    reach("takeover.appended")
    return log


def sweep(config: SinkConfig, opened: S3Store, topics: list[str]) -> int:
    """Abort the multipart uploads that an earlier process of this connector left; how many there were.

    Prefixes that do not name the topic (`path.template`) are not swept: other connectors may write there.
    """
    prefixes = {prefix for topic in topics if topic in (prefix := layout(config).prefix(topic))}
    return sum(abort_leftovers(opened, prefix) for prefix in sorted(prefixes))


def read_log(config: SinkConfig) -> StateLog:
    """The connector's state log as it is now; takes nothing over, so nothing may be appended."""
    log = _log(config)
    log.read()
    return log


def read_head(config: SinkConfig) -> Head:
    """What the state log says now; takes nothing over."""
    return read_log(config).head


def state_url(config: SinkConfig) -> str:
    """Where the state log is, for messages."""
    bucket = stores.of_state(config).bucket
    return f"s3://{bucket}/{state_names(config).prefix}"


def _log(config: SinkConfig) -> StateLog:
    writer = Writer(uuid.uuid4().hex, socket.gethostname(), lambda: time.time_ns() // 1_000_000)
    return StateLog(config.name, store(stores.of_state(config)), state_names(config), writer, config.checkpoint_entries)


def state_names(config: SinkConfig) -> Names:
    """The keys of the state log."""
    if config.state_url is None:
        return Names(f"{config.state_dir}/{config.name}/")
    prefix = config.state_url.removeprefix("s3://").partition("/")[2]
    return Names(f"{prefix}/{config.name}/" if prefix else f"{config.name}/")


def partitioner_of(config: SinkConfig) -> Partitioner:
    """What gives records their encoded partitions."""
    chosen = config.partitioning
    options = PartitionerOptions(
        chosen.fields,
        chosen.field_names_in_path,
        chosen.duration_ms,
        chosen.path_format,
        chosen.locale,
        chosen.timezone,
        config.directory_delim,
        chosen.schema_affix,
        chosen.path_template,
        one_topic=config.topics is not None and len(config.topics) == 1,
        properties=config.given,
    )
    return build_partitioner(chosen.partitioner, options)


def _extractor(config: SinkConfig) -> Extractor | None:
    """None where no partitioner asks for a time."""
    chosen = config.partitioning
    if not chosen.is_timed:
        return None
    if ":" in chosen.extractor:
        made: Extractor = custom(chosen.extractor)(config.given)  # type: ignore[assignment]
        return made
    return EXTRACTORS[chosen.extractor](chosen.timestamp_field, Zone.parse(chosen.timezone or "UTC"))


def _cut_rules(config: SinkConfig) -> cutter.Rules:
    rotation = config.rotation
    return cutter.Rules(
        config.flush_size,
        rotation.flush_bytes,
        rotation.interval_ms if config.partitioning.is_timed else -1,
        rotation.on_partition_change,
        rotation.max_open_files,
        interleave=rotation.schema_compatibility == "UNION",
    )


def _looked_at(config: SinkConfig) -> dict[str, bool]:
    """Whether keys and headers are looked at."""
    paths = (
        *config.partitioning.fields,
        *re.findall(r"\{\{\s*field\s*:\s*([^{}]*?)\s*\}\}", config.partitioning.path_template),
    )
    kept = bool(config.errors.topic or config.errors.directory)
    return {
        "keys": kept or config.records.store_keys or KEY in paths,
        "headers": kept or config.records.store_headers or any(path.startswith(HEADER) for path in paths),
    }


def _format(config: SinkConfig) -> Format:
    return _named_format(config, config.format_class)


def _named_format(config: SinkConfig, name: str) -> Format:
    options = FormatOptions(
        config.avro_codec,
        config.bytearray_extension,
        config.bytearray_separator.encode(),
        config.compression_type,
        config.compression_level,
    )
    return FORMATS[name](options)


def _name(config: SinkConfig) -> str:
    return converters.resolve(config.value_converter, config.converter_options)


def _kind(config: SinkConfig) -> Kind:
    return converters.negotiate(_name(config), config.format_class, _format(config).accepts)


@functools.lru_cache(maxsize=16)
def _converter(name: str, kind: Kind, own: tuple[tuple[str, str], ...], options: ConverterOptions) -> Converter:
    """One converter with its cached schemas serves every job of a process."""
    return build_converter(name, kind, dict(own), options)


def _converter_of(config: SinkConfig) -> Converter:
    own, options = tuple(sorted(config.converter_options.items())), _converter_options(config, _format(config))
    return _converter(_name(config), _kind(config), own, options)


def _converter_options(config: SinkConfig, chosen: Format, part: Literal["value", "key"] = "value") -> ConverterOptions:
    decimals: DecimalFormat = config.records.decimals  # type: ignore[assignment]  # its Choice has these words
    return ConverterOptions(
        chosen.separator, config.connect_meta_data, decimals, config.records.optional_map_keys, part
    )


def _schema_rules(config: SinkConfig) -> SchemaRules:
    """How schemas get on, as `schema.compatibility` says."""
    mode: Mode = config.rotation.schema_compatibility  # type: ignore[assignment]  # its Choice has these words
    if mode == "NONE":
        return SchemaRules()
    lacks = functools.partial(lacks_version, mode=mode)
    return SchemaRules(functools.partial(joins, mode=mode), newer, lacks, interleave=mode == "UNION")


def _sieve(config: SinkConfig) -> Sieve:
    records, errors = config.records, config.errors
    nulls: NullValues = records.null_values  # type: ignore[assignment]  # its Choice has these words
    return Sieve(
        _converter_of(config),
        partitioner_of(config),
        _extractor(config),
        _companions(config),
        nulls,
        records.tombstones,
        report_nulls=bool(errors.topic) and errors.report_nulls,
    )


def _companions(config: SinkConfig) -> tuple[Companion, ...]:
    """Keys and headers, where they are stored."""
    records = config.records
    found: list[Companion] = []
    if records.store_keys:
        chosen = _named_format(config, records.keys_format)
        name = converters.resolve(records.key_converter, config.key_converter_options)
        kind = converters.negotiate(name, records.keys_format, chosen.accepts, "key.converter")
        own = tuple(sorted(config.key_converter_options.items()))
        converter = _converter(name, kind, own, _converter_options(config, chosen, "key"))
        found.append(Keys(converter, kind, chosen))
    if records.store_headers:
        chosen = _named_format(config, records.headers_format)
        found.append(Headers("avro" if "avro" in chosen.accepts else "json", chosen))
    return tuple(found)


def _error_policy(config: SinkConfig, kafka: KafkaSettings, uploads: Uploads) -> ErrorPolicy:
    errors = config.errors
    letters = DeadLetterTopic(kafka, config.name, errors.topic, errors.context_headers) if errors.topic else None

    def open_object(tp: TopicPartition, offset: int) -> tuple[str, ObjectWriter]:
        key = error_key(config, tp, offset)
        return key, uploads.open(key, offset)

    return ErrorPolicy(
        errors.tolerance == "all",
        open_object if errors.directory else None,
        letters,
        report_nulls=letters is not None and errors.report_nulls,
    )
