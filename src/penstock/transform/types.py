"""The result's columns as an Avro schema: what files are written under, whatever their format is."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as spark

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = Any

_NAMESPACE = "io.confluent.connect.avro"
_PLAIN: dict[type[spark.DataType], Json] = {
    spark.BooleanType: "boolean",
    spark.ByteType: "int",
    spark.ShortType: "int",
    spark.IntegerType: "int",
    spark.LongType: "long",
    spark.FloatType: "float",
    spark.DoubleType: "double",
    spark.StringType: "string",
    spark.VarcharType: "string",
    spark.CharType: "string",
    spark.BinaryType: "bytes",
    spark.DateType: {"type": "int", "logicalType": "date"},
    spark.TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
    spark.TimestampNTZType: {"type": "long", "logicalType": "local-timestamp-micros"},
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def avro(columns: spark.StructType) -> str:
    """The Avro schema of rows, as JSON. Records are named as Connect names those without a name."""
    return json.dumps(_record(columns, _names()))


def _names() -> Iterator[str]:
    yield "ConnectDefault"
    number = 2
    while True:
        yield f"ConnectDefault{number}"
        number += 1


def _record(columns: spark.StructType, names: Iterator[str]) -> Json:
    name = next(names)
    fields = [{"name": each.name, "type": _optional(each.dataType, names), "default": None} for each in columns]
    return {"type": "record", "name": name, "namespace": _NAMESPACE, "fields": fields}


def _optional(kind: spark.DataType, names: Iterator[str]) -> Json:
    return ["null", _plain(kind, names)]


def _plain(kind: spark.DataType, names: Iterator[str]) -> Json:
    if isinstance(kind, spark.StructType):
        return _record(kind, names)
    if isinstance(kind, spark.ArrayType):
        return {"type": "array", "items": _optional(kind.elementType, names)}
    if isinstance(kind, spark.MapType):
        return {"type": "map", "values": _optional(kind.valueType, names)}
    if isinstance(kind, spark.DecimalType):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    return _PLAIN[type(kind)]


def unwritable(columns: spark.StructType, file_format: str) -> str | None:
    """Why the columns cannot be written, in words that follow "its result "; None if they can."""
    if not columns.fields:
        return "has no columns; select at least one"
    for path, kind in _leaves(columns, ""):
        if not (type(kind) in _PLAIN or isinstance(kind, spark.DecimalType)):
            return f"has a column `{path}` of the type `{kind.simpleString()}`, which no file holds; cast it to another"
    for path, record in _records(columns, ""):
        names = [each.name for each in record]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            return f"has two columns `{path}{twice[0]}`; give one of them another name with AS"
        odd = [name for name in names if file_format == "avro" and not _NAME.fullmatch(name)]
        if odd:
            return (
                f"has a column `{path}{odd[0]}`, and names in Avro are letters, digits and `_`; give it another name "
                "with AS"
            )
    return None


def _leaves(kind: spark.DataType, path: str) -> Iterator[tuple[str, spark.DataType]]:
    """Every type without types inside, with its path; keys of maps must be texts."""
    if isinstance(kind, spark.StructType):
        for each in kind:
            yield from _leaves(each.dataType, f"{path}.{each.name}" if path else each.name)
    elif isinstance(kind, spark.ArrayType):
        yield from _leaves(kind.elementType, f"{path}[]")
    elif isinstance(kind, spark.MapType) and isinstance(kind.keyType, spark.StringType):
        yield from _leaves(kind.valueType, f"{path}{{}}")
    else:
        yield path, kind


def _records(kind: spark.DataType, path: str) -> Iterator[tuple[str, spark.StructType]]:
    """Every record with what stands before the names of its fields."""
    if isinstance(kind, spark.StructType):
        yield path, kind
        for each in kind:
            yield from _records(each.dataType, f"{path}{each.name}.")
    elif isinstance(kind, spark.ArrayType):
        yield from _records(kind.elementType, path)
    elif isinstance(kind, spark.MapType):
        yield from _records(kind.valueType, path)
