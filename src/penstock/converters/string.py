"""Strings (Connect's StringConverter): UTF-8, malformed bytes read as U+FFFD, as Java does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from penstock.converters.base import NULL_VALUE, SCHEMALESS, Chunk, Converted, FileSchema, RowFault
from penstock.converters.lines import joined
from penstock.converters.prefix import length_prefixed
from penstock.model import Gather

if TYPE_CHECKING:
    from penstock.converters.base import Kind
    from penstock.model import Records, Slices

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
        faults = null_faults(values)
        if self.kind == "text":
            return Converted(Chunk(values.data, values.offsets), faults)
        if self.kind == "avro":
            return Converted(length_prefixed(values), faults)
        rows = faults[0].row if faults else len(values)
        encode = msgspec.json.Encoder().encode
        lines = [encode((values[row] or b"").decode("utf-8", "replace")) for row in range(rows)]
        return Converted(joined(lines, len(values)), faults)


def null_faults(values: Slices) -> tuple[RowFault, ...]:
    """A fault for each null value."""
    if values.valid is None:
        return ()
    return tuple(RowFault(int(row), NULL_VALUE) for row in np.flatnonzero(~values.valid))


def _mended(values: Slices) -> Slices:
    try:
        str(values.data.data, "utf-8")
    except UnicodeDecodeError:
        texts = [(values[row] or b"").decode("utf-8", "replace").encode() for row in range(len(values))]
        offsets = np.zeros(len(values) + 1, dtype=np.int64)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        return type(values)(np.frombuffer(b"".join(texts), dtype=np.uint8), offsets, values.valid)
    return values
