"""`store.envelope`: one record with all that Kafka has of it, around what another converter gives of its value.

Fields: key, value, headers (names and bytes), timestamp, topic, partition, offset. In Avro the key and the value are
unions of null and their own schema; in JSON they are documents, and headers texts (base64 where they are no UTF-8).
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from penstock.compiled import compiled, memcpy
from penstock.converters.base import Chunk, Converted, FileSchema, RowFault
from penstock.converters.schemas import without_known
from penstock.formats.avro import long_bytes
from penstock.kafka.batches import header_pairs, relaid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.columns import Field
    from penstock.converters.base import Converter, Kind
    from penstock.model import Gather, Records

    Bytes = NDArray[np.uint8]
    Longs = NDArray[np.int64]
    Piece = tuple[Bytes, Longs, NDArray[np.bool_]]

_HEADERS = {
    "type": "array",
    "items": {
        "type": "record",
        "name": "Header",
        "fields": [{"name": "key", "type": "string"}, {"name": "value", "type": ["null", "bytes"]}],
    },
}
_NUMBER_BYTES = 10
_NULL, _NO_SCHEMA = -1, FileSchema('"null"')  # of what is null
_ENCODE = msgspec.json.Encoder().encode


@dataclass(slots=True)
class EnvelopeConverter:
    """Wraps the values of a converter. `keys`: that of the keys, of the same kind.

    `nulls_too`: null values are records like others; otherwise they are told as nulls.
    """

    kind: Kind
    values: Converter
    keys: Converter
    nulls_too: bool = False
    _schemas: list[FileSchema] = field(default_factory=list)
    _pairs: dict[tuple[int, int], int | str] = field(default_factory=dict)
    _parts: list[tuple[int, int]] = field(default_factory=list)

    @property
    def gather(self) -> Gather:
        """As the values' converter, with keys and headers."""
        return replace(self.values.gather, keys=True, headers=True)

    def schema(self, code: int) -> FileSchema:
        """The envelope around two schemas."""
        return self._schemas[code]

    def convert(self, records: Records) -> Converted:
        """Every record in its envelope."""
        keys = self.keys.convert(self._keyed(records))
        values = self.values.convert(records)
        codes, misfits = self._codes(keys, values, len(records))
        chunk = self._wrapped(records, np.arange(len(records)), keys, values)
        told = [RowFault(each.row, f"key: {each.reason}") for each in keys.faults]
        faults = {each.row: each for each in (*misfits, *told, *values.faults)}
        every = tuple(faults[row] for row in sorted(faults))
        return Converted(replace(chunk, schemas=codes), every, None if self.nulls_too else values.nulls)

    def field(self, records: Records, path: str) -> Field:
        """A field of the value."""
        return self.values.field(records, path)

    def project(self, records: Records, rows: NDArray[np.int64], code: int) -> Converted:
        """Key and value each under their part of the schema."""
        key_code, value_code = self._parts[code]
        keys = _projected(self.keys, self._keyed(records), rows, key_code)
        values = _projected(self.values, records, rows, value_code)
        chunk = self._wrapped(records, rows, keys, values)
        schemas = np.full(len(rows), code, dtype=np.int32)
        return Converted(replace(chunk, schemas=schemas), (*keys.faults, *values.faults))

    def _keyed(self, records: Records) -> Records:
        """The keys as if they were values."""
        assert records.keys is not None  # noqa: S101 - the reader was asked for them
        laid, ids = relaid(records.keys, self.keys.gather)
        return replace(records, values=laid, schema_ids=ids)

    def _codes(self, keys: Converted, values: Converted, rows: int) -> tuple[NDArray[np.int32], list[RowFault]]:
        """The envelope's code of each row, and the rows whose key and value cannot be in one."""
        zeros = np.zeros(rows, dtype=np.int32)
        of_keys, of_values = (
            zeros if made.chunk.schemas is None else np.where(_nulls(made, rows), np.int32(_NULL), made.chunk.schemas)
            for made in (keys, values)
        )
        pairs = (of_keys.astype(np.int64) + 1) << 32 | (of_values.astype(np.int64) + 1)
        codes, faults = np.zeros(rows, dtype=np.int32), []
        for pair in np.unique(pairs).tolist():
            mine = pairs == pair
            code = self._code((pair >> 32) - 1, (pair & 0xFFFFFFFF) - 1)
            if isinstance(code, str):
                faults += [RowFault(row, code) for row in np.flatnonzero(mine).tolist()]
            else:
                codes[mine] = code
        return codes, faults

    def _code(self, key: int, value: int) -> int | str:
        if (key, value) not in self._pairs:
            try:
                schema = self._schema(key, value)
            except ValueError as error:
                self._pairs[key, value] = str(error)
                return str(error)
            self._schemas.append(schema)
            self._parts.append((key, value))
            self._pairs[key, value] = len(self._schemas) - 1
        return self._pairs[key, value]

    def _schema(self, key: int, value: int) -> FileSchema:
        """The envelope around two codes. Raises `ValueError` where both define one name in two ways."""
        of_key = _NO_SCHEMA if key == _NULL else self.keys.schema(key)
        of_value = _NO_SCHEMA if value == _NULL else self.values.schema(value)
        around = (
            "" if key == _NULL else of_key.fingerprint or "-",
            "" if value == _NULL else of_value.fingerprint or "-",
        )
        if not (of_key.text and of_value.text):
            return FileSchema("", of_value.fingerprint, of_value.name, of_value.version, around)
        return replace(_around(of_key, of_value), around=around)

    def _wrapped(self, records: Records, rows: NDArray[np.int64], keys: Converted, values: Converted) -> Chunk:
        """Rows of a batch, whose keys and values were made for them alone."""
        heads = [records.headers[row] if records.headers is not None else None for row in rows.tolist()]
        if self.kind == "avro":
            return _avro(records, rows, _piece(keys), _piece(values), [_avro_headers(each or b"") for each in heads])
        return _json(records, rows, _piece(keys), _piece(values), [_json_headers(each or b"") for each in heads])


