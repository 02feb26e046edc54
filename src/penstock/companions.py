"""Keys and headers as objects of their own, beside the object of the values (reference s3-sink-connector 1.3 and 4.6).

They belong to the same cut and are committed with it. Null keys, records without headers and null header values are
kept: a file that holds one has a schema that allows it, every other file has the connector's.
"""

from __future__ import annotations

import base64
import json
import pickle
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec
import numpy as np

from penstock.converters.base import Chunk, Converted, FileSchema
from penstock.errors import DataError
from penstock.formats.avro import long_bytes
from penstock.kafka.batches import header_pairs, relaid
from penstock.openfile import committed

if TYPE_CHECKING:
    from concurrent.futures import Future

    from penstock.converters.base import Converter, Kind
    from penstock.formats.base import Encoder, Format, Rows
    from penstock.model import CommittedObject, CutReason, Records
    from penstock.openfile import Extent
    from penstock.spool import Spool
    from penstock.store.upload import ObjectWriter, StoredObject

_HEADER = {
    "type": "array",
    "items": {
        "type": "record",
        "name": "ConnectDefault",
        "namespace": "io.confluent.connect.avro",
        "fields": [{"name": "key", "type": "string"}, {"name": "value", "type": "string"}],
    },
}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch's keys or headers. `records`: what they were converted from."""

    records: Records
    converted: Converted


class Companion(Protocol):
    """One kind of object beside that of the values."""

    @property
    def view(self) -> Literal["keys", "headers"]:
        """What it holds."""
        ...

    @property
    def format(self) -> Format:
        """How it is written."""
        ...

    def prepare(self, records: Records) -> Prepared:
        """Convert a batch; its faults are bad records."""
        ...

    def items(self, prepared: Prepared, rows: Rows, code: int) -> list[Any]:
        """The rows as encoded items under the schema of `code`; None for what is null. Raises `DataError`."""
        ...

    def has_null(self, item: Any) -> bool:  # noqa: ANN401 - its own
        """Whether an item needs a schema that allows null."""
        ...

    def encode(self, item: Any, *, nullable: bool) -> bytes:  # noqa: ANN401 - its own
        """An item as the format takes it."""
        ...

    def schema(self, code: int, *, nullable: bool) -> FileSchema:
        """The schema of a file."""
        ...


@dataclass(frozen=True, slots=True)
class Keys:
    """Record keys through `key.converter`. `wrap`: in a record of one field, as columns want it."""

    converter: Converter
    kind: Kind
    format: Format
    wrap: bool = False
    view: Literal["keys"] = "keys"

    def prepare(self, records: Records) -> Prepared:
        """Keys are laid out as the converter wants values."""
        assert records.keys is not None  # noqa: S101 - the reader was asked for them
        values, ids = relaid(records.keys, self.converter.gather)
        keys = replace(records, values=values, schema_ids=ids)
        return Prepared(keys, self.converter.convert(keys))

    def items(self, prepared: Prepared, rows: Rows, code: int) -> list[bytes | None]:
        """Data or lines as they are; those of another schema are projected."""
        chunk, numbers = prepared.converted.chunk, np.arange(len(prepared.records))[rows]
        nulls = prepared.converted.nulls
        if chunk.schemas is not None:
            there = numbers if nulls is None else numbers[~nulls[numbers]]
            others = there[chunk.schemas[there] != code]
            if len(others):
                return self._projected(prepared, numbers, code)
        data, offsets = chunk.data.data, chunk.offsets.tolist()
        return [
            None if nulls is not None and nulls[row] else data[offsets[row] : offsets[row + 1]].tobytes()
            for row in numbers.tolist()
        ]

    def _projected(self, prepared: Prepared, numbers: Any, code: int) -> list[bytes | None]:  # noqa: ANN401 - rows
        made = self.converter.project(prepared.records, numbers, code)
        if made.faults:
            bad = made.faults[0]
            raise DataError(prepared.records.tp, int(prepared.records.offsets[numbers[bad.row]]), f"key: {bad.reason}")
        nulls, data, offsets = prepared.converted.nulls, made.chunk.data.data, made.chunk.offsets.tolist()
        return [
            None if nulls is not None and nulls[row] else data[offsets[at] : offsets[at + 1]].tobytes()
            for at, row in enumerate(numbers.tolist())
        ]

    def has_null(self, item: bytes | None) -> bool:
        """A null key."""
        return item is None

    def encode(self, item: bytes | None, *, nullable: bool) -> bytes:
        """In Avro the branch of the union stands in front."""
        if self.kind == "avro":
            return item or b"" if not nullable else b"\x00" if item is None else b"\x02" + item
        if item is None:
            return b"null\n" if self.kind == "json" else self.format.separator
        return item

    def schema(self, code: int, *, nullable: bool) -> FileSchema:
        """The key's own, or a union of null and it."""
        own = self.converter.schema(code)
        if not own.text:
            return own
        found = json.loads(own.text)
        found = ["null", found] if nullable else found
        wrapped = _wrapped("RecordKey", "key", found) if self.wrap else found
        return own if wrapped == json.loads(own.text) else replace(own, text=_compact(wrapped))


