"""Several partitioners' labels, one behind the other: field and time, the schema's name before or after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.partitioners.base import Labels
from penstock.partitioners.field import safe

if TYPE_CHECKING:
    from penstock.partitioners.base import Batch, Partitioner, Refusal


@dataclass(frozen=True, slots=True)
class CombinedPartitioner:
    """The labels of `parts`, joined with `delim` in their order. A record that one part refuses is refused."""

    parts: tuple[Partitioner, ...]
    delim: str

    def encode(self, batch: Batch) -> Labels:
        """One label for each combination that occurs."""
        every = [part.encode(batch) for part in self.parts]
        combined = every[0]
        for labels in every[1:]:
            combined = self._joined(combined, labels)
        return Labels(combined.names, combined.codes, _first_of_each_row(every))

    def _joined(self, left: Labels, right: Labels) -> Labels:
        if left.codes is None and right.codes is None:
            return Labels((f"{left.names[0]}{self.delim}{right.names[0]}",))
        if left.codes is None:
            return Labels(tuple(f"{left.names[0]}{self.delim}{name}" for name in right.names), right.codes)
        if right.codes is None:
            return Labels(tuple(f"{name}{self.delim}{right.names[0]}" for name in left.names), left.codes)
        pairs = left.codes.astype(np.int64) * len(right.names) + right.codes
        distinct, codes = np.unique(pairs, return_inverse=True)
        names = tuple(
            f"{left.names[pair // len(right.names)]}{self.delim}{right.names[pair % len(right.names)]}"
            for pair in distinct.tolist()
        )
        return Labels(names, codes.astype(np.int32))


@dataclass(frozen=True, slots=True)
class SchemaNamePartitioner:
    """`schema_name=<name of the value's schema>`, or `schema_name=null` (`s3.schema.partition.affix.type`)."""

    def encode(self, batch: Batch) -> Labels:
        """One label for each schema name."""
        codes, names = batch.schema_names()
        return Labels(tuple(f"schema_name={'null' if name is None else safe(str(name))}" for name in names), codes)


def _first_of_each_row(every: list[Labels]) -> tuple[Refusal, ...]:
    rows: dict[int, Refusal] = {}
    for labels in every:
        for refusal in labels.refusals:
            rows.setdefault(refusal.row, refusal)
    return tuple(rows[row] for row in sorted(rows))
