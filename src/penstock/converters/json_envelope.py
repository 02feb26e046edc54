"""JSON with schemas (`value.converter.schemas.enable=true`): every value is an object of `schema` and `payload`.

Records are handled one by one in Python, the last resort; schemas only once, found again by their bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import fastavro
import msgspec
import numpy as np

from penstock.columns import Part
from penstock.converters.base import SCHEMALESS, Chunk, Converted, FileSchema, RowFault, excerpt
from penstock.converters.connect_schema import SchemaMistake, avro_schema, parse
from penstock.converters.envelope_values import PayloadMistake, reader
from penstock.converters.projection import raw
from penstock.fields.avro import AvroField
from penstock.fields.json import json_field
from penstock.model import Gather

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from penstock.columns import Field
    from penstock.converters.base import Kind
    from penstock.converters.connect_json import DecimalFormat
    from penstock.converters.connect_schema import ConnectSchema
    from penstock.model import Records

_NO_ENVELOPE = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional fields; '
    "set schemas.enable=false for the converter if there is plain JSON"
)
_MOST_PLANS = 1000
_MISMATCHES = (ValueError, TypeError, KeyError, OverflowError, AttributeError)


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    schema: msgspec.Raw
    payload: msgspec.Raw


class _RowMistake(Exception):  # noqa: N818 - the producer's, not ours
    """Why a row cannot be converted."""


class _NullValue(Exception):  # noqa: N818 - nobody's mistake
    """The value is null."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a schema was compiled to. `encode`: a payload's bytes in the wanted kind; raises `_RowMistake`."""

    code: int
    encode: Callable[[bytes], bytes]


