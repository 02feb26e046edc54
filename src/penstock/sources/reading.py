"""How a query reads Kafka: all that its tasks need to know, and nothing that is slow to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from penstock.kafka.settings import KafkaSettings
    from penstock.model import PlannedRange
    from penstock.sources.filters import Condition
    from penstock.sources.values import Values


@dataclass(frozen=True, slots=True)
class Reading:
    """How a query reads; pickled to the executors. `conditions`: what Spark leaves to us."""

    kafka: KafkaSettings
    values: Values
    target: pa.Schema
    skip_lost: bool
    conditions: tuple[Condition, ...] = ()

    def batches(self, ranges: Sequence[PlannedRange]) -> Iterator[pa.RecordBatch]:
        """In a task: the rows of the ranges. Raises PenstockError."""
        from penstock.sources.fetching import batches  # noqa: PLC0415 - plans need not wait for numba

        return batches(self, ranges)
