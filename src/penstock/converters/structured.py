"""Values with a schema in the registry that Connect represents as its own data: Protobuf and JSON Schema.

A value becomes a datum of the Avro schema that AvroData derives from Connect's, one by one in Python, the last resort;
lines of JSON are printed from what such a datum is made of.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec
import numpy as np

from penstock.columns import Part
from penstock.converters.avro_writer import writer
from penstock.converters.base import Chunk, Converted, FileSchema, RowFault, excerpt
from penstock.converters.connect_json import rendering
from penstock.converters.connect_schema import SchemaMistake, avro_schema
from penstock.converters.projection import UNREADABLE, projection, raw
from penstock.fields.avro import AvroField
from penstock.model import Gather

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from numpy.typing import NDArray

    from penstock.columns import Field
    from penstock.converters.base import Kind
    from penstock.converters.connect_json import DecimalFormat
    from penstock.converters.connect_schema import ConnectSchema
    from penstock.model import Records
    from penstock.registry import Registered, Registry

    Encode = Callable[[bytes], bytes | None]
    Bytes = NDArray[np.uint8]
    Longs = NDArray[np.int64]

_NULL = -2
_ENCODE = msgspec.json.Encoder().encode


class ValueMistake(ValueError):  # noqa: N818 - the producer's, not ours
    """A value that does not fit the schema it names; says why, in words that follow "its value "."""


@dataclass(frozen=True, slots=True)
class Typed:
    """One type of a schema. `read`: from a body to the datum that fastavro takes; None is a null value.

    `name`: what Connect calls the type. `path`: from a field's path to that in the Avro schema. `program`: what writes
    bodies as Avro data many at a time, but for those that it leaves to `read`. `read` raises `ValueMistake`.
    """

    schema: ConnectSchema
    name: str
    read: Callable[[bytes], Any]
    path: Callable[[str], str] = str
    program: Program | None = None


class Program(Protocol):
    """A compiled way from bodies to Avro data, the same as by `Typed.read`."""

    def run(self, data: Bytes, spans: Longs) -> tuple[Bytes, Longs, Longs]:
        """(data, where each row's end, 1 or, for rows that are left, 0) of `data[spans[i, 0]:spans[i, 1]]`."""
        ...


class Opened(Protocol):
    """A schema of the registry, made ready for its values.

    `first`: a first byte of values that says which type they have, and that type; None where there is no such byte.
    """

    @property
    def first(self) -> tuple[int, Hashable] | None: ...  # noqa: D102 - above

    def split(self, value: bytes) -> tuple[Hashable, bytes]:
        """Which of the schema's types a value (without its wire prefix) has, and its body. Raises `ValueMistake`."""
        ...

    def typed(self, which: Hashable) -> Typed:
        """That type. Raises `SchemaMistake`, or `ValueMistake` where there is no such type."""
        ...


class Source(Protocol):
    """A kind of schemas. `kind`: the registry's word for it; `word`: that for people."""

    @property
    def kind(self) -> str: ...  # noqa: D102 - above

    @property
    def word(self) -> str: ...  # noqa: D102 - above

    def open(self, registered: Registered) -> Opened:
        """Make a schema ready. Raises `SchemaMistake`."""
        ...


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a type was compiled to. `datum`, `encode`: a body in Avro, and in the wanted kind; None where it is null."""

    code: int
    text: str
    datum: Encode
    encode: Encode
    program: Program | None


@dataclass(slots=True)
class StructuredConverter:
    """Gives `avro` under the schema that AvroData derives, or `json` as Connect prints it."""

    kind: Kind
    registry: Registry
    source: Source
    connect_meta_data: bool = True
    decimals: DecimalFormat = "BASE64"
    part: Literal["value", "key"] = "value"
    _schemas: list[FileSchema] = field(default_factory=list)
    _opened: dict[tuple[int, str], tuple[Opened, int | None] | str] = field(default_factory=dict)
    _plans: dict[tuple[int, str, Hashable], _Plan | str] = field(default_factory=dict)
    _paths: dict[int, Callable[[str], str]] = field(default_factory=dict)
    _fields: dict[tuple[int, str], AvroField] = field(default_factory=dict)
    _data: tuple[Records, Converted] | None = None

    @property
    def gather(self) -> Gather:
        """The wire prefix is taken off; its schema ids become an array."""
        return Gather(strip=5)

    def schema(self, code: int) -> FileSchema:
        """The derived one; lines of JSON do not carry it, but files are told apart by it."""
        return self._schemas[code]

    def convert(self, records: Records) -> Converted:
        """Every value under its own schema."""
        if self.kind == "avro":
            return self._as_data(records)
        return self._each(records, range(len(records)), lambda plan, body: plan.encode(body))

    def field(self, records: Records, path: str) -> Field:
        """A field with the type that the schema gives it; read from Avro data made for it."""
        made = self._as_data(records)
        rows, codes = np.arange(len(records)), made.chunk.schemas
        nulls = np.zeros(len(records), dtype=np.bool_) if made.nulls is None else made.nulls
        faulty = np.zeros(len(records), dtype=np.bool_)
        faulty[[fault.row for fault in made.faults]] = True
        parts = [Part(name, rows[mine]) for name, mine in (("malformed", faulty), ("null", nulls)) if mine.any()]
        good = ~faulty & ~nulls
        for code in [] if codes is None else np.unique(codes[good]).tolist():
            if (code, path) not in self._fields:
                schema = json.loads(self._schemas[code].text)
                self._fields[code, path] = AvroField.compile(schema, self._paths[code](path))
            mine = rows[(codes == code) & good]
            parts.extend(self._fields[code, path].read(made.chunk.data, made.chunk.offsets, mine))
        return tuple(parts)

    def project(self, records: Records, rows: NDArray[np.int64], code: int) -> Converted:
        """Value by value, by Avro's rules, where the schema differs."""
        target = self._schemas[code].text
        finish = rendering(json.loads(target), self.decimals) if self.kind == "json" else None

        def projected(plan: _Plan, body: bytes) -> bytes | None:
            datum = None if plan.code == code else plan.datum(body)
            if datum is None:
                return plan.encode(body)
            between = projection(plan.text, target)
            try:
                if self.kind == "avro":
                    return between.datum(datum)
                value = between.value(datum)
            except UNREADABLE as error:
                msg = f"cannot be projected to the schema of its file ({error})"
                raise ValueMistake(msg) from error
            return _ENCODE(value if finish is None else finish(value)) + b"\n"

        made = self._each(records, rows.tolist(), projected)
        return Converted(
            Chunk(made.chunk.data, made.chunk.offsets, np.full(len(rows), code, np.int32)), made.faults, made.nulls
        )

    def _as_data(self, records: Records) -> Converted:
        """Avro data of a batch. The last one is kept: several fields are asked for one after the other."""
        kept = self._data
        if kept is None or kept[0] is not records:
            kept = records, self._written(records)
            self._data = kept
        return kept[1]

    def _written(self, records: Records) -> Converted:
        """Avro data: what the programs of the types take, and the rest one by one."""
        walked = self._walked(records)
        left = np.ones(len(records), dtype=np.bool_)
        for rows, *_ in walked:
            left[rows] = False
        rest = np.flatnonzero(left)
        made = self._each(records, rest.tolist(), lambda plan, body: plan.datum(body))
        if not walked:
            return made
        codes, nulls = np.zeros(len(records), dtype=np.int32), np.zeros(len(records), dtype=np.bool_)
        chunk = made.chunk
        codes[rest] = 0 if chunk.schemas is None else chunk.schemas
        nulls[rest] = False if made.nulls is None else made.nulls
        for rows, code, *_ in walked:
            codes[rows] = code
        faults = tuple(RowFault(int(rest[fault.row]), fault.reason) for fault in made.faults)
        pieces = [(rows, data, offsets) for rows, _, data, offsets in walked]
        data, offsets = interleaved([*pieces, (rest, chunk.data, chunk.offsets)], len(records))
        return Converted(Chunk(data, offsets, codes), faults, nulls if nulls.any() else None)

    def _walked(self, records: Records) -> list[tuple[Longs, int, Bytes, Longs]]:
        """For each schema with a program: the rows that it took, their code, their data and offsets into them."""
        ids, data, ends = records.schema_ids, records.values.data, records.values.offsets
        found = []
        for schema_id in [] if ids is None else np.unique(ids[ids >= 0]).tolist():
            plan, first = self._first_plan(schema_id, records.tp.topic)
            if plan is None or plan.program is None:
                continue
            rows = np.flatnonzero((ids == schema_id) & (np.diff(ends) > 0))
            rows = rows[data[ends[rows]] == first]
            made, stops, states = plan.program.run(data, np.stack((ends[rows] + 1, ends[rows + 1]), axis=1))
            taken = states == 1
            if taken.any():
                # Rows that are left have no data: their ends repeat those before them.
                found.append((rows[taken], plan.code, made, np.concatenate((np.zeros(1, np.int64), stops[taken]))))
        return found

    def _first_plan(self, schema_id: int, topic: str) -> tuple[_Plan | None, int]:
        """The plan of a schema's first type, and the byte that tells it; None where there is none, or a mistake."""
        opened = self._opened.get((schema_id, topic)) or self._looked_up(schema_id, topic)
        if isinstance(opened, str) or opened[0].first is None:
            return None, 0
        first = opened[0].first[0]
        try:
            return self._planned(schema_id, topic, bytes([first]))[0], first
        except ValueMistake:
            return None, first

    def _each(self, records: Records, rows: Sequence[int], encode: Callable[[_Plan, bytes], bytes | None]) -> Converted:
        ids = records.schema_ids
        if ids is None:
            msg = "the reader must lay out values with strip=5"
            raise ValueError(msg)
        schema_ids, topic = ids.tolist(), records.tp.topic
        view, ends = records.values.data.data, records.values.offsets.tolist()
        parts: list[bytes] = []
        codes, nulls = np.zeros(len(rows), dtype=np.int32), np.zeros(len(rows), dtype=np.bool_)
        faults = []
        for place, row in enumerate(rows):
            made: bytes | None = b""
            if schema_ids[row] == _NULL:
                nulls[place] = True
            else:
                value = view[ends[row] : ends[row + 1]].tobytes()
                try:
                    plan, body = self._planned(schema_ids[row], topic, value)
                    made = encode(plan, body)
                    codes[place], nulls[place] = plan.code, made is None
                except ValueMistake as mistake:
                    faults.append(RowFault(place, f"its value {mistake}; it is {excerpt(value)}"))
            parts.append(made or b"")
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        chunk = Chunk(np.frombuffer(b"".join(parts), dtype=np.uint8), offsets, codes)
        return Converted(chunk, tuple(faults), nulls if nulls.any() else None)

    def _planned(self, schema_id: int, topic: str, value: bytes) -> tuple[_Plan, bytes]:
        """The plan of a value's type, and its body."""
        opened = self._opened.get((schema_id, topic))
        if opened is None:
            opened = self._looked_up(schema_id, topic)
        if isinstance(opened, str):
            raise ValueMistake(opened)
        which, body = opened[0].split(value)
        plan = self._plans.get((schema_id, topic, which))
        if plan is None:
            try:
                plan = self._plan(opened[0].typed(which), opened[1])
            except SchemaMistake as mistake:
                plan = f"says schema id {schema_id}, which cannot be used: {mistake}"
            self._plans[schema_id, topic, which] = plan
        if isinstance(plan, str):
            raise ValueMistake(plan)
        return plan, body

    def _looked_up(self, schema_id: int, topic: str) -> tuple[Opened, int | None] | str:
        """A schema with its version, or why there is none; what the registry does not have is asked for again."""
        if schema_id < 0:
            return (
                f"is not {self.source.word} in Confluent's wire format (a zero byte and a schema id come first); set "
                f"{self.part}.converter to what the producer writes"
            )
        registered = self.registry.schema(schema_id, f"{topic}-{self.part}")
        if registered is None or registered.kind != self.source.kind:
            url = self.registry.url.rpartition("@")[2]
            return (
                f"says schema id {schema_id}, which the registry at {url} does not have as a {self.source.word} "
                f"schema; check {self.part}.converter.schema.registry.url, or register the schema again"
            )
        found: tuple[Opened, int | None] | str
        try:
            found = self.source.open(registered), registered.version
        except SchemaMistake as mistake:
            found = f"says schema id {schema_id}, which cannot be used: {mistake}"
        self._opened[schema_id, topic] = found
        return found

    def _plan(self, typed: Typed, version: int | None) -> _Plan:
        unseen = self.kind == "json"
        text = avro_schema(typed.schema, connect_meta_data=self.connect_meta_data, any_names=unseen)
        fingerprint = hashlib.sha256(text.encode()).hexdigest()[:16]
        schema = FileSchema(text, fingerprint, typed.name, version)
        if schema not in self._schemas:
            self._schemas.append(schema)
        code = self._schemas.index(schema)
        self._paths[code] = typed.path
        datum = _avro_writer(text, typed.read)
        encode = datum if self.kind == "avro" else _line_writer(text, typed.read, self.decimals)
        return _Plan(code, text, datum, encode, typed.program)


def interleaved(parts: Sequence[tuple[Longs, Bytes, Longs]], rows: int) -> tuple[Bytes, Longs]:
    """Rows of several buffers in one, in their order: parts are (row numbers, data, offsets into them)."""
    whole = next((part for part in parts if len(part[0]) == rows), None)
    if whole is not None:
        return whole[1], whole[2]
    pieces: list[bytes] = [b""] * rows
    for numbers, data, offsets in parts:
        view, ends = data.data, offsets.tolist()
        for at, row in enumerate(numbers.tolist()):
            pieces[row] = view[ends[at] : ends[at + 1]].tobytes()
    offsets = np.zeros(rows + 1, dtype=np.int64)
    np.cumsum([len(piece) for piece in pieces], out=offsets[1:])
    return np.frombuffer(b"".join(pieces), dtype=np.uint8), offsets


def _avro_writer(text: str, read: Callable[[bytes], Any]) -> Encode:
    write = writer(raw(json.loads(text)))

    def datum(body: bytes) -> bytes | None:
        value = read(body)
        if value is None:
            return None
        try:
            return write(value)
        except UNREADABLE as error:
            msg = f"cannot be written as Avro ({error})"
            raise ValueMistake(msg) from error

    return datum


def _line_writer(text: str, read: Callable[[bytes], Any], decimals: DecimalFormat) -> Encode:
    finish = rendering(json.loads(text), decimals)

    def line(body: bytes) -> bytes | None:
        value = read(body)
        if value is None:
            return None
        return _ENCODE(value if finish is None else finish(value)) + b"\n"

    return line
