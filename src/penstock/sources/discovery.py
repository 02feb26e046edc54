"""Which type the column `value` has: from the registry's versions, or by looking at some records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import _parse_datatype_json_value

from penstock.columnar.schema import NoColumnsError
from penstock.converters import resolve
from penstock.converters.schemas import file_schema
from penstock.errors import ConfigError
from penstock.kafka.cluster import Cluster
from penstock.kafka.reader import ReaderOptions, read
from penstock.model import PlannedRange, Records
from penstock.registry import Registry
from penstock.sources import json as documents
from penstock.sources.avro import AvroReader
from penstock.sources.options import FORMAT
from penstock.sources.ranges import existing
from penstock.sources.typed import Typed, build, kind_of
from penstock.sources.types import Unmergeable, merge, spark_like

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.converters.base import Chunk, Converter
    from penstock.model import TopicPartition
    from penstock.sources.options import KafkaOptions

_ADVICE = "give the type as value.schema"


def values_of(options: KafkaOptions) -> Typed:
    """What the column `value` is.

    Raises:
        ConfigError: its type cannot be found out, or schemas contradict each other.
        UnavailableError: Kafka or the registry does not answer.
    """
    return typed(options, _given(options) or _found(options))


def typed(options: KafkaOptions, kind: pa.DataType) -> Typed:
    """The column `value` of a type that is known."""
    name = resolve(options.converter, options.converter_options)
    return Typed(kind, name, options.converter_options, options.tolerant)


def _given(options: KafkaOptions) -> pa.DataType | None:
    if not options.value_schema:
        return None
    try:
        return to_arrow_type(_parse_datatype_json_value(json.loads(options.value_schema)), timezone="UTC")
    except (KeyError, TypeError, ValueError, AssertionError) as error:
        msg = f"{FORMAT}: value.schema must be the JSON of a Spark type (`schema.json()`): {error}"
        raise ConfigError([msg]) from error


def _found(options: KafkaOptions) -> pa.DataType:
    types = shown(options)
    if not types:
        msg = f"{FORMAT}: there is no record yet that shows the type of `value`; {_ADVICE}"
        raise ConfigError([msg])
    try:
        return together(options, types)
    except Unmergeable as error:
        msg = f"{FORMAT}: {error}; read these topics one by one, or {_ADVICE}"
        raise ConfigError([msg]) from error


def shown(options: KafkaOptions) -> list[pa.DataType]:
    """The types of values that the registry, or the newest records, show; none where there are none."""
    if options.converter in ("string", "bytes"):
        return [pa.string() if options.converter == "string" else pa.binary()]
    with Cluster(options.kafka) as kafka:
        tps = existing(options, kafka)
        types = _registered(options, sorted({tp.topic for tp in tps})) if options.converter == "avro" else []
        return types or list(_sampled(options, kafka, tps))


def together(options: KafkaOptions, types: Iterable[pa.DataType]) -> pa.DataType:
    """One type that holds the values of all. Raises Unmergeable."""
    as_text = kind_of(resolve(options.converter, options.converter_options)) == "json"
    return spark_like(merge((spark_like(each) for each in types), or_text=as_text))


def _registered(options: KafkaOptions, topics: Iterable[str]) -> list[pa.DataType]:
    """The types of all versions of the topics' subjects."""
    registry = Registry.of(options.converter_options, "value.converter")
    return [
        _avro_type(
            file_schema(each.text, each.version, connect_meta_data=False, named=each.named).text,
            f"version {each.version} of subject `{topic}-value`",
        )
        for topic in topics
        for _, each in reversed(registry.versions(f"{topic}-value"))
        if each.kind == "AVRO"
    ]


def _avro_type(text: str, what: str) -> pa.DataType:
    try:
        return AvroReader.of(text).type
    except NoColumnsError as error:
        msg = f"{FORMAT}: {what} has no type in Spark: its schema {error}; read the values as they are"
        raise ConfigError([msg]) from error


def _sampled(options: KafkaOptions, kafka: Cluster, tps: list[TopicPartition]) -> Iterator[pa.DataType]:
    """The types of the newest records of each topic-partition; what cannot be decoded is passed over."""
    starts, ends = kafka.log_starts(tps), kafka.log_ends(tps)
    ranges = [PlannedRange(tp, max(starts[tp], ends[tp] - options.sample_records), ends[tp]) for tp in tps]
    name = resolve(options.converter, options.converter_options)
    converter = build(name, options.converter_options)
    for item in read(ranges, ReaderOptions.of(options.kafka, skip_lost=True), converter.gather):
        if isinstance(item, Records) and len(item):
            yield from _types(converter, name, item)


def _types(converter: Converter, name: str, records: Records) -> Iterator[pa.DataType]:
    converted = converter.convert(records)
    bad = {fault.row for fault in converted.faults}
    rows = [
        row
        for row in range(len(records))
        if row not in bad and not (converted.nulls is not None and converted.nulls[row])
    ]
    if kind_of(name) == "json":
        yield documents.merged(documents.type_of(each) for each in _documents(converted.chunk, rows))
        return
    codes = converted.chunk.schemas
    for code in sorted({0 if codes is None else int(codes[row]) for row in rows}):
        yield _avro_type(converter.schema(code).text, f"the schema of records of `{records.tp}`")


def _documents(chunk: Chunk, rows: Iterable[int]) -> Iterator[Any]:
    for row in rows:
        yield msgspec.json.decode(chunk.data[chunk.offsets[row] : chunk.offsets[row + 1]].tobytes())
