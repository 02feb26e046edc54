"""The writing side of a task: rows that a query left over, put back among all records, and cut into files."""

from __future__ import annotations

import pickle
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.model import Reason, Records, Slices, Transformed
from penstock.pipeline import build
from penstock.rangewriter import RangeWriter
from penstock.transform.encoding import encoded
from penstock.transform.ledger import LedgerReader, Page, place
from penstock.transform.spec import NUMBER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from penstock.transform.spec import WriteSpec

RECEIPTS = pa.schema([("receipt", pa.binary())])
_NONE = -2  # the schema id of a record without a value
_TWICE = "the transformation makes several rows of it, and it may make one; see that a joined table has each key once"


def receipts(spec: WriteSpec, batches: Iterable[pa.RecordBatch], share: int, task: int) -> Iterator[pa.RecordBatch]:
    """Write a share's rows; one receipt per range, pickled."""
    pipeline, _ = build(spec.config, spec.kafka, spec.seq, result=spec.schema)
    ledger = LedgerReader(place(spec.job, task))
    with closing(pipeline.budget), closing(ledger):
        writers = [RangeWriter(planned, pipeline, spec.now_ms) for planned in spec.shares[share]]
        writing = _Writing(ledger, writers)
        for each in batches:
            writing.take(each)
        writing.finish()
        made = [replace(each.finish(), grown=writing.grown.get(at, "")) for at, each in enumerate(writers)]
    found = [pickle.dumps(each) for each in made]
    yield pa.RecordBatch.from_arrays([pa.array(found, pa.binary())], schema=RECEIPTS)


@dataclass(slots=True)
class _Writing:
    """One task's. `last`: the number of the last row that came; `grown`: what ranges that ended early wait for."""

    ledger: LedgerReader
    writers: Sequence[RangeWriter]
    last: int = -1
    grown: dict[int, str] = field(default_factory=dict)
    _page: Page | None = None
    _pieces: list[tuple[NDArray[np.int64], Slices]] = field(default_factory=list)
    _twice: set[int] = field(default_factory=set)

    def take(self, batch: pa.RecordBatch) -> None:
        """The next rows."""
        if not batch.num_rows:
            return
        numbers = batch.column(NUMBER).to_numpy()
        values = encoded(batch.drop_columns([NUMBER]))
        ahead = np.diff(np.concatenate(([self.last], numbers)))
        if (ahead < 0).any():
            msg = "Spark changed the order of the records, which it must not do in such a plan"
            raise RuntimeError(msg)
        self._twice.update(numbers[ahead == 0].tolist())
        self.last = int(numbers[-1])
        at = 0
        while at < len(numbers):
            page = self._page_of(int(numbers[at]))
            end = int(np.searchsorted(numbers, page.end))
            self._pieces.append((numbers[at:end], _part(values, at, end)))
            at = end

    def finish(self) -> None:
        """No row comes any more: what is left in the ledger was dropped."""
        self._end_page()
        while (page := self.ledger.next()) is not None:
            self._page = page
            self._end_page()

    def _page_of(self, number: int) -> Page:
        """The page with a record; those before it are complete."""
        while self._page is None or self._page.end <= number:
            self._end_page()
            self._page = self.ledger.next()
            if self._page is None:
                msg = "a row came back that was never read"
                raise RuntimeError(msg)
        return self._page

    def _end_page(self) -> None:
        page, self._page = self._page, None
        pieces, self._pieces = self._pieces, []
        if page is None:
            return
        writer = self.writers[page.range]
        if page.grown:
            self.grown[page.range] = page.grown
        if page.fault is not None and writer.fault is None:
            writer.fault = page.fault
        elif page.records is not None:
            twice = {number - page.first for number in self._twice if page.first <= number < page.end}
            self._twice = {number for number in self._twice if number >= page.end}
            writer.write(_together(page, pieces, twice))


def _part(values: Slices, start: int, end: int) -> Slices:
    offsets = values.offsets[start : end + 1]
    return Slices(values.data[offsets[0] : offsets[-1]], offsets - offsets[0])


def _together(page: Page, pieces: Sequence[tuple[NDArray[np.int64], Slices]], twice: set[int]) -> Records:
    """All records of a page, with what was made of them for their values."""
    records = page.records
    assert records is not None  # noqa: S101 - the caller looked
    if page.asked is None:
        return replace(records, schema_ids=np.zeros(0, np.int32))
    lengths, ids = np.zeros(len(records), np.int64), np.full(len(records), _NONE, np.int32)
    for numbers, values in pieces:
        # Of several rows of one record the bytes are added up; nobody reads them, since it is refused.
        np.add.at(lengths, numbers - page.first, np.diff(values.offsets))
        ids[numbers - page.first] = 0
    offsets = np.zeros(len(records) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = np.concatenate([np.empty(0, np.uint8), *(values.data for _, values in pieces)])
    refused = dict(page.refused) | dict.fromkeys(sorted(twice), Reason("TRANSFORMATION", _TWICE))
    dropped = page.asked & (ids == _NONE)
    ids[list(refused)] = _NONE
    return replace(
        records,
        values=Slices(data, offsets),
        schema_ids=ids,
        transformed=Transformed(dropped, refused, records, page.gather),
    )
