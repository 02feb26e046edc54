"""Avro data of one schema as one Arrow array, of whatever type the schema is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.columnar import arrays
from penstock.columnar.schema import Columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_RECORDS = ("record", "error")


@dataclass(frozen=True, slots=True)
class AvroReader:
    """Reads data of one schema. `bare`: they are no records, so that there is one column only."""

    columns: Columns
    bare: bool

    @classmethod
    def of(cls, text: str) -> AvroReader:
        """A reader for a schema. Raises `NoColumnsError`, whose words follow "its schema "."""
        return cls(Columns.compile(text), not _is_record(json.loads(text)))

    @property
    def type(self) -> pa.DataType:
        """The array's type."""
        fields = list(self.columns.arrow)
        return fields[0].type if self.bare else pa.struct(fields)

    def array(self, data: NDArray[np.uint8], offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> pa.Array:
        """Row i is `data[offsets[i]:offsets[i + 1]]`. Raises ValueError where one is no datum of the schema."""
        found = arrays.batch(self.columns, data, offsets, rows)
        return found.column(0) if self.bare else pa.StructArray.from_arrays(found.columns, fields=list(found.schema))


def _is_record(schema: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether it is a record, or null beside one: as in `penstock.columnar.schema`."""
    if isinstance(schema, list):
        rest = [branch for branch in schema if branch not in ("null", {"type": "null"})]
        return len(rest) == 1 and len(schema) == 2 and _is_record(rest[0])  # noqa: PLR2004 - null and it
    if not isinstance(schema, dict):
        return False
    return schema["type"] in _RECORDS or _is_record(schema["type"])
