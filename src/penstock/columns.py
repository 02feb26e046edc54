"""One field of a batch of records, as arrays: what partitioners, extractors and rules see of a value.

Different rows may hold different types (schema versions, unions, JSON), so a field is a few parts, each of one type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from penstock.model import Slices


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of a field that are of one type.

    `rows`: ascending int64 row numbers of the batch. `type`: an Avro type name (`null`, `boolean`, `int`, `long`,
    `float`, `double`, `string`, `bytes`, `fixed`, `enum`, `record`, `array`, `map`), or its logical type where it has
    one (`date`, `timestamp-millis`, `local-timestamp-micros`, `decimal`, `uuid`, ...); `absent`: the schema, or the
    JSON document, has no such field; `malformed`: the payload ends or errs before the field. A field below a null
    parent is `null`. JSON numbers are `long` or `double`, objects `record`.

    `numbers`: one per row, int64 for boolean (0, 1), int, long and everything that Avro stores as one of them, float64
    for float and double; else None. `texts`: one per row for string, enum (its symbol), bytes, fixed, decimal and uuid;
    else None. `by_schema`: the type comes from a schema, not from the value.
    """

    type: str
    rows: NDArray[np.int64]
    numbers: NDArray[np.int64] | NDArray[np.float64] | None = None
    texts: Slices | None = None
    by_schema: bool = False


Field = tuple[Part, ...]
"""Parts that hold every row of a batch once."""
