"""Record: the record's timestamp in Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.partitioners.base import Refusal, Times

if TYPE_CHECKING:
    from penstock.partitioners.base import Batch

_NONE = -1
_REASON = (
    "it has no timestamp in Kafka, which timestamp.extractor `Record` goes by; "
    "use `RecordField` or `Wallclock`, or let the producer set one"
)


class RecordExtractor:
    """The timestamp that the producer, or the broker, gave the record."""

    def extract(self, batch: Batch) -> Times:
        """A record of a very old producer has none."""
        ms = batch.records.timestamps
        return Times(ms, tuple(Refusal(int(row), _REASON) for row in np.flatnonzero(ms == _NONE)))
