"""From a configuration to the parts: the one place where families, store and log are put together."""

from __future__ import annotations

import functools
import re
import socket
import time
import uuid
from typing import TYPE_CHECKING

from penstock import converters, cutter, planner
from penstock.coding import SchemaRules
from penstock.converters import build as build_converter
from penstock.converters.compatibility import Mode, joins, newer
from penstock.crashpoints import reach
from penstock.errors import ConfigError, StoreUnavailable
from penstock.extractors import EXTRACTORS
from penstock.fields.keys import HEADER, KEY
from penstock.formats import FORMATS, FormatOptions
from penstock.kafka.reader import ReaderOptions
from penstock.keys import Layout
from penstock.partitioners import PartitionerOptions, custom
from penstock.partitioners import build as build_partitioner
from penstock.partitioners.zones import Zone
from penstock.rangewriter import Pipeline
from penstock.registry import Registry
from penstock.statelog.log import StateLog, Writer
from penstock.statelog.names import Names
from penstock.store.probe import refuses_overwrites
from penstock.store.s3 import StoreOptions, store
from penstock.store.upload import Owner, Uploads, abort_leftovers

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.config import SinkConfig
    from penstock.converters.base import Converter, Kind
    from penstock.formats.base import Format
    from penstock.kafka.settings import KafkaSettings
    from penstock.partitioners.base import Extractor, Partitioner
    from penstock.statelog import Head
    from penstock.store.s3 import S3Store

_WITH_SCHEMAS = ("avro",)
_LEAST_PARTITION_FETCH, _MOST_FETCH = 4 * 1024 * 1024, 16 * 1024 * 1024


def build(config: SinkConfig, kafka: KafkaSettings, seq: int) -> tuple[Pipeline, ReaderOptions]:
    """What a task needs to write ranges: the parts for `config`, and how to read. `seq`: the plan's entry."""
    file_format = _format(config)
    owner = Owner(config.name, seq, "overwrite" if config.existing_objects == "overwrite" else "fail")
    uploads = Uploads(store(_store_options(config)), owner, config.part_size)
    pipeline = Pipeline(
        _converter_of(config),
        file_format,
        _partitioner(config),
        layout(config),
        _cut_rules(config),
        uploads.open,
        _extractor(config),
        _schema_rules(config),
        "ignore" if config.null_values == "ignore" else "fail",
        **_looked_at(config),
    )
    options = ReaderOptions(
        kafka.aiokafka_kwargs,
        isolation=kafka.isolation_level,
        fetch_max_bytes=min(kafka.fetch_max_bytes, _MOST_FETCH),
        max_partition_fetch_bytes=max(kafka.max_partition_fetch_bytes, _LEAST_PARTITION_FETCH),
        prefetch_bytes=3 * _MOST_FETCH,
        check_crcs=kafka.check_crcs,
    )
    return pipeline, options


def check(config: SinkConfig) -> None:
    """Raise `ConfigError` where the parts do not fit together: what can be known before anything is asked."""
    _converter_of(config)
    try:
        _partitioner(config)
        _extractor(config)
    except ValueError as error:
        raise ConfigError([f"{config.name}: {error}"]) from error


def content_cuts(config: SinkConfig) -> bool:
    """Whether something in the records can close files before `flush.size` does: a schema that changes, a time."""
    return config.value_converter in _WITH_SCHEMAS or _cut_rules(config).by_content


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


def open_store(config: SinkConfig) -> S3Store:
    """The sink's bucket, checked, with the leavings of an earlier process swept.

    Raises:
        StoreUnavailable: the bucket cannot be used, or does not keep two writers apart.
    """
    opened = store(_store_options(config))
    opened.check()
    if config.fencing == "on" and not refuses_overwrites(opened, _names(config).probe(uuid.uuid4().hex)):
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


def read_head(config: SinkConfig) -> Head:
    """What the state log says now; takes nothing over."""
    return _log(config).read()


def state_url(config: SinkConfig) -> str:
    """Where the state log is, for messages."""
    bucket = _log_options(config).bucket
    return f"s3://{bucket}/{_names(config).prefix}"


def _log(config: SinkConfig) -> StateLog:
    writer = Writer(uuid.uuid4().hex, socket.gethostname(), lambda: time.time_ns() // 1_000_000)
    return StateLog(config.name, store(_log_options(config)), _names(config), writer, config.checkpoint_entries)


def _names(config: SinkConfig) -> Names:
    if config.state_url is None:
        return Names(f"{config.state_dir}/{config.name}/")
    prefix = config.state_url.removeprefix("s3://").partition("/")[2]
    return Names(f"{prefix}/{config.name}/" if prefix else f"{config.name}/")


def _log_options(config: SinkConfig) -> StoreOptions:
    bucket = config.bucket if config.state_url is None else config.state_url.removeprefix("s3://").partition("/")[0]
    return _store_options(config, bucket)


def _store_options(config: SinkConfig, bucket: str | None = None) -> StoreOptions:
    return StoreOptions(
        bucket or config.bucket,
        config.region,
        config.store_url,
        path_style=config.path_style,
        provider=config.credentials,
        access_key_id=config.access_key_id,
        secret_access_key=config.secret_access_key.reveal(),
        part_size=config.part_size,
        retries=config.part_retries,
        backoff_ms=config.retry_backoff_ms,
    )


def _partitioner(config: SinkConfig) -> Partitioner:
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
    return {"keys": KEY in paths, "headers": any(path.startswith(HEADER) for path in paths)}


def _format(config: SinkConfig) -> Format:
    options = FormatOptions(config.avro_codec, config.bytearray_extension, config.bytearray_separator.encode())
    return FORMATS[config.format_class](options)


def _kind(config: SinkConfig) -> Kind:
    return converters.negotiate(config.value_converter, config.format_class, _format(config).accepts)


@functools.lru_cache(maxsize=16)
def _converter(
    name: str, kind: Kind, options: tuple[tuple[str, str], ...], separator: bytes, connect_meta_data: bool
) -> Converter:
    """One converter with its cached schemas serves every job of a process."""
    return build_converter(name, kind, dict(options), separator=separator, connect_meta_data=connect_meta_data)


def _converter_of(config: SinkConfig) -> Converter:
    return _converter(
        config.value_converter,
        _kind(config),
        tuple(sorted(config.converter_options.items())),
        _format(config).separator,
        config.connect_meta_data,
    )


def _schema_rules(config: SinkConfig) -> SchemaRules:
    """How schemas get on, as `schema.compatibility` says."""
    mode: Mode = config.rotation.schema_compatibility  # type: ignore[assignment]  # its Choice has these words
    if mode == "NONE":
        return SchemaRules()
    return SchemaRules(functools.partial(joins, mode=mode), newer, interleave=mode == "UNION")
