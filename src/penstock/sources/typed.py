"""The column `value` decoded by a converter: Avro, JSON or text as typed columns, whatever schema a record has."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock import converters
from penstock.converters.base import RowFault, excerpt
from penstock.converters.projection import UNREADABLE
from penstock.errors import DataError
from penstock.fields.avro import datum_ends, tables
from penstock.formats.rows import contiguous
from penstock.model import Slices
from penstock.sources import json as documents
from penstock.sources.avro import AvroReader
from penstock.sources.rows import text
from penstock.sources.types import conform

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from penstock.converters.base import Chunk, Converter, Kind
    from penstock.model import Gather, Records

_KIND: Mapping[str, Kind] = {"avro": "avro", "string": "text"}


def kind_of(converter: str) -> Kind:
    """The kind that a converter is asked for; everything that is not its own is typed by way of JSON."""
    return _KIND.get(converter, "json")


def build(converter: str, options: Mapping[str, str]) -> Converter:
    """The converter of a query. Raises ConfigError."""
    return converters.build(converter, kind_of(converter), options, separator=b"", connect_meta_data=False)


@dataclass(frozen=True, slots=True)
class Typed:
    """Values of one type. `tolerant`: one that cannot be decoded is null, not the end of the query."""

    type: pa.DataType
    converter: str
    options: Mapping[str, str] = field(repr=False)
    tolerant: bool = False

    def opened(self) -> TypedDecoder:
        """The converter, made in the process that reads."""
        return TypedDecoder(self, build(self.converter, self.options))


@dataclass(slots=True)
class TypedDecoder:
    """Decodes batch by batch; keeps a reader for each schema."""

    values: Typed
    converter: Converter
    _readers: dict[int, tuple[AvroReader, Any]] = field(default_factory=dict)

    @property
    def gather(self) -> Gather:
        """As the converter wants it."""
        return self.converter.gather

    def decode(self, records: Records) -> pa.Array:
        """Every value as the column's type."""
        converted = self.converter.convert(records)
        good = np.ones(len(records), np.bool_) if converted.nulls is None else ~converted.nulls
        faults = list(converted.faults)
        good[[fault.row for fault in faults]] = False
        rows = np.flatnonzero(good)
        kind = kind_of(self.values.converter)
        decode = {"avro": self._avro, "json": self._json}.get(kind, self._text)
        parts, more = decode(converted.chunk, rows)
        faults += more
        if faults and not self.values.tolerant:
            first = min(faults, key=lambda fault: fault.row)
            raise DataError(records.tp, int(records.offsets[first.row]), first.reason)
        return _placed(parts, len(records), self.values.type)

    def _avro(self, chunk: Chunk, rows: NDArray[np.int64]) -> tuple[list[_Part], list[RowFault]]:
        codes = np.zeros(len(chunk.offsets) - 1, np.int32) if chunk.schemas is None else chunk.schemas
        parts, faults = [], []
        for code in np.unique(codes[rows]).tolist():
            mine = rows[codes[rows] == code]
            found, bad = self._of_schema(chunk, mine, code)
            parts += found
            faults += bad
        return parts, faults

    def _of_schema(self, chunk: Chunk, rows: NDArray[np.int64], code: int) -> tuple[list[_Part], list[RowFault]]:
        reader, walkable = self._reader(code)
        ends = datum_ends(chunk.data, chunk.offsets, rows, walkable)
        faults = [self._malformed(chunk, int(row)) for row in rows[ends < 0]]
        rows, ends = rows[ends >= 0], ends[ends >= 0]
        body, count = _bodies(chunk, rows, ends), len(rows)
        try:
            return [(rows, conform(reader.block(body, count), self.values.type))], faults
        except (*UNREADABLE, pa.ArrowException):
            parts, more = self._one_by_one(reader, chunk, rows)
            return parts, faults + more

    def _one_by_one(
        self, reader: AvroReader, chunk: Chunk, rows: NDArray[np.int64]
    ) -> tuple[list[_Part], list[RowFault]]:
        """To find the row that is at fault."""
        parts: list[_Part] = []
        faults: list[RowFault] = []
        for row in rows.tolist():
            datum = chunk.data[chunk.offsets[row] : chunk.offsets[row + 1]].tobytes()
            try:
                value = conform(reader.array([reader.value(io.BytesIO(datum))]), self.values.type)
                parts.append((np.array([row]), value))
            except (*UNREADABLE, pa.ArrowException) as error:
                faults.append(RowFault(row, f"its value does not fit the column ({error}); it is {excerpt(datum)}"))
        return parts, faults

    def _json(self, chunk: Chunk, rows: NDArray[np.int64]) -> tuple[list[_Part], list[RowFault]]:
        data, offsets = contiguous(chunk, rows)
        if len(rows) and (data[offsets[:-1]] == ord("{")).all():  # Arrow's reader crashes on anything but objects
            found = documents.lines_array(data[offsets[0] : offsets[-1]].tobytes(), len(rows), self.values.type)
            if found is not None:
                return [(rows, found)], []
        parts: list[_Part] = []
        faults: list[RowFault] = []
        for row in rows.tolist():
            document = chunk.data[chunk.offsets[row] : chunk.offsets[row + 1]].tobytes()
            try:
                parts.append((np.array([row]), documents.document_array(document, self.values.type)))
            except documents.UNREADABLE as error:
                faults.append(RowFault(row, f"its value does not fit the column ({error}); it is {excerpt(document)}"))
        return parts, faults

    def _text(self, chunk: Chunk, rows: NDArray[np.int64]) -> tuple[list[_Part], list[RowFault]]:
        return [(rows, text(Slices(*contiguous(chunk, rows))))], []

    def _reader(self, code: int) -> tuple[AvroReader, Any]:
        if code not in self._readers:
            schema = self.converter.schema(code).text
            self._readers[code] = AvroReader.of(schema), tables(json.loads(schema))
        return self._readers[code]

    def _malformed(self, chunk: Chunk, row: int) -> RowFault:
        datum = chunk.data[chunk.offsets[row] : chunk.offsets[row + 1]].tobytes()
        return RowFault(row, f"its value does not fit the schema it names; it is {excerpt(datum)}")


_Part = tuple["NDArray[np.int64]", pa.Array]
"""Rows of a batch and their values."""


def _bodies(chunk: Chunk, rows: NDArray[np.int64], ends: NDArray[np.int64]) -> bytes:
    """The data of the rows, one behind the other, without what stands behind a datum."""
    if not len(rows):
        return b""
    if (ends == chunk.offsets[rows + 1]).all():
        data, offsets = contiguous(chunk, rows)
        return data[offsets[0] : offsets[-1]].tobytes()
    starts = chunk.offsets[rows]
    return b"".join(chunk.data[a:b].tobytes() for a, b in zip(starts.tolist(), ends.tolist(), strict=True))


def _placed(parts: Sequence[_Part], count: int, kind: pa.DataType) -> pa.Array:
    """The parts' values in the order of their rows; null in every other row."""
    if len(parts) == 1 and len(parts[0][0]) == count:
        return parts[0][1]
    if not parts:
        return pa.nulls(count, kind)
    order = np.concatenate([rows for rows, _ in parts])
    places = np.full(count, -1, np.int64)
    places[order] = np.arange(len(order))
    together = pa.concat_arrays([values for _, values in parts])
    return together.take(pa.array(places, mask=places < 0))
