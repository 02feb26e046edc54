"""From a configuration to what looks at records and writes them: converters, partitioners, formats, rules."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Literal

from penstock import converters, cutter, planner
from penstock.coding import SchemaRules
from penstock.companions import Companion, Headers, Keys
from penstock.converters import ConverterOptions
from penstock.converters import build as build_converter
from penstock.converters.compatibility import Mode, joins, lacks_version, newer
from penstock.converters.fixed import fixed
from penstock.converters.framed import FramedConverter
from penstock.envelope import EnvelopeConverter
from penstock.errors import ConfigError
from penstock.extractors import EXTRACTORS
from penstock.fields.keys import HEADER, KEY
from penstock.formats import FORMATS, FormatOptions
from penstock.frames import Frames
from penstock.keylength import Bounded
from penstock.keys import Layout
from penstock.partitioners import PartitionerOptions, custom
from penstock.partitioners import build as build_partitioner
from penstock.partitioners.zones import Zone
from penstock.sifting import NullValues, Sieve
from penstock.spool import Budget

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.config import SinkConfig
    from penstock.converters.base import Converter, Kind
    from penstock.converters.connect_json import DecimalFormat
    from penstock.formats.base import Format
    from penstock.partitioners.base import Extractor, Partitioner

_WITH_SCHEMAS = ("avro", "protobuf", "json_schema", "json_envelope")


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


def cut_rules(config: SinkConfig) -> cutter.Rules:
    """What closes files."""
    rotation = config.rotation
    return cutter.Rules(
        config.flush_size,
        rotation.flush_bytes,
        rotation.interval_ms if config.partitioning.is_timed else -1,
        rotation.on_partition_change,
        rotation.max_open_files,
        interleave=rotation.schema_compatibility == "UNION",
    )


def looked_at(config: SinkConfig) -> dict[str, bool]:
    """Whether keys and headers are looked at."""
    paths = (
        *config.partitioning.fields,
        *re.findall(r"\{\{\s*field\s*:\s*([^{}]*?)\s*\}\}", config.partitioning.path_template),
    )
    records, framed = config.records, _frames(config)
    kept = bool(config.errors.topic or config.errors.directory) or records.envelope
    framed_keys = framed is not None and framed.keys
    return {
        "keys": kept or records.store_keys or KEY in paths or framed_keys,
        "headers": kept or records.store_headers or any(path.startswith(HEADER) for path in paths),
    }


def file_format(config: SinkConfig, budget: Budget | None = None) -> Format:
    """How values are written. `budget`: of the task, where files will be."""
    return _named_format(config, config.format_class, budget)


def _named_format(config: SinkConfig, name: str, budget: Budget | None) -> Format:
    if ":" in name:
        made: Format = custom(name)(config.given)  # type: ignore[assignment]
        return made
    options = FormatOptions(
        config.avro_codec,
        config.bytearray_extension,
        config.bytearray_separator.encode(),
        config.compression_type,
        config.compression_level,
        config.parquet_codec,
        config.block_gzip.block_size,
        b"" if _frames(config) is not None else config.block_gzip.value_delimiter.encode(),
        budget or Budget(),
    )
    return FORMATS[name](options)


def _name(config: SinkConfig) -> str:
    return converters.resolve(config.value_converter, config.converter_options)


def _kind(config: SinkConfig) -> Kind:
    accepts = file_format(config).accepts
    if _frames(config) is not None:
        accepts = tuple(kind for kind in accepts if kind != "json")
    if config.transform.wanted:
        return _result_kind(config, accepts)
    return converters.negotiate(_name(config), config.format_class, accepts)


def _result_kind(config: SinkConfig, accepts: tuple[Kind, ...]) -> Kind:
    """The kind in which a format takes the columns of a transformation. Raises `ConfigError` where it takes none."""
    common = [kind for kind in accepts if kind in converters.KINDS["avro"]]
    if not common:
        name = config.transform.name
        where = config.places.get(name, config.name)
        msg = (
            f"{where}: {name} gives columns, which format.class `{config.format_class}` does not hold; set "
            "format.class to avro, json or parquet"
        )
        raise ConfigError([msg])
    return common[0]


@functools.lru_cache(maxsize=16)
def _converter(name: str, kind: Kind, own: tuple[tuple[str, str], ...], options: ConverterOptions) -> Converter:
    """One converter with its cached schemas serves every job of a process."""
    return build_converter(name, kind, dict(own), options)


def _converter_of(config: SinkConfig, result: str) -> Converter:
    own, options = tuple(sorted(config.converter_options.items())), _converter_options(config, file_format(config))
    nulls_too = config.records.null_values == "write"
    if result:
        made, framed = _of_result(config, result), None
    else:
        made, framed = _converter(_name(config), _kind(config), own, options), _frames(config)
    if config.records.envelope:
        return EnvelopeConverter(
            _kind(config), made, _key_converter(config, _kind(config), file_format(config)), nulls_too
        )
    return made if framed is None else FramedConverter(made, framed)


def _of_result(config: SinkConfig, schema: str) -> Converter:
    """What a transformation gives, as data of an Avro schema, for the format."""
    decimals: DecimalFormat = config.records.decimals  # type: ignore[assignment]  # its Choice has these words
    return fixed(schema, _kind(config), connect_meta_data=config.connect_meta_data, decimals=decimals)


def _key_converter(config: SinkConfig, kind: Kind, chosen: Format) -> Converter:
    records = config.records
    name = converters.resolve(records.key_converter, config.key_converter_options)
    own = tuple(sorted(config.key_converter_options.items()))
    return _converter(name, kind, own, _converter_options(config, chosen, "key"))


def frames(config: SinkConfig) -> Frames:
    """What stands around block-GZIP's records."""
    chosen = config.block_gzip
    before, behind = chosen.key_delimiter.encode(), chosen.value_delimiter.encode()
    return Frames(chosen.has_keys, chosen.records == "binary", before, behind, chosen.delimiter_once)