@dataclass(frozen=True, slots=True)
class Headers:
    """Record headers as texts: a list of key and value for each record."""

    kind: Kind
    format: Format
    wrap: bool = False
    view: Literal["headers"] = "headers"

    def prepare(self, records: Records) -> Prepared:
        """Nothing can be wrong with headers that the reader has checked."""
        empty = Chunk(np.empty(0, dtype=np.uint8), np.zeros(len(records) + 1, dtype=np.int64))
        return Prepared(records, Converted(empty))

    def items(self, prepared: Prepared, rows: Rows, code: int) -> list[Any]:  # noqa: ARG002 - one schema
        """Lists of (key, value as text or None)."""
        assert prepared.records.headers is not None  # noqa: S101 - the reader was asked for them
        numbers = np.arange(len(prepared.records))[rows].tolist()
        return [
            [(name, _text(value)) for name, value in header_pairs(prepared.records.headers[row] or b"")]
            for row in numbers
        ]

    def has_null(self, item: list[tuple[str, str | None]]) -> bool:
        """A header without a value."""
        return any(value is None for _, value in item)

    def encode(self, item: list[tuple[str, str | None]], *, nullable: bool) -> bytes:
        """A JSON object on a line, or an Avro array of records."""
        if self.kind == "json":
            return msgspec.json.encode({"headers": [{"key": name, "value": value} for name, value in item]}) + b"\n"
        body = b"".join(_avro(name) + _avro_value(value, nullable=nullable) for name, value in item)
        return (long_bytes(len(item)) + body if item else b"") + b"\x00"

    def schema(self, code: int, *, nullable: bool) -> FileSchema:  # noqa: ARG002 - there is one
        """The connector's, with a value that may be null where one is."""
        schema = json.loads(json.dumps(_HEADER))
        if nullable:
            schema["items"]["fields"][1]["type"] = ["null", "string"]
        text = _compact(_wrapped("RecordHeaders", "headers", schema) if self.wrap else schema)
        return FileSchema(text if self.kind == "avro" else "", "headers")


def _wrapped(name: str, field: str, schema: Any) -> Any:  # noqa: ANN401 - a schema
    """A record of one field, whose data are those of the field."""
    return {"type": "record", "name": name, "fields": [{"name": field, "type": schema}]}


def _compact(schema: Any) -> str:  # noqa: ANN401 - a schema
    return json.dumps(schema, separators=(",", ":"))


def _text(value: bytes | None) -> str | None:
    if value is None:
        return None
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return base64.b64encode(value).decode("ascii")


def _avro(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogatepass")
    return long_bytes(len(raw)) + raw


def _avro_value(value: str | None, *, nullable: bool) -> bytes:
    if not nullable:
        return _avro(value or "")
    return b"\x00" if value is None else b"\x02" + _avro(value)


@dataclass(slots=True)
class CompanionFile:
    """An open file of keys or headers. In Avro its items wait until it is known whether one is null."""

    key: str
    encoded_partition: str
    companion: Companion
    code: int
    writer: ObjectWriter
    extent: Extent
    waiting: Spool
    _nullable: bool = False
    _encoder: Encoder | None = None
    _pieces: int = 0

    def write(self, records: Records, prepared: Prepared, rows: Rows) -> None:
        """Append rows, of which there is at least one."""
        self.extent.add(records, rows)
        items = self.companion.items(prepared, rows, self.code)
        if "avro" not in self.companion.format.accepts:
            self._encode(items)
            return
        self._nullable = self._nullable or any(map(self.companion.has_null, items))
        pickle.dump(items, self.waiting, protocol=5)
        self._pieces += 1

    def close(self) -> Future[StoredObject]:
        """Write what waits and the format's end, and let the upload finish."""
        waiting = self.waiting.reader()
        for _ in range(self._pieces):
            self._encode(pickle.load(waiting))  # noqa: S301 - written above, in a file without a name
        for buffer in self._opened().finish():
            self.writer.write(buffer)
        return self.writer.close({"records": str(self.extent.records)}, self.extent.end)

    def abandon(self) -> None:
        """The file is not wanted: nothing of it stays."""
        self.waiting.clear()
        if self._encoder is not None:
            self._encoder.abandon()
        self.writer.abandon()

    def committed(self, stored: StoredObject, reason: CutReason) -> CommittedObject:
        """This file as a commit names it."""
        schema = self.companion.schema(self.code, nullable=self._nullable)
        made = committed(self.key, self.encoded_partition, self.extent, schema, stored, reason)
        return replace(made, view=self.companion.view)

    def _encode(self, items: list[Any]) -> None:
        raw = [self.companion.encode(item, nullable=self._nullable) for item in items]
        offsets = np.zeros(len(raw) + 1, dtype=np.int64)
        np.cumsum([len(each) for each in raw], out=offsets[1:])
        chunk = Chunk(np.frombuffer(b"".join(raw), dtype=np.uint8), offsets)
        for buffer in self._opened().write(chunk, slice(0, len(raw))):
            self.writer.write(buffer)

    def _opened(self) -> Encoder:
        if self._encoder is None:
            schema = self.companion.schema(self.code, nullable=self._nullable)
            self._encoder = self.companion.format.encoder(schema, self.key)
        return self._encoder


def companion_key(key: str, extension: str, companion: Companion) -> str:
    """The object key beside that of the values: `<name>.keys<extension>` (reference 2.4)."""
    return f"{key.removesuffix(extension)}.{companion.view}{companion.format.extension}"
