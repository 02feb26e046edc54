"""Avro in Confluent's wire format: a zero byte, the schema's id in four bytes, the binary datum."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec
import numpy as np

from penstock.columns import Part
from penstock.converters.avro_check import checker
from penstock.converters.avro_json import AvroLines
from penstock.converters.base import Chunk, Converted, FileSchema, RowFault, excerpt
from penstock.converters.connect_json import rendering
from penstock.converters.projection import UNREADABLE, projection, words
from penstock.converters.schemas import file_schema
from penstock.fields.avro import AvroField, depth_guard
from penstock.model import Gather, Slices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.columns import Field
    from penstock.converters.avro_check import Check
    from penstock.converters.base import Kind
    from penstock.converters.connect_json import DecimalFormat
    from penstock.model import Records
    from penstock.registry import Registered

_NULL, _UNKNOWN = -2, -1


class Schemas(Protocol):
    """Where schemas are found by their ids. `url`: how messages name it."""

    @property
    def url(self) -> str: ...  # noqa: D102 - above

    def schema(self, schema_id: int, subject: str) -> Registered | None:
        """The schema of an id; None where there is none. Raises `RegistryUnavailable`."""
        ...


@dataclass(slots=True)
class AvroConverter:
    """Gives `avro` by copying payloads, or `json` by compiled code; what that leaves is decoded in Python."""

    kind: Kind
    registry: Schemas
    connect_meta_data: bool = True
    decimals: DecimalFormat = "BASE64"
    part: Literal["value", "key"] = "value"
    _schemas: list[FileSchema] = field(default_factory=list)
    _codes: dict[tuple[int, str], int] = field(default_factory=dict)
    _fields: dict[tuple[int, str], AvroField] = field(default_factory=dict)
    _checks: dict[int, Check] = field(default_factory=dict)
    _lines: AvroLines = field(init=False)

    def __post_init__(self) -> None:
        self._lines = AvroLines(self.decimals)

    @property
    def gather(self) -> Gather:
        """The wire prefix is taken off; its schema ids become an array."""
        return Gather(strip=5)

    def schema(self, code: int) -> FileSchema:
        """The schema as a file carries it."""
        return self._schemas[code]

    def convert(self, records: Records) -> Converted:
        """Every id of the batch is looked up once; the payloads stay where they are."""
        codes, ids = self._row_codes(records)
        bad = np.flatnonzero((codes < 0) & (ids != _NULL))
        faults = tuple(RowFault(int(row), self._reason(records, int(row), int(ids[row]))) for row in bad)
        nulls = ids == _NULL
        codes = np.maximum(codes, 0)
        values = records.values
        without = nulls.copy()
        without[bad] = True
        if self.kind == "avro":
            faults = (*faults, *self._malformed(values, codes, np.flatnonzero(~without)))
            every = tuple(sorted(faults, key=lambda fault: fault.row))
            return Converted(Chunk(values.data, values.offsets, codes), every, nulls if nulls.any() else None)
        for code in np.flatnonzero(np.bincount(codes[~without])).tolist():
            self._lines.learn(code, self._schemas[code].text)
        chunk, unreadable = self._lines.lines(values, codes, without)
        every = tuple(sorted((*faults, *unreadable), key=lambda fault: fault.row))
        return Converted(Chunk(chunk.data, chunk.offsets, codes), every, nulls if nulls.any() else None)

    def field(self, records: Records, path: str) -> Field:
        """A field of the data, read without decoding them."""
        codes, _ = self._row_codes(records)
        parts: list[Part] = []
        for code in np.unique(codes).tolist():
            rows = np.flatnonzero(codes == code)
            if code < 0:
                parts.append(Part("null", rows))
                continue
            if (code, path) not in self._fields:
                self._fields[code, path] = AvroField.compile(json.loads(self._schemas[code].text), path)
            parts.extend(self._fields[code, path].read(records.values.data, records.values.offsets, rows))
        return tuple(parts)

    def project(self, records: Records, rows: NDArray[np.int64], code: int) -> Converted:
        """Value by value, where the schema differs."""
        codes, _ = self._row_codes(records)
        target, made, faults = self._schemas[code], [], []
        encode = msgspec.json.Encoder().encode
        finish = rendering(json.loads(target.text), self.decimals) if self.kind == "json" else None
        for at, row in enumerate(rows.tolist()):
            datum = records.values[row] or b""
            try:
                if self.kind == "avro":
                    same = codes[row] == code
                    text = self._schemas[codes[row]].text
                    made.append(datum if same else projection(text, target.text).datum(datum))
                else:
                    value = projection(self._schemas[codes[row]].text, target.text).value(datum)
                    made.append(encode(value if finish is None else finish(value)) + b"\n")
            except UNREADABLE as error:
                made.append(b"")
                faults.append(RowFault(at, f"its value cannot be projected to the schema of its file ({words(error)})"))
        offsets = np.zeros(len(made) + 1, dtype=np.int64)
        np.cumsum([len(each) for each in made], out=offsets[1:])
        schemas = np.full(len(made), code, dtype=np.int32)
        return Converted(Chunk(np.frombuffer(b"".join(made), dtype=np.uint8), offsets, schemas), tuple(faults))

    def _row_codes(self, records: Records) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The schema code of each row, -1 where it has none, and its schema id."""
        ids = records.schema_ids
        if ids is None:
            msg = "the reader must lay out values with strip=5"
            raise ValueError(msg)
        first = int(ids[0])
        distinct = [first] if (ids == first).all() else np.unique(ids).tolist()
        codes = np.full(len(ids), _UNKNOWN, dtype=np.int32)
        for schema_id in distinct:
            code = self._code(schema_id, records.tp.topic) if schema_id >= 0 else None
            if code is not None:
                codes[ids == schema_id] = code
        return codes, ids

    def _code(self, schema_id: int, topic: str) -> int | None:
        """The code of an id's file schema; ids with the same file schema share one."""
        key = (schema_id, topic)
        if key not in self._codes:
            found = self.registry.schema(schema_id, f"{topic}-{self.part}")
            if found is None or found.kind != "AVRO":
                return None
            schema = file_schema(found.text, found.version, connect_meta_data=self.connect_meta_data, named=found.named)
            if schema not in self._schemas:
                self._schemas.append(schema)
            self._codes[key] = self._schemas.index(schema)
        return self._codes[key]

    def _reason(self, records: Records, row: int, schema_id: int) -> str:
        if schema_id >= 0:
            url = self.registry.url.rpartition("@")[2]
            return (
                f"its value says schema id {schema_id}, which the registry at {url} does not have as an Avro schema; "
                "check value.converter.schema.registry.url, or register the schema again"
            )
        return (
            "its value is not Avro in Confluent's wire format (a zero byte and a schema id come first); "
            f"it is {excerpt(records.values[row])}; set value.converter to what the producer writes"
        )

    def _malformed(self, values: Slices, codes: NDArray[np.int32], rows: NDArray[np.intp]) -> list[RowFault]:
        """The rows that are no data of their schema: one of them would make its whole file unreadable."""
        found = []
        for code in np.flatnonzero(np.bincount(codes[rows])).tolist():
            if code not in self._checks:
                self._checks[code] = checker(self._schemas[code].text)
            mine = rows[codes[rows] == code]
            for row in mine[self._checks[code](values.data, values.offsets, mine)].tolist():
                shown, why = excerpt(values[row]), self._depth(code, values[row] or b"")
                found.append(RowFault(row, f"its value does not fit the schema it names{why}; it is {shown}"))
        return found

    def _depth(self, code: int, datum: bytes) -> str:
        """What is wrong with the nesting of a datum, if anything is."""
        try:
            depth_guard(json.loads(self._schemas[code].text))(datum)
        except ValueError as error:
            return f" ({error})"
        return ""
