"""Raw bytes (Connect's ByteArrayConverter)."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.converters.base import SCHEMALESS, Chunk, Converted, FileSchema
from penstock.converters.lines import joined
from penstock.converters.prefix import length_prefixed
from penstock.converters.string import null_faults
from penstock.model import Gather

if TYPE_CHECKING:
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
        """Every value is good but a null one."""
        values = records.values
        faults = null_faults(values)
        if self.kind == "bytes":
            return Converted(Chunk(values.data, values.offsets), faults)
        if self.kind == "avro":
            return Converted(length_prefixed(values), faults)
        lines = [b'"%s"' % base64.b64encode(values[row] or b"") for row in range(len(values))]
        return Converted(joined(lines, len(values)), faults)
