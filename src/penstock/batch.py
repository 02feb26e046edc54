"""A batch of records with what partitioners and extractors may ask of them, computed once each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.arrivals import seen_at
from penstock.fields.keys import is_pseudo, pseudo_field

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from penstock.columns import Field
    from penstock.converters.base import Converted, Converter
    from penstock.model import PlannedRange, Records
    from penstock.partitioners.base import Extractor, Times


@dataclass(slots=True)
class RecordBatch:
    """What `penstock.partitioners.base.Batch` promises. `extractor`: None where no time is needed."""

    records: Records
    converted: Converted
    converter: Converter
    planned: PlannedRange
    now_ms: int
    extractor: Extractor | None = None
    _times: Times | None = None
    _fields: dict[str, Field] = field(default_factory=dict)

    @property
    def arrivals(self) -> NDArray[np.int64]:
        """When each record was first seen in Kafka."""
        return seen_at(self.planned.arrivals, self.records.offsets, self.now_ms)

    @property
    def times(self) -> Times:
        """The extracted times."""
        if self._times is None:
            assert self.extractor is not None  # noqa: S101 - only time based partitioners ask
            self._times = self.extractor.extract(self)
        return self._times

    def field(self, path: str) -> Field:
        """A field of the value, or `_key`, `_header.NAME`, `_topic`, `_partition`."""
        if path not in self._fields:
            special = is_pseudo(path)
            self._fields[path] = (
                pseudo_field(self.records, path) if special else self.converter.field(self.records, path)
            )
        return self._fields[path]

    def schema_names(self) -> tuple[NDArray[np.int32] | None, tuple[str | None, ...]]:
        """The value schema's name of each row."""
        codes = self.converted.chunk.schemas
        if codes is None:
            return None, (self.converter.schema(0).name or None,)
        top = int(codes.max(initial=0)) + 1
        return codes, tuple(self.converter.schema(code).name or None for code in range(top))
