"""JSON without schemas (`value.converter.schemas.enable=false`): documents are validated and copied as they are.

A block of lines is validated at once by msgspec. Only when a block does not hold exactly one document a line are its
rows looked at one by one: to name the bad row, or to put a document with line feeds inside onto one line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from penstock.converters.base import NULL_VALUE, SCHEMALESS, Chunk, Converted, FileSchema, RowFault, excerpt
from penstock.converters.lines import joined
from penstock.model import Gather

if TYPE_CHECKING:
    from penstock.model import Records, Slices

_RAW = msgspec.json.Decoder(msgspec.Raw)
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
        if values.valid is None and _is_lines(values) and not _has_null(records):
            return Converted(Chunk(values.data, values.offsets))
        return _row_by_row(records)


def _is_lines(values: Slices) -> bool:
    """Whether each value is one document on a line of its own, in UTF-8.

    msgspec takes several documents on a line and passes over blank lines: a value that begins with anything but white
    space holds at least one, so as many documents as values is one each.
    """
    data, rows = values.data, len(values)
    if np.isin(data[values.offsets[:-1]], _BLANKS).any():
        return False
    try:
        documents = _RAW.decode_lines(data.data)
        str(data.data, "utf-8")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return len(documents) == rows and int(np.count_nonzero(data == ord("\n"))) == rows


def _has_null(records: Records) -> bool:
    """Whether a value is the document `null`, which Connect takes for a null value."""
    offsets, data = records.values.offsets, records.values.data
    short = np.flatnonzero(np.diff(offsets) == len(_NULL_LINE))
    return any(np.array_equal(data[offsets[row] : offsets[row + 1]], _NULL_LINE) for row in short)


def _row_by_row(records: Records) -> Converted:
    lines: list[bytes] = []
    for row in range(len(records)):
        value = records.values[row]
        line = _line(value)
        if line is None:
            return Converted(joined(lines, len(records)), (RowFault(row, _reason(value)),))
        lines.append(line)
    return Converted(joined(lines, len(records)))


def _line(value: bytes | None) -> bytes | None:
    """One document on one line; None if it is not one document, or null."""
    if value is None:
        return None
    document = value.removesuffix(b"\n").strip(b" \t\r\n")
    try:
        _RAW.decode(document)
        document.decode("utf-8")
        if b"\n" in document or b"\r" in document:
            document = msgspec.json.format(document, indent=-1)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return None if document == b"null" else document


def _reason(value: bytes | None) -> str:
    if value is None or value.strip() == b"null":
        return NULL_VALUE
    shown = excerpt(value.removesuffix(b"\n"))
    try:
        _RAW.decode(value)
        value.decode("utf-8")
        why = "not one document"
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = str(error)
    return f"its value is not JSON ({why}); it is {shown}; set value.converter to what the producer writes"