@dataclass(slots=True)
class JsonEnvelopeConverter:
    """Gives `json`, the payloads as Connect prints them, or `avro` under the schema that AvroData derives.

    `content`: `schema.content`, the schema of all values, which are payloads alone then.
    """

    kind: Kind
    connect_meta_data: bool = True
    decimals: DecimalFormat = "BASE64"
    optional_map_keys: bool = False
    content: str = ""
    _schemas: list[FileSchema] = field(default_factory=list)
    _plans: dict[bytes, _Plan | str] = field(default_factory=dict)
    _by_code: dict[int, _Plan] = field(default_factory=dict)
    _typed: JsonEnvelopeConverter | None = None
    _fields: dict[tuple[int, str], AvroField] = field(default_factory=dict)

    _fixed: _Plan | None = None

    def __post_init__(self) -> None:
        """Raises `ValueError` where `content` is no schema that can be used."""
        if self.content:
            plan = self._planned(self.content.encode())
            if isinstance(plan, str):
                raise ValueError(plan.removeprefix("its schema "))
            self._fixed = plan

    @property
    def gather(self) -> Gather:
        """Values as they are."""
        return Gather()

    def schema(self, code: int) -> FileSchema:
        """Schemas of files; JSON lines carry none, so theirs is only a definition."""
        return self._schemas[code]

    def convert(self, records: Records) -> Converted:
        """Each payload under its own schema."""
        return self._converted(records, range(len(records)), None)

    def project(self, records: Records, rows: NDArray[np.int64], code: int) -> Converted:
        """Each payload read with the other schema: fields are found by name, and those it lacks take their default."""
        return self._converted(records, rows.tolist(), self._by_code[code])

    def field(self, records: Records, path: str) -> Field:
        """A field of the payloads with the type that their schema gives it; read from Avro data made for it."""
        if self._typed is None:
            self._typed = (
                self if self.kind == "avro" else replace(self, kind="avro", _schemas=[], _plans={}, _by_code={})
            )
        made = self._typed.convert(records)
        rows, codes = np.arange(len(records)), made.chunk.schemas
        plain = np.zeros(len(records), dtype=np.bool_)
        plain[[fault.row for fault in made.faults]] = True
        nulls = np.zeros(len(records), dtype=np.bool_) if made.nulls is None else made.nulls
        values = records.values
        parts = [*json_field(values.data, values.offsets, rows[plain], f"payload.{path}")] if plain.any() else []
        if nulls.any():
            parts.append(Part("null", rows[nulls]))
        for code in [] if codes is None else np.unique(codes[~plain & ~nulls]).tolist():
            if (code, path) not in self._fields:
                self._fields[code, path] = AvroField.compile(json.loads(self._typed.schema(code).text), path)
            mine = rows[(codes == code) & ~plain & ~nulls]
            parts.extend(self._fields[code, path].read(made.chunk.data, made.chunk.offsets, mine))
        return tuple(parts)

    def _converted(self, records: Records, rows: Sequence[int], under: _Plan | None) -> Converted:
        parts: list[bytes] = []
        codes = np.zeros(len(rows), dtype=np.int32)
        nulls, faults = np.zeros(len(rows), dtype=np.bool_), []
        for place, row in enumerate(rows):
            try:
                plan, payload = self._opened(records.values[row])
                parts.append((plan if under is None else under).encode(payload))
                codes[place] = plan.code if under is None else under.code
            except _NullValue:
                parts.append(b"")
                nulls[place] = True
            except _RowMistake as mistake:
                parts.append(b"")
                faults.append(RowFault(place, str(mistake)))
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        chunk = Chunk(np.frombuffer(b"".join(parts), dtype=np.uint8), offsets, codes)
        return Converted(chunk, tuple(faults), nulls if nulls.any() else None)

    def _opened(self, value: bytes | None) -> tuple[_Plan, bytes]:
        """The plan of a value's schema, and its payload."""
        if value is None:
            raise _NullValue
        if self._fixed is not None:
            return self._fixed, value
        try:
            envelope = _DECODER.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            shown = excerpt(value)
            if value.strip() == b"null":
                raise _NullValue from error
            msg = f"{_NO_ENVELOPE} ({error}); it is {shown}"
            raise _RowMistake(msg) from error
        text = bytes(envelope.schema)
        plan = self._plans.get(text)
        if plan is None:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            plan = self._plans[text] = self._planned(text)
        if isinstance(plan, str):
            raise _RowMistake(plan)
        return plan, bytes(envelope.payload)

    def _planned(self, text: bytes) -> _Plan | str:
        """A schema's plan, or why there is none."""
        if text == b"null":
            return self._schemaless()
        try:
            schema = parse(msgspec.json.decode(text), optional_map_keys=self.optional_map_keys)
            read = reader(schema, "avro" if self.kind == "avro" else "json", self.decimals)
            avro = self._avro_schema(schema)
            write = self._avro_writer(avro) if self.kind == "avro" else _json_line
        except _MISMATCHES as error:
            return f"its schema cannot be used ({error}); it is {excerpt(text, 120)}"
        fingerprint = hashlib.sha256(avro.encode() or text).hexdigest()[:16]
        found = FileSchema(avro, fingerprint, schema.name or "", schema.version)
        exact = msgspec.json.Decoder(float_hook=Decimal if b"data.Decimal" in text else None)

        def encode(payload: bytes) -> bytes:
            try:
                value = read(exact.decode(payload))
            except (PayloadMistake, msgspec.DecodeError) as error:
                msg = f"its payload does not fit its schema ({error}); mend the producer"
                raise _RowMistake(msg) from error
            if value is None:
                raise _NullValue
            return write(value)

        return self._kept(found, encode)

    def _avro_schema(self, schema: ConnectSchema) -> str:
        """The derived one; "" where JSON is wanted and Avro could not hold it."""
        try:
            return avro_schema(schema, connect_meta_data=self.connect_meta_data)
        except SchemaMistake:
            if self.kind == "avro":
                raise
            return ""

    def _schemaless(self) -> _Plan | str:
        if self.kind == "avro":
            return (
                "its schema is null, and without one there is nothing that format.class `avro` could write; "
                "set format.class=json, or let the producer send schemas"
            )

        def encode(payload: bytes) -> bytes:
            if payload == b"null":
                raise _NullValue
            return msgspec.json.format(payload, indent=-1) + b"\n"

        return self._kept(SCHEMALESS, encode)

    def _kept(self, schema: FileSchema, encode: Callable[[bytes], bytes]) -> _Plan:
        """With the code of its file schema: schemas that differ in white space only share one."""
        if schema not in self._schemas:
            self._schemas.append(schema)
        plan = _Plan(self._schemas.index(schema), encode)
        self._by_code.setdefault(plan.code, plan)
        return plan

    def _avro_writer(self, text: str) -> Callable[[Any], bytes]:
        parsed = fastavro.parse_schema(raw(json.loads(text)))

        def write(value: Any) -> bytes:  # noqa: ANN401 - Avro data
            out = io.BytesIO()
            try:
                fastavro.schemaless_writer(out, parsed, value)
            except _MISMATCHES as error:
                msg = f"its payload cannot be written as Avro ({error})"
                raise _RowMistake(msg) from error
            return out.getvalue()

        return write


_DECODER = msgspec.json.Decoder(_Envelope)
_ENCODE = msgspec.json.Encoder().encode


def _json_line(value: Any) -> bytes:  # noqa: ANN401 - what a reader gave
    return _ENCODE(value) + b"\n"