def _frames(config: SinkConfig) -> Frames | None:
    """The same where it is more than a delimiter behind each."""
    made = frames(config)
    is_more = config.format_class == "block_gzip" and (made.lengths or made.keys or made.once)
    return made if is_more else None


def _converter_options(config: SinkConfig, chosen: Format, part: Literal["value", "key"] = "value") -> ConverterOptions:
    decimals: DecimalFormat = config.records.decimals  # type: ignore[assignment]  # its Choice has these words
    return ConverterOptions(
        chosen.separator, config.connect_meta_data, decimals, config.records.optional_map_keys, part
    )


def schema_rules(config: SinkConfig) -> SchemaRules:
    """How schemas get on, as `schema.compatibility` says."""
    mode: Mode = config.rotation.schema_compatibility  # type: ignore[assignment]  # its Choice has these words
    if mode == "NONE":
        return SchemaRules()
    lacks = functools.partial(lacks_version, mode=mode)
    return SchemaRules(functools.partial(joins, mode=mode), newer, lacks, interleave=mode == "UNION")


def sieve(config: SinkConfig, budget: Budget | None = None, result: str = "") -> Sieve:
    """What looks at records before they are written. Raises `ConfigError` where its parts do not fit together.

    `result`: the Avro schema of a transformation's result, where the records are that.
    """
    records, errors = config.records, config.errors
    nulls: NullValues = records.null_values  # type: ignore[assignment]  # its Choice has these words
    companions = _companions(config, budget)
    return Sieve(
        _converter_of(config, result),
        Bounded(partitioner_of(config), layout(config), companions),
        _extractor(config),
        companions,
        nulls,
        records.tombstones,
        report_nulls=bool(errors.topic) and errors.report_nulls,
        refuses=file_format(config).refuses,
    )


def _companions(config: SinkConfig, budget: Budget | None) -> tuple[Companion, ...]:
    """Keys and headers, where they are stored."""
    records = config.records
    found: list[Companion] = []
    if records.store_keys:
        chosen = _named_format(config, records.keys_format, budget)
        name = converters.resolve(records.key_converter, config.key_converter_options)
        kind = converters.negotiate(name, records.keys_format, chosen.accepts, "key.converter")
        found.append(Keys(_key_converter(config, kind, chosen), kind, chosen, wrap=records.keys_format == "parquet"))
    if records.store_headers:
        chosen = _named_format(config, records.headers_format, budget)
        wrap = records.headers_format == "parquet"
        found.append(Headers("avro" if "avro" in chosen.accepts else "json", chosen, wrap=wrap))
    return tuple(found)


def content_cuts(config: SinkConfig) -> bool:
    """Whether something in the records can close files before `flush.size` does: a schema that changes, a time.

    Nobody knows how many records a transformation leaves out, so it counts as such.
    """
    return config.transform.wanted or _name(config) in _WITH_SCHEMAS or cut_rules(config).by_content


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
        file_format(config).extension,
        config.partitioning.path_template,
    )