def _nulls(made: Converted, rows: int) -> NDArray[np.bool_]:
    return np.zeros(rows, dtype=np.bool_) if made.nulls is None else made.nulls


def _projected(converter: Converter, records: Records, rows: NDArray[np.int64], code: int) -> Converted:
    """Rows under the schema of `code`; those that are null stay so."""
    nulls = _nulls(converter.convert(records), len(records))[rows]
    there = np.flatnonzero(~nulls)
    made = converter.project(records, rows[there], max(code, 0)) if len(there) else None
    sizes = np.zeros(len(rows), dtype=np.int64)
    if made is None:
        return Converted(Chunk(np.empty(0, dtype=np.uint8), np.zeros(len(rows) + 1, dtype=np.int64)), (), nulls)
    sizes[there] = np.diff(made.chunk.offsets)
    offsets = made.chunk.offsets[0] + np.concatenate([[0], np.cumsum(sizes)])
    faults = tuple(replace(each, row=int(there[each.row])) for each in made.faults)
    return Converted(Chunk(made.chunk.data, offsets), faults, nulls)


def _piece(made: Converted) -> Piece:
    nulls = _nulls(made, len(made.chunk.offsets) - 1)
    return np.require(made.chunk.data, requirements="W"), made.chunk.offsets, nulls


def _around(key: FileSchema, value: FileSchema) -> FileSchema:
    """The schema of an envelope. Raises `ValueError` where both define one name in two ways."""
    of_key = json.loads(key.text)
    of_value = without_known(json.loads(value.text), of_key)
    schema = {
        "type": "record",
        "name": "Envelope",
        "namespace": "io.penstock",
        "fields": [
            {"name": "key", "type": _optional(of_key, "KeyUnion")},
            {"name": "value", "type": _optional(of_value, "ValueUnion")},
            {"name": "headers", "type": _HEADERS},
            {"name": "timestamp", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "topic", "type": "string"},
            {"name": "partition", "type": "int"},
            {"name": "offset", "type": "long"},
        ],
    }
    text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    return FileSchema(text, hashlib.sha256(text.encode()).hexdigest()[:16], value.name, value.version)


def _optional(schema: Any, name: str) -> Any:  # noqa: ANN401 - a schema
    """With null in front: a union that is there keeps its own branches behind it, within a record of that name."""
    if isinstance(schema, list):
        return ["null", {"type": "record", "name": name, "fields": [{"name": "union", "type": schema}]}]
    return ["null", "bytes" if schema == "null" else schema]


def _avro_headers(raw: bytes) -> bytes:
    pairs = header_pairs(raw)
    parts = [_text(name.encode("utf-8", "surrogatepass")) + _maybe(value) for name, value in pairs]
    return (long_bytes(len(parts)) + b"".join(parts) if parts else b"") + b"\x00"


