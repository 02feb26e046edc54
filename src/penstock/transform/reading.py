"""The reading side of a task: its ranges of Kafka as rows for Spark, and all there is of them in the ledger."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type

from penstock.errors import PenstockError, UnavailableError
from penstock.kafka.reader import ReaderOptions, read
from penstock.kafka.troubles import RangeFault
from penstock.model import Fault, Reason, Records, Slices
from penstock.sources.rows import LATEST_MS, batch
from penstock.sources.types import grown
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
    if not spec.job:
        yield from Reading(spec, None).batches(share)
        return
    with closing(LedgerWriter(place(spec.job, task))) as ledger:
        yield from Reading(spec, ledger).batches(share)


class Ledger(Protocol):
    """Takes all there is of the records."""

    def write(self, page: Page) -> None:
        """The page can be read when this returns."""
        ...


@dataclass(slots=True)
class Reading:
    """One task's. `count`: records so far; `ended`: ranges that ended before their end."""

    spec: ReadSpec
    ledger: Ledger | None
    count: int = 0
    ended: set[int] = field(default_factory=set)
    _values: Decoder = field(init=False)

    def __post_init__(self) -> None:
        self._values = self.spec.values.opened()
        self._values.seen = set() if self.spec.grows else None

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
            number = numbers[item.tp]
            if number in self.ended:
                continue
            if isinstance(item, RangeFault):
                self._end(number, item.error, item.offset)
            elif isinstance(item, Records):
                try:
                    yield from self._rows(item, number)
                except PenstockError as error:
                    self._end(number, error)

    def _end(self, number: int, error: PenstockError, offset: int | None = None) -> None:
        passing = isinstance(error, UnavailableError) and error.transient
        self._note(Page(self.count, number, self.gather, fault=Fault(str(error), passing, offset)))
        self.ended.add(number)

    def _note(self, page: Page) -> None:
        if self.ledger is not None:
            self.ledger.write(page)

    def _rows(self, records: Records, number: int) -> Iterator[pa.RecordBatch]:
        if not len(records):
            self._note(Page(self.count, number, self.gather, self._noted(records)))
            return
        looked, more = self._looked_at(records), self._more()
        if more is not None:
            records = before(records, self._first_with_more(records))
            looked = self._looked_at(records) if len(records) else looked
        if len(records):
            yield from self._shown(records, number, *looked)
        if more is not None:
            last = replace(before(records, 0), next_offset=records.next_offset)
            text = from_arrow_type(more).json()
            self._note(Page(self.count, number, self.gather, self._noted(last), grown=text))
            self.ended.add(number)

    def _shown(
        self, records: Records, number: int, values: pa.Array, asked: NDArray[np.bool_], refused: dict[int, Reason]
    ) -> Iterator[pa.RecordBatch]:
        first = self.count
        self._note(Page(first, number, self.gather, self._noted(records), asked, refused))
        self.count += len(records)
        if not asked.any():
            return
        found = self._columns(records, values, first)
        if not asked.all():
            found = found.filter(pa.array(asked))
        for start in range(0, len(found), _ROWS):
            yield found.slice(start, _ROWS)

    def _more(self) -> pa.DataType | None:
        """The type that the values of the last batch need, where that is more than there is."""
        seen = self._values.seen
        if not seen:
            return None
        found = grown(self.spec.values.type, seen)
        seen.clear()
        return found

    def _first_with_more(self, records: Records) -> int:
        """The first row whose value has more than the type, found by halving: each half is looked at alone."""
        start, end = 0, len(records)
        while end - start > 1:
            half = (start + end) // 2
            self._values.looked_at(before(records, half, start))
            start, end = (start, half) if self._more() is not None else (half, end)
        return start

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


def before(records: Records, end: int, start: int = 0) -> Records:
    """Rows `[start, end)` of a batch that goes on behind them."""
    values = _sliced(records.values, start, end)
    rows = slice(start, end)
    return replace(
        records,
        offsets=records.offsets[rows],
        timestamps=records.timestamps[rows],
        values=values if values is not None else records.values,
        next_offset=int(records.offsets[end]) if end < len(records) else records.next_offset,
        schema_ids=None if records.schema_ids is None else records.schema_ids[rows],
        keys=_sliced(records.keys, start, end),
        headers=_sliced(records.headers, start, end),
        timestamp_types=None if records.timestamp_types is None else records.timestamp_types[rows],
    )


def _sliced(items: Slices | None, start: int, end: int) -> Slices | None:
    if items is None:
        return None
    offsets = items.offsets[start : end + 1]
    valid = None if items.valid is None else items.valid[start:end]
    return Slices(items.data[offsets[0] : offsets[-1]], offsets - offsets[0], valid)


def _has_fields(values: pa.Array) -> bool:
    return bool(pa.types.is_struct(values.type))
