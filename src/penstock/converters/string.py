"""Strings (Connect's StringConverter): UTF-8, malformed bytes read as U+FFFD, as Java does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from penstock.converters.base import SCHEMALESS, Chunk, Converted, FileSchema
from penstock.converters.lines import joined, no_field, taken
from penstock.converters.prefix import length_prefixed
from penstock.model import Gather

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.columns import Field
    from penstock.converters.base import Kind
    from penstock.model import Records, Slices

_CONTINUATION = 0x80  # of a character's bytes, all but the first begin with the bits 10
_AVRO = FileSchema('"string"', "string")


@dataclass(frozen=True, slots=True)
class StringConverter:
    """Gives `text` by copying, `avro` as the bare type "string", `json` as a quoted string."""

    kind: Kind
    separator: bytes = b""
    gather: Gather = field(init=False)

    def __post_init__(self) -> None:
        separator = self.separator if self.kind == "text" else b""
        object.__setattr__(self, "gather", Gather(separator=separator))

    def schema(self, code: int) -> FileSchema:  # noqa: ARG002 - there is only one
        """The bare Avro type; lines carry none."""
        return _AVRO if self.kind == "avro" else SCHEMALESS

    def convert(self, records: Records) -> Converted:
        """Checks the whole batch at once; only a batch with malformed bytes is mended value by value."""
        values = _mended(records.values)
        nulls = None if values.valid is None else ~values.valid
        if self.kind == "text":
            return Converted(Chunk(values.data, values.offsets), (), nulls)
        if self.kind == "avro":
            return Converted(length_prefixed(values), (), nulls)
        encode = msgspec.json.Encoder().encode
        lines = [encode((values[row] or b"").decode("utf-8", "replace")) for row in range(len(values))]
        return Converted(joined(lines, len(values)), (), nulls)

    def field(self, records: Records, path: str) -> Field:  # noqa: ARG002 - whatever it is
        """A text has no fields."""
        return no_field(len(records))

    def project(self, records: Records, rows: NDArray[np.int64], code: int) -> Converted:  # noqa: ARG002 - one schema
        """There is one schema only."""
        chunk = self.convert(records).chunk
        data, offsets = taken(chunk.data, chunk.offsets, rows)
        return Converted(Chunk(data, offsets))


def _mended(values: Slices) -> Slices:
    if _is_utf8(values):
        return values
    texts = [(values[row] or b"").decode("utf-8", "replace").encode() for row in range(len(values))]
    offsets = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return type(values)(np.frombuffer(b"".join(texts), dtype=np.uint8), offsets, values.valid)


def _is_utf8(values: Slices) -> bool:
    """Whether each value is: all of them in a row are, and none begins in the middle of a character."""
    try:
        str(values.data.data, "utf-8")
    except UnicodeDecodeError:
        return False
    starts = values.offsets[:-1]
    first = values.data[starts[starts < len(values.data)]]
    return not bool(((first & 0xC0) == _CONTINUATION).any())
