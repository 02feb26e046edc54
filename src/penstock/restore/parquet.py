"""Parquet files back to what Kafka had: rows as Avro data again, under the schema that the file carries, or as JSON.

The data are encoded anew, so they are equal to the producer's, but not always the same bytes (blocks of arrays,
decimals with leading zeros). Times are taken as the numbers that they are.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import fastavro
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.columnar.schema import VALUE, Columns
from penstock.converters.projection import raw
from penstock.restore.avro_values import converting
from penstock.restore.framing import framing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.restore.framing import Part
    from penstock.restore.records import HeaderPairs
    from penstock.restore.schema_ids import SchemaIds

    Json = Any
    Convert = Callable[[Any], Any]

_BATCH = 1000
_AVRO_SCHEMA = b"parquet.avro.schema"
_KEY = ("RecordKey", "key")  # the record that columns of keys stand in, see `penstock.companions`
_NULLS = ("null", {"type": "null"})


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """Values or keys. `ids`: for data that came with a registry's schema; None for texts and bytes."""

    part: Part
    ids: SchemaIds | None

    def __call__(self, file: IO[bytes], key: str, topic: str) -> Iterator[bytes | None]:
        """Each row behind the wire prefix; the text or the bytes; or the document."""
        opened = _opened(file)
        text = _schema(opened)
        if text is None:
            encode = msgspec.json.Encoder().encode
            for batch in opened.iter_batches(_BATCH):
                yield from (encode(without_nulls(row)) for row in batch.to_pylist())
            return
        schema = json.loads(text)
        is_wrapped = isinstance(schema, dict) and schema.get("name") == _KEY[0]
        frame = framing(schema["fields"][0]["type"] if is_wrapped else schema, topic, self.part, key, self.ids)
        write = _bytes_of if self.ids is None else _Writer.of(frame.own, frame.prefix)
        for row in _values(opened, text):
            value = row[_KEY[1]] if is_wrapped else row
            yield None if value is None else write(value)


def rows(file: IO[bytes]) -> tuple[str | None, Iterator[dict[str, Any]]]:
    """The Avro schema that a file carries, if it does, and its rows: values of that schema, or columns as they are."""
    opened = _opened(file)
    text = _schema(opened)
    if text is not None:
        return text, _values(opened, text)
    return None, (row for batch in opened.iter_batches(_BATCH) for row in batch.to_pylist())


def without_nulls(value: Any) -> Any:  # noqa: ANN401 - a JSON value
    """A document without the members that are null, at its top, as far as columns can tell."""
    return {name: held for name, held in value.items() if held is not None} if isinstance(value, dict) else value


def headers(file: IO[bytes]) -> Iterator[HeaderPairs]:
    """The headers of each record."""
    opened = _opened(file)
    for row in _values(opened, _schema(opened) or "{}"):
        yield tuple((each["key"], None if each["value"] is None else each["value"].encode()) for each in row["headers"])


def _opened(file: IO[bytes]) -> pq.ParquetFile:
    return pq.ParquetFile(pa.PythonFile(file, mode="r"), pre_buffer=False)


def _schema(opened: pq.ParquetFile) -> str | None:
    """The Avro schema that a file carries."""
    found = (opened.metadata.metadata or {}).get(_AVRO_SCHEMA)
    return None if found is None else str(found, "utf-8")


def _values(opened: pq.ParquetFile, text: str) -> Iterator[Any]:
    """The rows as values of an Avro schema, in which times are numbers, enums texts and maps lists of pairs."""
    schema, columns = json.loads(text), Columns.compile(text).arrow
    texts, numbers = (
        pa.schema([pa.field(each.name, kind(each.type)) for each in columns]) for kind in (_texts, _numbers)
    )
    is_bare, is_optional = not _is_record(schema), isinstance(schema, list)
    for batch in opened.iter_batches(_BATCH):
        for row in pa.Table.from_batches([batch]).cast(texts).cast(numbers).to_pylist():
            if is_bare:
                yield row[VALUE]
            else:
                yield None if is_optional and all(value is None for value in row.values()) else row


def _is_record(schema: Json) -> bool:
    if isinstance(schema, list):
        rest = [branch for branch in schema if branch not in _NULLS]
        return len(rest) == 1 and len(schema) == 2 and _is_record(rest[0])  # noqa: PLR2004 - null and it
    return isinstance(schema, dict) and (schema["type"] in ("record", "error") or _is_record(schema["type"]))


def _texts(kind: pa.DataType) -> pa.DataType:
    """With texts in the place of enums, as Parquet has them."""
    return _mapped(kind, lambda leaf: pa.string() if pa.types.is_dictionary(leaf) else leaf)


def _numbers(kind: pa.DataType) -> pa.DataType:
    """With the numbers of dates and times, which Python's own cannot always hold."""
    return _mapped(_texts(kind), _number)


def _number(leaf: pa.DataType) -> pa.DataType:
    if pa.types.is_date32(leaf) or pa.types.is_time32(leaf):
        return pa.int32()
    return pa.int64() if pa.types.is_time64(leaf) or pa.types.is_timestamp(leaf) else leaf


def _mapped(kind: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A type with other types at its ends."""
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_mapped(each.type, leaf)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_mapped(kind.item_type, leaf)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_mapped(kind.value_type, leaf)))
    return leaf(kind)


def _bytes_of(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class _Writer:
    """Encodes values of a schema, behind a prefix."""

    prefix: bytes
    parsed: Any
    convert: Convert

    @classmethod
    def of(cls, schema: Json, prefix: bytes) -> _Writer:
        """For an Avro schema as JSON."""
        return cls(prefix, fastavro.parse_schema(raw(schema)), converting(schema, {}, ""))

    def __call__(self, value: Any) -> bytes:  # noqa: ANN401 - of the schema
        out = io.BytesIO()
        out.write(self.prefix)
        fastavro.schemaless_writer(out, self.parsed, self.convert(value))
        return out.getvalue()
