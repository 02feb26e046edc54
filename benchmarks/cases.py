"""The cases: what is in the topic, and what shall be in the objects. Every contender does the same one."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from benchmarks.shapes import Shape

if TYPE_CHECKING:
    from collections.abc import Mapping

Output = Literal["avro", "json", "text", "parquet"]
By = Literal["", "hour", "country"]

_NONE: Mapping[str, str] = MappingProxyType({})
_JSON = Shape(kind="json", size=143)
_BYTES = Shape(kind="bytes", size=100)


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the comparison.

    `properties`: the connector's, beside `flush.size`, the converter's and the places. `output`, `codec`, `by`: the
    same for the other contenders: kind of file, its compression, and what encoded partitions go by.
    """

    name: str
    shape: Shape
    output: Output
    properties: Mapping[str, str]
    codec: str = ""
    by: By = ""
    note: str = ""
    converter: Mapping[str, str] = field(default_factory=lambda: _NONE)


def _avro(name: str, more: Mapping[str, str] = _NONE, codec: str = "", by: By = "", note: str = "") -> Case:
    return Case(name, Shape(), "avro", {"format.class": "avro", **more}, codec, by, note)


CASES = {
    case.name: case
    for case in (
        _avro("avro-avro", note="default partitioner, codec null"),
        _avro("avro-avro-snappy", {"avro.codec": "snappy"}, "snappy", note="the same, `avro.codec=snappy`"),
        Case("json-json", _JSON, "json", {"format.class": "json"}, note="JSON lines, each validated"),
        Case("bytes-bytes", _BYTES, "text", {"format.class": "bytes"}, note="ByteArrayFormat, line feeds"),
        _avro(
            "avro-avro-hourly",
            {
                "partitioner.class": "hourly",
                "locale": "en-US",
                "timezone": "UTC",
                "timestamp.extractor": "Record",
                "rotate.interval.ms": "3600000",
                "flush.on.stop": "true",
            },
            by="hour",
            note="hourly on Record time, `rotate.interval.ms=3600000`, 50,000 records to an hour of a partition",
        ),
        Case(
            "avro-parquet",
            Shape(),
            "parquet",
            {"format.class": "parquet", "parquet.codec": "snappy"},
            "snappy",
            note="`parquet.codec=snappy`",
        ),
        Case(
            "avro-json-gzip",
            Shape(),
            "json",
            {"format.class": "json", "s3.compression.type": "gzip"},
            "gzip",
            note="Avro decoded to JSON lines, gzip",
        ),
        Case(
            "block-gzip-text",
            _BYTES,
            "text",
            {"format.class": "block_gzip"},
            "gzip",
            note="lines in concatenated gzip members, with their index",
            converter={"value.converter": "string"},
        ),
        _avro(
            "avro-avro-field",
            {"partitioner.class": "field", "partition.field.name": "country"},
            by="country",
            note="field partitioner on a string of 20 values",
        ),
    )
}


def converter(case: Case, registry_url: str) -> dict[str, str]:
    """The value converter's properties."""
    if case.converter:
        return dict(case.converter)
    if case.shape.kind == "avro":
        return {"value.converter": "avro", "value.converter.schema.registry.url": registry_url}
    if case.shape.kind == "json":
        return {"value.converter": "json", "value.converter.schemas.enable": "false"}
    return {"value.converter": "bytes"}
