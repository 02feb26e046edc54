"""Which rows of a batch go into files, and under which encoded partition: pure, but for what the parts ask outside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from penstock.batch import RecordBatch
from penstock.converters.base import NULL_VALUE
from penstock.model import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from penstock.coding import LabelCodes
    from penstock.companions import Companion, Prepared
    from penstock.converters.base import Converted, Converter, FileSchema
    from penstock.model import PlannedRange, Records
    from penstock.partitioners.base import Extractor, Labels, Partitioner

NullValues = Literal["fail", "ignore", "write"]


@dataclass(frozen=True, slots=True)
class Sieve:
    """The parts that look at records before they are written.

    `extractor`: None where no time is needed. `refuses`: why the format cannot hold a schema, if so. `null_values`:
    what a record without a value does; with `write` it goes to the encoded partition `tombstones`. `report_nulls`: null
    values that are left out are wanted as reasons.
    """

    converter: Converter
    partitioner: Partitioner
    extractor: Extractor | None = None
    companions: tuple[Companion, ...] = ()
    null_values: NullValues = "fail"
    tombstones: str = "tombstone"
    report_nulls: bool = False
    refuses: Callable[[FileSchema], str | None] | None = None


@dataclass(frozen=True, slots=True)
class Sifted:
    """A batch on its way into files.

    `labels`: the code of each row's encoded partition. `times`: extracted ones, or None. `reasons`: row -> why it must
    not be written, in row order. `ignored`: rows that are left out without a reason; `tombs`: rows that are tombstones;
    both None where there are none.
    """

    records: Records
    converted: Converted
    prepared: tuple[Prepared, ...]
    labels: NDArray[np.int32]
    times: NDArray[np.int64] | None
    reasons: dict[int, Reason]
    ignored: NDArray[np.bool_] | None = None
    tombs: NDArray[np.bool_] | None = None
    tomb_label: int = -2

    def kept(self) -> NDArray[np.bool_] | None:
        """Which rows are written; None where all are."""
        if not self.reasons and self.ignored is None:
            return None
        kept = np.ones(len(self.records), dtype=np.bool_) if self.ignored is None else ~self.ignored
        kept[list(self.reasons)] = False
        return kept


def sift(records: Records, sieve: Sieve, codes: LabelCodes, planned: PlannedRange, now_ms: int) -> Sifted:
    """Convert a batch of at least one record, label it and find what is wrong with it."""
    made = sieve.converter.convert(records)
    converted = replace(made, chunk=replace(made.chunk, positions=records.offsets))
    prepared = tuple(companion.prepare(records) for companion in sieve.companions)
    batch = RecordBatch(records, converted, sieve.converter, planned, now_ms, sieve.extractor)
    labels = sieve.partitioner.encode(batch)
    rows = codes.codes(labels, len(records))
    times = None if sieve.extractor is None else batch.times.ms
    gone = _gone(records)
    nulls = converted.nulls
    if nulls is not None and gone is not None:
        nulls = nulls & ~gone
    # Also where this batch has none: the record before it may have been one.
    tombs, tomb_label = None, codes.code_of(sieve.tombstones, apart=True) if sieve.null_values == "write" else -2
    if nulls is not None and sieve.null_values == "write":
        tombs = nulls
        rows = np.where(nulls, np.int32(tomb_label), rows)
        times = None if times is None else np.where(nulls, records.timestamps, times)
    silent = nulls is not None and sieve.null_values == "ignore" and not sieve.report_nulls
    ignored = nulls if silent else None
    reasons = _reasons(converted, prepared, labels, sieve)
    if records.transformed is not None and gone is not None:
        dropped = records.transformed.dropped
        ignored = dropped if ignored is None else ignored | dropped
        told = {row: why for row, why in reasons.items() if not gone[row]}
        reasons = dict(sorted({**told, **records.transformed.refused}.items()))
    return Sifted(records, converted, prepared, rows, times, reasons, ignored, tombs, tomb_label)


def _gone(records: Records) -> NDArray[np.bool_] | None:
    """Rows that a transformation left without a value; None where there are none."""
    made = records.transformed
    if made is None:
        return None
    gone = made.dropped.copy()
    gone[list(made.refused)] = True
    return gone if gone.any() else None


def _reasons(converted: Converted, prepared: Sequence[Prepared], labels: Labels, sieve: Sieve) -> dict[int, Reason]:
    """What is wrong, row by row; a null value is asked for nothing more but its key."""
    nulls = converted.nulls
    found: list[tuple[int, Reason]] = []
    if nulls is not None and sieve.null_values == "fail":
        found += [(row, Reason("TASK_PUT", NULL_VALUE)) for row in np.flatnonzero(nulls).tolist()]
    elif nulls is not None and sieve.null_values == "ignore" and sieve.report_nulls:
        found += [(row, Reason("TASK_PUT", "the value is null", null=True)) for row in np.flatnonzero(nulls).tolist()]
    found += [(each.row, Reason("VALUE_CONVERTER", each.reason)) for each in converted.faults]
    found += [(row, Reason("VALUE_CONVERTER", why)) for row, why in _refused(converted, sieve)]
    ignored = nulls is not None and sieve.null_values == "ignore"
    found += [
        (each.row, Reason("KEY_CONVERTER", f"key: {each.reason}"))
        for each in (fault for one in prepared for fault in one.converted.faults)
        if not (ignored and nulls is not None and nulls[each.row])
    ]
    found += [
        (each.row, Reason("TASK_PUT", each.reason)) for each in labels.refusals if nulls is None or not nulls[each.row]
    ]
    reasons: dict[int, Reason] = {}
    for row, reason in found:
        reasons.setdefault(row, reason)
    return dict(sorted(reasons.items()))


def _refused(converted: Converted, sieve: Sieve) -> list[tuple[int, str]]:
    """Rows whose schema the format cannot hold, and why."""
    codes = converted.chunk.schemas
    if sieve.refuses is None or codes is None:
        return []
    asked = np.ones(len(codes), dtype=np.bool_) if converted.nulls is None else ~converted.nulls
    asked[[fault.row for fault in converted.faults]] = False
    found: list[tuple[int, str]] = []
    for code in np.flatnonzero(np.bincount(codes[asked])).tolist():
        why = sieve.refuses(sieve.converter.schema(code))
        if why is not None:
            found += [(row, f"its schema {why}") for row in np.flatnonzero(asked & (codes == code)).tolist()]
    return found
