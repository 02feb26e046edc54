"""Avro in Confluent's wire format: a zero byte, the schema's id in four bytes, the binary datum."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import fastavro
import msgspec
import numpy as np

from penstock.converters.base import NULL_VALUE, SCHEMALESS, Chunk, Converted, FileSchema, RowFault, excerpt
from penstock.converters.lines import joined
from penstock.converters.schemas import file_schema
from penstock.model import Gather

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from penstock.converters.base import Kind
    from penstock.model import Records
    from penstock.registry import Registry

_NULL = -2
_UNREADABLE = (ValueError, TypeError, KeyError, IndexError, EOFError, OverflowError)


@dataclass(slots=True)
class AvroConverter:
    """Gives `avro` by copying payloads, or `json` by decoding them a batch at a time."""

    kind: Kind
    registry: Registry
    connect_meta_data: bool = True
    _schemas: list[FileSchema] = field(default_factory=list)
    _codes: dict[tuple[int, str], int] = field(default_factory=dict)
    _decoders: dict[int, Any] = field(default_factory=dict)

    @property
    def gather(self) -> Gather:
        """The wire prefix is taken off; its schema ids become an array."""
        return Gather(strip=5)

    def schema(self, code: int) -> FileSchema:
        """Schemas of files; JSON lines carry none."""
        return self._schemas[code] if self.kind == "avro" else SCHEMALESS

    def convert(self, records: Records) -> Converted:
        """Every id of the batch is looked up once; the payloads stay where they are."""
        ids = records.schema_ids
        if ids is None:
            msg = "the reader must lay out values with strip=5"
            raise ValueError(msg)
        rows, fault = _first_bad(ids, records)
        codes = np.zeros(len(ids), dtype=np.int32)
        for schema_id in np.unique(ids[:rows]):
            mine = np.flatnonzero(ids[:rows] == schema_id)
            code = self._code(int(schema_id), records.tp.topic)
            if code is None:
                if mine[0] < rows:
                    rows, fault = int(mine[0]), self._unknown(int(mine[0]), int(schema_id))
                continue
            codes[mine] = code
        faults = () if fault is None else (fault,)
        values = records.values
        if self.kind == "avro":
            return Converted(Chunk(values.data, values.offsets, codes), faults)
        return self._as_json(records, codes, rows, faults)

    def _code(self, schema_id: int, topic: str) -> int | None:
        """The code of an id's file schema; ids with the same file schema share one."""
        key = (schema_id, topic)
        if key not in self._codes:
            found = self.registry.schema(schema_id, f"{topic}-value")
            if found is None or found.kind != "AVRO":
                return None
            schema = file_schema(found.text, found.version, connect_meta_data=self.connect_meta_data, named=found.named)
            if schema not in self._schemas:
                self._schemas.append(schema)
            self._codes[key] = self._schemas.index(schema)
        return self._codes[key]

    def _unknown(self, row: int, schema_id: int) -> RowFault:
        url = self.registry.url.rpartition("@")[2]
        reason = (
            f"its value says schema id {schema_id}, which the registry at {url} does not have as an Avro schema; "
            "check value.converter.schema.registry.url, or register the schema again"
        )
        return RowFault(row, reason)

    def _as_json(
        self, records: Records, codes: NDArray[np.int32], rows: int, faults: tuple[RowFault, ...]
    ) -> Converted:
        lines: list[bytes] = []
        encode = msgspec.json.Encoder().encode
        for start, end in _runs(codes[:rows]):
            try:
                lines.extend(encode(datum) for datum in self._decode(records, int(codes[start]), start, end))
            except _UNREADABLE as error:
                row = len(lines)
                reason = f"its value does not fit the schema it names ({error}); it is {excerpt(records.values[row])}"
                return Converted(joined(lines, len(records)), (RowFault(row, reason),))
        return Converted(joined(lines, len(records)), faults)

    def _decode(self, records: Records, code: int, start: int, end: int) -> Iterator[Any]:
        if code not in self._decoders:
            self._decoders[code] = fastavro.parse_schema(_plain(json.loads(self._schemas[code].text)))
        parsed, offsets = self._decoders[code], records.values.offsets
        for row in range(start, end):
            stream = io.BytesIO(records.values.data[offsets[row] : offsets[row + 1]].tobytes())
            yield fastavro.schemaless_reader(stream, parsed, None)


def _first_bad(ids: NDArray[np.int32], records: Records) -> tuple[int, RowFault | None]:
    """How many rows come before the first that has no schema id, and what is wrong with that one."""
    bad = np.flatnonzero(ids < 0)
    if not len(bad):
        return len(ids), None
    row = int(bad[0])
    if ids[row] == _NULL:
        return row, RowFault(row, NULL_VALUE)
    reason = (
        "its value is not Avro in Confluent's wire format (a zero byte and a schema id come first); "
        f"behind its first bytes it is {excerpt(records.values[row])}; set value.converter to what the producer writes"
    )
    return row, RowFault(row, reason)


def _runs(codes: NDArray[np.int32]) -> list[tuple[int, int]]:
    """Consecutive rows of one code, as `[start, end)`."""
    edges = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist(), len(codes)]
    return [(start, end) for start, end in pairwise(edges) if start < end]


def _plain(schema: Any) -> Any:  # noqa: ANN401 - a JSON document
    """Without logical types: Connect's JSON shows their raw numbers (reference s3-sink-connector 4.3)."""
    if isinstance(schema, list):
        return [_plain(branch) for branch in schema]
    if isinstance(schema, dict):
        return {name: _plain(part) for name, part in schema.items() if name != "logicalType"}
    return schema