def _text(data: bytes) -> bytes:
    return long_bytes(len(data)) + data


def _maybe(value: bytes | None) -> bytes:
    return b"\x00" if value is None else b"\x02" + _text(value)


def _json_headers(raw: bytes) -> bytes:
    return _ENCODE([{"key": name, "value": _shown(value)} for name, value in header_pairs(raw)])


def _shown(value: bytes | None) -> str | None:
    if value is None:
        return None
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return base64.b64encode(value).decode("ascii")


def _avro(records: Records, rows: Longs, keys: Piece, values: Piece, headers: list[bytes]) -> Chunk:
    head_offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in headers], out=head_offsets[1:])
    place = _text(records.tp.topic.encode()) + long_bytes(records.tp.partition)
    most = int(keys[1][-1] - keys[1][0] + values[1][-1] - values[1][0] + head_offsets[-1])
    out = np.empty(most + len(rows) * (2 + 2 * _NUMBER_BYTES + len(place)), dtype=np.uint8)
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    _wrap(
        out,
        offsets,
        keys,
        values,
        (np.frombuffer(b"".join(headers), dtype=np.uint8), head_offsets),
        (records.timestamps[rows], np.frombuffer(place, dtype=np.uint8).copy(), records.offsets[rows]),
    )
    return Chunk(out, offsets)


@compiled
def _put(out: Bytes, at: int, source: Bytes, start: int, end: int) -> int:
    """Copy bytes; the place behind them."""
    if end > start:
        memcpy(out, at, source, start, end - start)
    return at + end - start


@compiled
def _put_long(out: Bytes, at: int, number: int) -> int:
    """A zigzag varint; the place behind it."""
    left = np.uint64((number << 1) ^ (number >> 63))
    while left > np.uint64(0x7F):
        out[at] = np.uint8((left & np.uint64(0x7F)) | np.uint64(0x80))
        left >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(left)
    return at + 1


@compiled
def _wrap(
    out: Bytes,
    offsets: Longs,
    keys: Piece,
    values: Piece,
    headers: tuple[Bytes, Longs],
    numbers: tuple[Longs, Bytes, Longs],
) -> None:
    """Fill `out`, which has room for all, and `offsets`."""
    timestamps, place, places = numbers
    at = np.int64(0)
    for row in range(len(offsets) - 1):
        for data, starts, nulls in (keys, values):
            out[at] = 0 if nulls[row] else 2
            at += 1
            if not nulls[row]:
                at = _put(out, at, data, starts[row], starts[row + 1])
        at = _put(out, at, headers[0], headers[1][row], headers[1][row + 1])
        at = _put_long(out, at, timestamps[row])
        at = _put(out, at, place, 0, len(place))
        at = _put_long(out, at, places[row])
        offsets[row + 1] = at


def _json(records: Records, rows: Longs, keys: Piece, values: Piece, headers: list[bytes]) -> Chunk:
    topic, partition = _ENCODE(records.tp.topic), records.tp.partition
    lines = [
        b'{"key":%s,"value":%s,"headers":%s,"timestamp":%d,"topic":%s,"partition":%d,"offset":%d}\n'
        % (key, value, head, timestamp, topic, partition, offset)
        for key, value, head, timestamp, offset in zip(
            _documents(keys),
            _documents(values),
            headers,
            records.timestamps[rows].tolist(),
            records.offsets[rows].tolist(),
            strict=True,
        )
    ]
    offsets = np.zeros(len(lines) + 1, dtype=np.int64)
    np.cumsum([len(line) for line in lines], out=offsets[1:])
    return Chunk(np.frombuffer(b"".join(lines), dtype=np.uint8), offsets)


def _documents(piece: Piece) -> list[bytes]:
    data, offsets, nulls = piece[0].data, piece[1].tolist(), piece[2].tolist()
    return [
        b"null" if null else data[start : end - 1].tobytes()
        for start, end, null in zip(offsets, offsets[1:], nulls, strict=False)
    ]


def warm() -> None:
    """Compile, or load from numba's cache, what wraps Avro data."""
    empty, longs, flags = np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.bool_)
    piece = (empty, longs, flags)
    _wrap(empty, longs, piece, piece, (empty, longs), (longs[:0], empty, longs[:0]))
