"""Raw bytes (Connect's ByteArrayConverter)."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.converters.base import SCHEMALESS, Chunk, Converted, FileSchema
from penstock.converters.lines import joined, no_field, taken
from penstock.converters.prefix import length_prefixed
from penstock.model import Gather

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from penstock.columns import Field
    from penstock.converters.base import Kind
    from penstock.model import Records

_AVRO = FileSchema('"bytes"', "bytes")


@dataclass(frozen=True, slots=True)
class BytesConverter:
    """Gives `bytes` by copying, `avro` as the bare type "bytes", `json` as a base64 string."""

    kind: Kind
    separator: bytes = b""
    gather: Gather = field(init=False)

    def __post_init__(self) -> None:
        separator = self.separator if self.kind == "bytes" else b""
        object.__setattr__(self, "gather", Gather(separator=separator))

    def schema(self, code: int) -> FileSchema:  # noqa: ARG002 - there is only one
        """The bare Avro type; lines carry none."""
        return _AVRO if self.kind == "avro" else SCHEMALESS

    def convert(self, records: Records) -> Converted:
        """Every value is good."""
        values = records.values
        nulls = None if values.valid is None else ~values.valid
        if self.kind == "bytes":
            return Converted(Chunk(values.data, values.offsets), (), nulls)
        if self.kind == "avro":
            return Converted(length_prefixed(values), (), nulls)
        lines = [b'"%s"' % base64.b64encode(values[row] or b"") for row in range(len(values))]
        return Converted(joined(lines, len(values)), (), nulls)

    def field(self, records: Records, path: str) -> Field:  # noqa: ARG002 - whatever it is
        """Raw bytes have no fields."""
        return no_field(len(records))

    def project(self, records: Records, rows: NDArray[np.int64], code: int) -> Converted:  # noqa: ARG002 - one schema
        """There is one schema only."""
        chunk = self.convert(records).chunk
        data, offsets = taken(chunk.data, chunk.offsets, rows)
        return Converted(Chunk(data, offsets))
