"""Wallclock: when the sink first saw the record in Kafka, as the plan recorded it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.partitioners.base import Times

if TYPE_CHECKING:
    from penstock.partitioners.base import Batch


class WallclockExtractor:
    """The time of a record's arrival; a repeated plan gives the same (docs/decisions/0006-wall-clock.md)."""

    def extract(self, batch: Batch) -> Times:
        """Every record has one."""
        return Times(batch.arrivals)
