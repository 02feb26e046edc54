"""The column `value` decoded by a converter: Avro, JSON or text as typed columns, whatever schema a record has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock import converters
from penstock.converters.base import RowFault, excerpt
from penstock.errors import DataError
from penstock.formats.rows import contiguous
from penstock.model import Slices
from penstock.sources import json as documents
from penstock.sources.avro import AvroReader
from penstock.sources.columns import text
from penstock.sources.types import conform

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from penstock.converters.base import Chunk, Converter, Kind
    from penstock.model import Gather, Records


def kind_of(converter: str) -> Kind:
    """The kind that a converter (of `converters.resolve`) is asked for: Avro has types, JSON gets them by looking."""
    if converter == "string":
        return "text"
    return "avro" if "avro" in converters.KINDS[converter] else "json"


def build(converter: str, options: Mapping[str, str]) -> Converter:
    """The converter of a query. Raises ConfigError."""
    plain = converters.ConverterOptions(connect_meta_data=False)
    return converters.build(converter, kind_of(converter), options, plain)


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
    """Decodes batch by batch; keeps a reader for each schema. `seen`: see `penstock.sources.values.Decoder`."""

    values: Typed
    converter: Converter
    seen: set[pa.DataType] | None = None
    _readers: dict[int, AvroReader] = field(default_factory=dict)

    @property
    def gather(self) -> Gather:
        """As the converter wants it."""
        return self.converter.gather

    def decode(self, records: Records) -> pa.Array:
        """Every value as the column's type."""
        values, faults, _ = self.looked_at(records)
        if faults and not self.values.tolerant:
            first = min(faults, key=lambda fault: fault.row)
            raise DataError(records.tp, int(records.offsets[first.row]), first.reason)
        return values

    def looked_at(self, records: Records) -> tuple[pa.Array, list[RowFault], NDArray[np.bool_]]:
        """(every value as the column's type, what cannot be decoded, which values there are).

        Where there is no value the column is null.
        """
        converted = self.converter.convert(records)
        good = np.ones(len(records), np.bool_) if converted.nulls is None else ~converted.nulls
        faults = list(converted.faults)
        good[[fault.row for fault in faults]] = False
        rows = np.flatnonzero(good)
        kind = kind_of(self.values.converter)
        decode = {"avro": self._avro, "json": self._json}.get(kind, self._text)
        parts, more = decode(converted.chunk, rows)
        faults += more
        good[[fault.row for fault in more]] = False
        return _placed(parts, len(records), self.values.type), faults, good

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
        if code not in self._readers:
            self._readers[code] = AvroReader.of(self.converter.schema(code).text)
        if self.seen is not None:
            self.seen.add(self._readers[code].type)
        return self._conformed(self._readers[code], chunk, rows)

    def _conformed(
        self, reader: AvroReader, chunk: Chunk, rows: NDArray[np.int64]
    ) -> tuple[list[_Part], list[RowFault]]:
        """Where a value does not fit the column, the rows are halved until it is found."""
        if not len(rows):
            return [], []
        try:
            return [(rows, conform(reader.array(chunk.data, chunk.offsets, rows), self.values.type))], []
        except (pa.ArrowException, ValueError) as error:
            if len(rows) == 1:
                return [], [_misfit(chunk, int(rows[0]), str(error))]
        half = len(rows) // 2
        parts, faults = self._conformed(reader, chunk, rows[:half])
        more_parts, more_faults = self._conformed(reader, chunk, rows[half:])
        return parts + more_parts, faults + more_faults

    def _json(self, chunk: Chunk, rows: NDArray[np.int64]) -> tuple[list[_Part], list[RowFault]]:
        data, offsets = contiguous(chunk, rows)
        found, bad = documents.rows(data[offsets[0] : offsets[-1]], offsets - offsets[0], self.values.type, self.seen)
        good = np.ones(len(rows), np.bool_)
        good[list(bad)] = False
        return [(rows[good], found)], [_misfit(chunk, int(rows[row]), why) for row, why in bad.items()]

    def _text(self, chunk: Chunk, rows: NDArray[np.int64]) -> tuple[list[_Part], list[RowFault]]:
        return [(rows, text(Slices(*contiguous(chunk, rows))))], []


def _misfit(chunk: Chunk, row: int, why: str) -> RowFault:
    value = chunk.data[chunk.offsets[row] : chunk.offsets[row + 1]].tobytes()
    return RowFault(row, f"its value cannot be decoded ({why}); it is {excerpt(value)}")


_Part = tuple["NDArray[np.int64]", pa.Array]
"""Rows of a batch and their values."""


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
