"""What one Spark task reads of Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

if TYPE_CHECKING:
    from penstock.model import PlannedRange


class Share(InputPartition):
    """Ranges of topic-partitions."""

    def __init__(self, *ranges: PlannedRange) -> None:
        self.ranges = ranges
