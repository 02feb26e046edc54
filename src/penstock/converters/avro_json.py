"""Avro data to JSON lines by compiled code; what that leaves is decoded in Python, row by row."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import fastavro
import msgspec
import numpy as np

from penstock.converters import avro_json_walk as walk
from penstock.converters.avro_json_program import Instructions, Untaken, compile_schema, linked
from penstock.converters.base import Chunk, RowFault, excerpt
from penstock.converters.connect_json import marked, rendering
from penstock.converters.lines import spliced
from penstock.converters.projection import UNREADABLE, words
from penstock.fields.avro import depth_guard

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from penstock.converters.avro_json_program import Program
    from penstock.converters.connect_json import DecimalFormat
    from penstock.model import Slices

Json = Any
_FIRST_GUESS, _ROOM = 2.0, 4096
_REFUSED = {
    walk.TOO_DEEP: f"nested more than {walk.DEEPEST} levels deep",
    walk.TOO_MANY: f"more than {walk.SPARE_ITEMS} items of arrays without any bytes",
}


def python_lines(schema: Json, decimals: DecimalFormat) -> Callable[[bytes], bytes]:
    """From a datum to its line, for any schema. What it makes raises one of `UNREADABLE`."""
    parsed, finish = fastavro.parse_schema(marked(schema)), rendering(schema, decimals)
    encode, guard = msgspec.json.Encoder().encode, depth_guard(schema)

    def line(datum: bytes) -> bytes:
        guard(datum)
        value = fastavro.schemaless_reader(io.BytesIO(datum), parsed, None)
        return encode(value if finish is None else finish(value)) + b"\n"

    return line


@dataclass(slots=True)
class AvroLines:
    """Prints data of the schemas that it was told of, by their codes. `growth`: bytes out for one in, of late."""

    decimals: DecimalFormat = "BASE64"
    _python: dict[int, Callable[[bytes], bytes]] = field(default_factory=dict)
    _compiled: dict[int, Instructions] = field(default_factory=dict)
    _program: Program | None = None
    _entries: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _growth: float = _FIRST_GUESS

    def learn(self, code: int, text: str) -> None:
        """Take a schema, given as JSON; one that has no instructions is printed by Python."""
        if code in self._python:
            return
        schema = json.loads(text)
        self._python[code] = python_lines(schema, self.decimals)
        with contextlib.suppress(Untaken):
            self._compiled[code] = compile_schema(schema, self.decimals)
        self._program, begins = linked(list(self._compiled.values()))
        self._entries = np.full(max(self._python) + 1, walk.NO_PROGRAM, dtype=np.int64)
        self._entries[list(self._compiled)] = begins

    def lines(
        self, values: Slices, codes: NDArray[np.int32], without: NDArray[np.bool_]
    ) -> tuple[Chunk, list[RowFault]]:
        """A line for each row, an empty one for rows in `without` and those with a fault. All codes were learned."""
        chunk, fates = self._transcoded(values, codes, without)
        left, lines, faults = np.flatnonzero(fates), [], []
        for row in left.tolist():
            datum, refused = values[row] or b"", _REFUSED.get(int(fates[row]))
            try:
                if refused is not None:
                    raise ValueError(refused)
                line = self._python[int(codes[row])](datum)
            except UNREADABLE as error:
                line = b"\n"
                reason = f"its value does not fit the schema it names ({words(error)}); it is {excerpt(datum)}"
                faults.append(RowFault(row, reason))
            lines.append(line)
        return (spliced(chunk, left, lines) if lines else chunk), faults

    def _transcoded(
        self, values: Slices, codes: NDArray[np.int32], without: NDArray[np.bool_]
    ) -> tuple[Chunk, NDArray[np.int8]]:
        """What compiled code makes of the rows, and what became of each; rows that are not `walk.DONE` are empty."""
        rows, data = len(values), walk.read_only(values.data)
        entries = np.full(rows, walk.NO_VALUE, dtype=np.int64)
        entries[~without] = self._entries[codes[~without]]
        ends, fates = np.zeros(rows + 1, dtype=np.int64), np.zeros(rows, dtype=np.int8)
        out = np.empty(int(self._growth * len(data)) + _ROOM + rows, dtype=np.uint8)
        program, given, scratch = self._program or linked([])[0], (values.offsets, entries), walk.scratch_space()
        row = 0
        while (row := walk.transcode(data, given, row, program, out, (ends, fates), scratch)) < rows:
            grown = np.empty(2 * len(out), dtype=np.uint8)
            grown[: ends[row]] = out[: ends[row]]
            out = grown
        self._growth = max(_FIRST_GUESS, 1.125 * int(ends[rows]) / (len(data) + 1))
        return Chunk(out[: ends[rows]], ends), fates
