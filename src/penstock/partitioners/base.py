"""What a partitioner is: arrays in, labels out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from penstock.model import Records


@dataclass(frozen=True, slots=True)
class Labels:
    """The encoded partition of each record of a batch.

    Record i belongs to `names[codes[i]]`; `codes` is None where all belong to `names[0]`.
    """

    names: tuple[str, ...]
    codes: NDArray[np.int32] | None = None


class Partitioner(Protocol):
    """Gives every record its encoded partition, as a pure function of the record and the plan."""

    def encode(self, records: Records) -> Labels:
        """The labels of a batch of one topic-partition, at least one record."""
        ...
