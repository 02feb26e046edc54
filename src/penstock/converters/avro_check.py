"""Whether data fit their Avro schema: asked of every payload that is copied, since a broken one breaks its file."""

from __future__ import annotations

import functools
import io
import json
from typing import TYPE_CHECKING, Any

import fastavro
import numpy as np

from penstock.columnar.arrays import faulty
from penstock.columnar.schema import Columns, NoColumnsError
from penstock.converters.projection import UNREADABLE, raw

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Longs = NDArray[np.int64]
    Check = Callable[[Bytes, Longs, Longs], NDArray[np.bool_]]


def checker(schema: str) -> Check:
    """A function that tells which of some rows are no data of an Avro schema: (data, offsets, rows) -> a mask."""
    try:
        columns = Columns.compile(schema)
    except NoColumnsError:
        return _read_by_one(fastavro.parse_schema(raw(json.loads(schema))))
    return functools.partial(faulty, columns)


def _read_by_one(parsed: Any) -> Check:  # noqa: ANN401 - fastavro's
    """The same for schemas that columns cannot hold, a record within itself above all."""

    def check(data: Bytes, offsets: Longs, rows: Longs) -> NDArray[np.bool_]:
        return np.array([_is_bad(parsed, data[offsets[row] : offsets[row + 1]].tobytes()) for row in rows.tolist()])

    return check


def _is_bad(parsed: Any, datum: bytes) -> bool:  # noqa: ANN401 - fastavro's
    source = io.BytesIO(datum)
    try:
        fastavro.schemaless_reader(source, parsed, None)
    except UNREADABLE:
        return True
    return source.tell() != len(datum)
