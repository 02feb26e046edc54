"""DefaultPartitioner: Kafka's own partitions (reference s3-sink-connector 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.partitioners.base import Labels

if TYPE_CHECKING:
    from penstock.partitioners.base import Batch


class DefaultPartitioner:
    """`partition=<kafka partition>` for every record."""

    def encode(self, batch: Batch) -> Labels:
        """One label for the whole batch."""
        return Labels((f"partition={batch.records.tp.partition}",))
