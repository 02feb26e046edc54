"""Records as Arrow batches with the columns of Spark's Kafka source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.errors import DataError
from penstock.kafka.headers import header_columns
from penstock.sources.columns import HEADERS, MICROSECONDS, binary, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from penstock.model import Records, Slices
    from penstock.sources.filters import Condition

LATEST_MS = (2**63 - 1) // 1000


def batch(records: Records, values: pa.Array, target: pa.Schema) -> pa.RecordBatch:
    """One row per record.

    Raises:
        DataError: a timestamp that Spark's type cannot hold.
    """
    count = len(records)
    columns: dict[str, Any] = {
        "key": binary(records.keys) if records.keys is not None else pa.nulls(count, pa.binary()),
        "value": values,
        "topic": pa.repeat(pa.scalar(records.tp.topic), count),
        "partition": pa.repeat(pa.scalar(records.tp.partition, pa.int32()), count),
        "offset": pa.array(records.offsets),
        "timestamp": pa.array(microseconds(records)).view(MICROSECONDS),
        "timestampType": pa.array(records.timestamp_types),
    }
    if "headers" in target.names and records.headers is not None:
        columns["headers"] = _headers(records.headers)
    return pa.RecordBatch.from_arrays([columns[name] for name in target.names], schema=target)


def microseconds(records: Records) -> NDArray[np.int64]:
    """The records' times in Spark's unit."""
    times = records.timestamps
    if len(times) and (times.max() > LATEST_MS or times.min() < -LATEST_MS):
        row = int(np.flatnonzero(np.abs(times) > LATEST_MS)[0])
        reason = f"its timestamp `{times[row]}` ms is out of the range of Spark's timestamps"
        raise DataError(records.tp, int(records.offsets[row]), reason)
    return times * 1000


def mask(records: Records, conditions: Sequence[Condition]) -> NDArray[np.bool_] | None:
    """Which records fit the conditions on offset and timestamp; None where there are no such conditions."""
    chosen: NDArray[np.bool_] | None = None
    for each in conditions:
        if each.column in ("offset", "timestamp"):
            column = records.offsets if each.column == "offset" else microseconds(records)
            found: NDArray[np.bool_] = each.holds(column)
            chosen = found if chosen is None else chosen & found
    return chosen


def _headers(areas: Slices) -> pa.Array:
    """A list of headers per record; null where there are none, as Spark has it."""
    ends, names, values = header_columns(areas)
    items = pa.StructArray.from_arrays([text(names), binary(values)], fields=list(HEADERS.value_type))
    empty = pa.array(np.diff(ends) == 0)
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), items, type=HEADERS, mask=empty)
