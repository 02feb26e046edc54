"""The reading side of a task: its ranges of Kafka as rows for Spark, and all there is of them in the ledger."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.errors import UnavailableError
from penstock.kafka.reader import ReaderOptions, read
from penstock.kafka.troubles import RangeFault
from penstock.model import Fault, Reason, Records, Slices
from penstock.sources.rows import LATEST_MS, batch
from penstock.transform.ledger import LedgerWriter, Page, place
from penstock.transform.spec import NUMBER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from penstock.model import Gather
    from penstock.sources.values import Decoder
    from penstock.transform.spec import ReadSpec

_ROWS = 1 << 15
"""Rows of one Arrow batch: Spark keeps a whole batch in memory."""
_SPECIAL = {"_key": "key", "_topic": "topic", "_partition": "partition", "_offset": "offset", "_timestamp": "timestamp"}


def rows(spec: ReadSpec, share: int, task: int) -> Iterator[pa.RecordBatch]:
    """The records of a share that have a value, as rows; each range in offset order."""
    reading = _Reading(spec, LedgerWriter(place(spec.job, task)))
    with closing(reading.ledger):
        yield from reading.batches(share)


@dataclass(slots=True)
class _Reading:
    """One task's. `count`: records so far."""

    spec: ReadSpec
    ledger: LedgerWriter
    count: int = 0
    _values: Decoder = field(init=False)

    def __post_init__(self) -> None:
        self._values = self.spec.values.opened()

    @property
    def gather(self) -> Gather:
        """What the query or the writing side looks at."""
        names = self.spec.columns.names
        return replace(
            self._values.gather,
            keys=self.spec.keys or "_key" in names,
            headers=self.spec.headers or "_headers" in names,
            timestamp_types=True,
        )

    def batches(self, share: int) -> Iterator[pa.RecordBatch]:
        """Rows, each behind the page that holds its record."""
        ranges = self.spec.shares[share]
        numbers = {planned.tp: number for number, planned in enumerate(ranges)}
        for item in read(ranges, ReaderOptions.of(self.spec.kafka), self.gather):
            if isinstance(item, RangeFault):
                passing = isinstance(item.error, UnavailableError) and item.error.transient
                fault = Fault(str(item.error), passing, item.offset)
                self.ledger.write(Page(self.count, numbers[item.tp], self.gather, fault=fault))
            elif isinstance(item, Records):
                yield from self._rows(item, numbers[item.tp])

    def _rows(self, records: Records, number: int) -> Iterator[pa.RecordBatch]:
        first = self.count
        self.count += len(records)
        if not len(records):
            self.ledger.write(Page(first, number, self.gather, self._noted(records)))
            return
        values, asked, refused = self._looked_at(records)
        self.ledger.write(Page(first, number, self.gather, self._noted(records), asked, refused))
        if not asked.any():
            return
        found = self._columns(records, values, first)
        if not asked.all():
            found = found.filter(pa.array(asked))
        for start in range(0, len(found), _ROWS):
            yield found.slice(start, _ROWS)

    def _looked_at(self, records: Records) -> tuple[pa.Array, NDArray[np.bool_], dict[int, Reason]]:
        """(values, which of them Spark is asked about, why others are refused)."""
        values, faults, good = self._values.looked_at(records)
        refused = {fault.row: Reason("VALUE_CONVERTER", fault.reason) for fault in faults}
        for row in np.flatnonzero(np.abs(records.timestamps) > LATEST_MS).tolist():
            late = f"its timestamp `{records.timestamps[row]}` ms is out of the range of Spark's timestamps"
            refused[row] = Reason("TRANSFORMATION", late)
        bad = self.spec.refused.get(records.tp, {})
        for row in np.flatnonzero(np.isin(records.offsets, list(bad))).tolist() if bad else ():
            refused.setdefault(row, Reason("TRANSFORMATION", bad[int(records.offsets[row])]))
        asked: NDArray[np.bool_] = good.copy()
        asked[list(refused)] = False
        return values, asked, {row: refused[row] for row in sorted(refused)}

    def _columns(self, records: Records, values: pa.Array, first: int) -> pa.RecordBatch:
        """The columns that the query looks at."""
        target = self.spec.columns
        fields = {each.name: values.field(at) for at, each in enumerate(values.type)} if _has_fields(values) else {}
        wanted = [(name, _SPECIAL[name]) for name in target.names if name in _SPECIAL]
        wanted += [("_headers", "headers")] if "_headers" in target.names else []
        within = np.clip(records.timestamps, -LATEST_MS, LATEST_MS)
        plain = pa.schema([(theirs, target.field(name).type) for name, theirs in wanted])
        special = batch(replace(records, timestamps=within), values, plain) if wanted else None
        columns: dict[str, Any] = {NUMBER: pa.array(np.arange(first, first + len(records)))}
        for name, theirs in wanted:
            assert special is not None  # noqa: S101 - it was made for these
            columns[name] = special.column(theirs)
        for name in target.names:
            if name not in columns:
                columns[name] = fields.get(name, values)
        return pa.RecordBatch.from_arrays([columns[name] for name in target.names], schema=target)

    def _noted(self, records: Records) -> Records:
        """What the writing side needs of a batch."""
        spec, count = self.spec, len(records)
        nothing = Slices(np.zeros(0, np.uint8), np.zeros(count + 1, np.int64), np.zeros(count, np.bool_))
        return replace(
            records,
            values=records.values if spec.originals else nothing,
            schema_ids=records.schema_ids if spec.originals else None,
            keys=records.keys if spec.keys else None,
            headers=records.headers if spec.headers else None,
            timestamp_types=None,
        )


def _has_fields(values: pa.Array) -> bool:
    return bool(pa.types.is_struct(values.type))
