"""What one Spark task does: its ranges of Kafka as Arrow batches."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.errors import DataLossError
from penstock.kafka.reader import ReaderOptions, read
from penstock.kafka.troubles import Lost, RangeFault
from penstock.sources.rows import batch, mask

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.model import PlannedRange, Records
    from penstock.sources.reading import Reading
    from penstock.sources.values import Decoder

_log = logging.getLogger("penstock.sources")
_ROWS = 1 << 16
"""Rows of one Arrow batch: Spark keeps a whole batch in memory."""


def batches(reading: Reading, ranges: Sequence[PlannedRange]) -> Iterator[pa.RecordBatch]:
    """The rows of the ranges, each in offset order; batches without rows are left out.

    Raises:
        PenstockError: a record, a range or the brokers; names topic, partition and offset.
    """
    values = reading.values.opened()
    gather = replace(values.gather, keys=True, headers="headers" in reading.target.names, timestamp_types=True)
    for item in read(ranges, ReaderOptions.of(reading.kafka, skip_lost=reading.skip_lost), gather):
        if isinstance(item, RangeFault):
            raise _failure(item)
        if isinstance(item, Lost):
            _log.warning("records.lost tp=%s start=%d end=%d", item.tp, item.start, item.end)
        elif len(item):
            yield from _rows(reading, item, values)


def _rows(reading: Reading, records: Records, values: Decoder) -> Iterator[pa.RecordBatch]:
    chosen = mask(records, reading.conditions)
    if chosen is not None and not chosen.any():
        return
    whole = batch(records, values.decode(records), reading.target)
    found = whole if chosen is None or chosen.all() else whole.filter(pa.array(chosen))
    for start in range(0, len(found), _ROWS):
        yield found.slice(start, _ROWS)


def _failure(fault: RangeFault) -> Exception:
    """The reader's error, with this source's name for the option that helps."""
    if isinstance(fault.error, DataLossError):
        return DataLossError(str(fault.error).replace("on.data.loss=skip", "failOnDataLoss=false"))
    return fault.error
