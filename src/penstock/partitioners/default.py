"""DefaultPartitioner: Kafka's own partitions (reference s3-sink-connector 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.partitioners.base import Labels

if TYPE_CHECKING:
    from penstock.model import Records


class DefaultPartitioner:
    """`partition=<kafka partition>` for every record."""

    def encode(self, records: Records) -> Labels:
        """One label for the whole batch."""
        return Labels((f"partition={records.tp.partition}",))
