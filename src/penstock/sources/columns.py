"""The columns of Spark's Kafka source as Arrow types, and byte strings as Arrow's: what plans need, cheap to import."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from penstock.model import Slices

MICROSECONDS = pa.timestamp("us", tz="UTC")
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
_LONGEST = 2**31 - 1


def schema(value: pa.DataType, *, headers: bool) -> pa.Schema:
    """The columns, `value` of the type given."""
    columns = [
        ("key", pa.binary()),
        ("value", value),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", MICROSECONDS),
        ("timestampType", pa.int32()),
    ]
    return pa.schema([*columns, ("headers", HEADERS)] if headers else columns)


def binary(items: Slices) -> pa.Array:
    """Byte strings as Arrow's, without copying them."""
    if len(items.data) > _LONGEST:
        msg = f"{len(items.data)} bytes in one batch; Arrow's binary holds 2 GiB"
        raise ValueError(msg)
    offsets = pa.py_buffer(items.offsets.astype(np.int32))
    valid = None if items.valid is None else pa.py_buffer(np.packbits(items.valid, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), len(items), [valid, offsets, pa.py_buffer(items.data)])


def text(items: Slices) -> pa.Array:
    """Byte strings as UTF-8; malformed bytes are read as U+FFFD, as Java does."""
    raw = binary(items)
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        found = [None if item is None else item.decode("utf-8", "replace") for item in raw.to_pylist()]
        return pa.array(found, pa.string())
