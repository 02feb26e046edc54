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
from penstock.fields.avro import fates, tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Longs = NDArray[np.int64]
    Check = Callable[[Bytes, Longs, Longs], NDArray[np.bool_]]

Json = Any


def checker(schema: str) -> Check:
    """A function that tells which of some rows are no data of an Avro schema: (data, offsets, rows) -> a mask."""
    try:
        columns = Columns.compile(schema)
    except NoColumnsError:
        return _read_by_one(json.loads(schema))
    return functools.partial(faulty, columns)


def _read_by_one(schema: Json) -> Check:
    """The same for schemas that columns cannot hold, a record within itself above all.

    What fits in size goes on to fastavro, which looks at texts and symbols too; by then no datum is too deep for it.
    """
    parsed, walked = fastavro.parse_schema(raw(schema)), tables(schema)

    def check(data: Bytes, offsets: Longs, rows: Longs) -> NDArray[np.bool_]:
        bad = fates(data, offsets, rows, walked) < 0
        for at in np.flatnonzero(~bad).tolist():
            bad[at] = _is_bad(parsed, data[offsets[rows[at]] : offsets[rows[at] + 1]].tobytes())
        return bad

    return check


def _is_bad(parsed: Any, datum: bytes) -> bool:  # noqa: ANN401 - fastavro's
    source = io.BytesIO(datum)
    try:
        fastavro.schemaless_reader(source, parsed, None)
    except UNREADABLE:
        return True
    return source.tell() != len(datum)
