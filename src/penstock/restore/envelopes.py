"""Records out of their envelopes (`store.envelope`): all that Kafka had of them comes back."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING, Any, ClassVar, Literal

import fastavro
import msgspec

from penstock.converters.projection import raw
from penstock.errors import PenstockError
from penstock.formats.packing import unpacked
from penstock.restore import parquet
from penstock.restore.avro_values import converting
from penstock.restore.payloads import WITH_SCHEMAS, behind_length, document
from penstock.restore.records import Record
from penstock.restore.schema_ids import standalone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.restore.framing import Part
    from penstock.restore.plan import Carried
    from penstock.restore.schema_ids import SchemaIds

    Json = Any
    Known = dict[str, Json]

_REST = ("headers", "timestamp", "topic", "partition", "offset")
_UNIONS = ("KeyUnion", "ValueUnion")  # records around unions, see `penstock.envelope`


class _Header(msgspec.Struct):
    key: str
    value: str | None


class _Document(msgspec.Struct):
    key: msgspec.Raw
    value: msgspec.Raw
    headers: list[_Header]
    timestamp: int
    offset: int


_DOCUMENT = msgspec.json.Decoder(_Document)


@dataclass(frozen=True, slots=True)
class EnvelopeRecords:
    """`form`: the format; `values`, `keys`: the converters; `ids`: called where Avro data need their schema's id."""

    form: Literal["avro", "json", "parquet"]
    values: str
    keys: str
    ids: Callable[[], SchemaIds]
    carries: ClassVar[Carried] = frozenset({"offset", "timestamp", "key", "headers"})

    @property
    def carried(self) -> Carried:
        """All that Kafka has."""
        return self.carries

    def read(self, file: IO[bytes], key: str, topic: str) -> Iterator[Record]:
        """One record at a time."""
        if self.form == "json":
            return self._documents(unpacked(file, key))
        return self._avro(file, key, topic) if self.form == "avro" else self._parquet(file, key, topic)

    def _documents(self, file: IO[bytes]) -> Iterator[Record]:
        value_of, key_of = document(self.values), document(self.keys)
        for line in file:
            held = _DOCUMENT.decode(line)
            pairs = tuple((each.key, None if each.value is None else each.value.encode()) for each in held.headers)
            yield Record(value_of(bytes(held.value)), key_of(bytes(held.key)), pairs, held.timestamp, held.offset)

    def _avro(self, file: IO[bytes], key: str, topic: str) -> Iterator[Record]:
        blocks = fastavro.block_reader(file)
        schema = json.loads(blocks.metadata["avro.schema"])
        keys, values = self._parts(schema, key, topic)
        fields = [each for each in schema["fields"] if each["name"] in _REST]
        rest = fastavro.parse_schema(raw({"type": "record", "name": "Rest", "fields": fields}))
        for block in blocks:
            stream = io.BytesIO(block.bytes_.getvalue())  # type: ignore[attr-defined]  # not in its types
            for _ in range(block.num_records):
                found_key, found_value = keys.cut(stream), values.cut(stream)
                held: Any = fastavro.schemaless_reader(stream, rest, None)
                yield _record(held, found_key, found_value)

    def _parquet(self, file: IO[bytes], key: str, topic: str) -> Iterator[Record]:
        text, rows = parquet.rows(file)
        if text is None:
            value_of, key_of = document(self.values), document(self.keys)
            for row in rows:
                parts = (msgspec.json.encode(parquet.without_nulls(row[name])) for name in ("value", "key"))
                value, found = next(parts), next(parts)
                yield _record(row, key_of(found), value_of(value))
            return
        keys, values = self._parts(json.loads(text), key, topic)
        for row in rows:
            yield _record(row, keys.encoded(row["key"]), values.encoded(row["value"]))

    def _parts(self, schema: Json, key: str, topic: str) -> tuple[_Part, _Part]:
        """How keys and values of a file are taken out of their envelopes."""
        types = {each["name"]: each["type"][1] for each in schema["fields"] if each["name"] in ("key", "value")}
        known: Known = {}
        made = []
        part: Part
        for part, converter in (("key", self.keys), ("value", self.values)):
            ids = self.ids() if converter in WITH_SCHEMAS else None
            made.append(_Part.of(types[part], known, partial(_prefix, ids=ids, place=(topic, part, key))))
        return made[0], made[1]


def _prefix(own: Json, ids: SchemaIds | None, place: tuple[str, Part, str]) -> bytes | None:
    """The wire prefix of a schema's data; None for texts and bytes."""
    if ids is not None:
        return b"\x00" + ids.require(own, *place).to_bytes(4, "big")
    if own not in ("string", "bytes"):
        msg = f"`{place[2]}` holds Avro data of another type than its connector's log says; it cannot be restored"
        raise PenstockError(msg)
    return None


def _record(held: Any, key: bytes | None, value: bytes | None) -> Record:  # noqa: ANN401 - a row
    pairs = tuple((each["key"], _bytes_of(each["value"])) for each in held["headers"] or ())
    return Record(value, key, pairs, held["timestamp"], held["offset"])


def _bytes_of(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class _Part:
    """The key or the value in an envelope. `prefix`: of its wire format, None for texts and bytes.

    `in_record`: a union, which stands in a record of one field.
    """

    parsed: Any
    convert: Callable[[Any], Any]
    prefix: bytes | None
    in_record: bool

    @classmethod
    def of(cls, schema: Json, known: Known, prefix: Callable[[Json], bytes | None]) -> _Part:
        """`known`: the types that parts before this one define; this one's are added."""
        in_record = isinstance(schema, dict) and schema.get("name") in _UNIONS
        inner = schema["fields"][0]["type"] if in_record else schema
        own = standalone(inner, known)
        convert = converting(inner, known, "")
        return cls(fastavro.parse_schema(raw(own)), convert, prefix(own), in_record)

    def cut(self, stream: io.BytesIO) -> bytes | None:
        """Take the part that comes next in encoded data."""
        if stream.read(1) == b"\x00":
            return None
        start = stream.tell()
        fastavro.schemaless_reader(stream, self.parsed, None)
        datum = bytes(stream.getbuffer()[start : stream.tell()])
        return behind_length(datum) if self.prefix is None else self.prefix + datum

    def encoded(self, value: Any) -> bytes | None:  # noqa: ANN401 - of the schema
        """A value of columns as Kafka had it."""
        if value is None or self.prefix is None:
            return _bytes_of(value)
        out = io.BytesIO()
        out.write(self.prefix)
        fastavro.schemaless_writer(out, self.parsed, self.convert(value["union"] if self.in_record else value))
        return out.getvalue()
