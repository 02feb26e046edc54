"""What partitioners and timestamp extractors are: arrays in, arrays out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from penstock.columns import Field
    from penstock.model import Records


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record that has no encoded partition or no time, and why, in words that follow "topic-partition@offset: "."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class Labels:
    """The encoded partition of each record of a batch.

    Record i belongs to `names[codes[i]]`; `codes` is None where all belong to `names[0]`. What stands there for the
    rows of `refusals` (in row order) means nothing.
    """

    names: tuple[str, ...]
    codes: NDArray[np.int32] | None = None
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True)
class Times:
    """The extracted time of each record: int64, milliseconds since 1970 UTC.

    What stands there for the rows of `refusals` (in row order) means nothing.
    """

    ms: NDArray[np.int64]
    refusals: tuple[Refusal, ...] = ()


class Batch(Protocol):
    """Consecutive records of one topic-partition, at least one, with what can be asked of them."""

    @property
    def records(self) -> Records:
        """Offsets, Kafka timestamps and raw bytes."""
        ...

    @property
    def arrivals(self) -> NDArray[np.int64]:
        """When the sink first saw each record in Kafka, as the plan recorded it: ms since 1970 UTC."""
        ...

    @property
    def times(self) -> Times:
        """The extracted times; asked for only where a partitioner is time based."""
        ...

    def field(self, path: str) -> Field:
        """A field of the value by its dotted path; or `_key`, `_header.NAME`, `_topic`, `_partition`."""
        ...

    def schema_names(self) -> tuple[NDArray[np.int32] | None, tuple[str | None, ...]]:
        """The value schema's name of each row, as codes into the names; None for rows without a named schema."""
        ...


class Extractor(Protocol):
    """Gives every record its time, as a pure function of the record and the plan."""

    def extract(self, batch: Batch) -> Times:
        """The times of a batch."""
        ...


class Partitioner(Protocol):
    """Gives every record its encoded partition, as a pure function of the record and the plan."""

    def encode(self, batch: Batch) -> Labels:
        """The labels of a batch."""
        ...
