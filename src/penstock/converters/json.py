"""JSON without schemas (`value.converter.schemas.enable=false`): documents are validated and copied as they are.

A block of lines is validated at once by msgspec. Only when a block does not hold exactly one document a line are its
rows looked at one by one: to name the bad row, or to put a document with line feeds inside onto one line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from penstock.converters.base import SCHEMALESS, Chunk, Converted, FileSchema, RowFault, excerpt
from penstock.converters.lines import joined, taken
from penstock.fields.json import json_field
from penstock.model import Gather

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.columns import Field
    from penstock.model import Records, Slices

_RAW = msgspec.json.Decoder(msgspec.Raw)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_BLANKS = np.frombuffer(b" \t\r\n", dtype=np.uint8)
_NULL_LINE = np.frombuffer(b"null\n", dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class JsonConverter:
    """Gives `json`: each document as the producer wrote it, and a line feed."""

    @property
    def gather(self) -> Gather:
        """The reader puts a line feed behind each value while it copies it."""
        return Gather(separator=b"\n")

    def schema(self, code: int) -> FileSchema:  # noqa: ARG002 - there is only one
        """JSON lines carry no schema."""
        return SCHEMALESS

    def convert(self, records: Records) -> Converted:
        """The values' own bytes wherever they are one document a line."""
        values = records.values
        if values.valid is None and _is_lines(values):
            nulls = _null_documents(values)
            return Converted(Chunk(values.data, values.offsets), (), nulls if nulls.any() else None)
        return _row_by_row(values)

    def field(self, records: Records, path: str) -> Field:
        """A member of the documents."""
        values = records.values
        return json_field(values.data, values.offsets, np.arange(len(values)), path)

    def project(self, records: Records, rows: NDArray[np.int64], code: int) -> Converted:  # noqa: ARG002 - one schema
        """Documents have no schema that they could be projected from."""
        chunk = self.convert(records).chunk
        data, offsets = taken(chunk.data, chunk.offsets, rows)
        return Converted(Chunk(data, offsets))


def _is_lines(values: Slices) -> bool:
    """Whether each value is one document on a line of its own, in UTF-8.

    msgspec takes several documents on a line and passes over blank lines: a value that begins with anything but white
    space holds at least one, so as many documents as values is one each. What reading row by row would change (white
    space around a document, line ends within) is no line, so that the bytes of a file never depend on the batch.
    """
    data, rows = values.data, len(values)
    if np.isin(data[values.offsets[:-1]], _BLANKS).any() or np.isin(data[values.offsets[1:] - 2], _BLANKS).any():
        return False
    try:
        documents = _RAW.decode_lines(data.data)
        str(data.data, "utf-8")
    except _UNREADABLE:
        return False
    lines = int(np.count_nonzero(data == ord("\n")))
    return len(documents) == rows == lines and not (data == ord("\r")).any()


def _null_documents(values: Slices) -> NDArray[np.bool_]:
    """Which values are the document `null`, which Connect takes for a null value."""
    offsets, data = values.offsets, values.data
    nulls = np.zeros(len(values), dtype=np.bool_)
    for row in np.flatnonzero(np.diff(offsets) == len(_NULL_LINE)):
        nulls[row] = np.array_equal(data[offsets[row] : offsets[row + 1]], _NULL_LINE)
    return nulls


def _row_by_row(values: Slices) -> Converted:
    lines, faults, nulls = [], [], np.zeros(len(values), dtype=np.bool_)
    for row in range(len(values)):
        value = values[row]
        line = None if value is None else _line(value)
        nulls[row] = value is None or line == b"null"
        if line is None and value is not None:
            faults.append(RowFault(row, _reason(value)))
        lines.append(line or b"")
    return Converted(joined(lines, len(values)), tuple(faults), nulls if nulls.any() else None)


def _line(value: bytes) -> bytes | None:
    """One document on one line; None if it is not one document."""
    document = value.removesuffix(b"\n").strip(b" \t\r\n")
    try:
        _RAW.decode(document)
        document.decode("utf-8")
        if b"\n" in document or b"\r" in document:
            document = msgspec.json.format(document, indent=-1)
    except _UNREADABLE:
        return None
    return document


def _reason(value: bytes) -> str:
    shown = excerpt(value.removesuffix(b"\n"))
    try:
        _RAW.decode(value)
        value.decode("utf-8")
        why = "not one document"
    except RecursionError:
        why = "nested too deeply"
    except _UNREADABLE as error:
        why = str(error)
    return f"its value is not JSON ({why}); it is {shown}; set value.converter to what the producer writes"
