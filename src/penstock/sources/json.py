"""JSON documents as Arrow arrays: many lines at once by Arrow's reader, one by one where that gives up."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.json as pj

from penstock.sources.types import conform, merge

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

UNREADABLE = (
    msgspec.DecodeError,
    UnicodeDecodeError,
    ValueError,
    TypeError,
    OverflowError,
    RecursionError,
    pa.ArrowException,
)
_LEAST, _MOST = -(2**63), 2**63 - 1


def type_of(document: Any) -> pa.DataType:  # noqa: ANN401 - JSON
    """The type of a document: objects are structs, whole numbers longs, all else as Spark infers it."""
    if isinstance(document, dict):
        return pa.struct([pa.field(name, type_of(value)) for name, value in document.items()])
    if isinstance(document, list):
        return pa.list_(pa.field("element", merged(type_of(each) for each in document)))
    if isinstance(document, bool):
        return pa.bool_()
    if isinstance(document, int):
        return pa.int64() if _LEAST <= document <= _MOST else pa.float64()
    if isinstance(document, float):
        return pa.float64()
    return pa.null() if document is None else pa.string()


def merged(types: Iterable[pa.DataType]) -> pa.DataType:
    """The type of documents of all these types; what is of different kinds is text, as in Spark."""
    return merge(types, or_text=True)


def rows(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], target: pa.DataType, seen: set[pa.DataType] | None = None
) -> tuple[pa.Array, dict[int, str]]:
    """The documents `data[offsets[i]:offsets[i + 1]]`, each a line, that fit the type; and why each other does not.

    `seen`: takes the types of documents that may have more than `target`.
    """
    # Arrow's reader crashes on lines that are no objects.
    if len(offsets) > 1 and (data[offsets[:-1]] == ord("{")).all():
        found = _objects(data.tobytes(), len(offsets) - 1, target, seen)
        if found is not None:
            return found, {}
    values, bad = [], {}
    for row, (start, end) in enumerate(pairwise(offsets.tolist())):
        try:
            document = data[start:end].tobytes()
            if seen is not None:
                seen.add(type_of(msgspec.json.decode(document)))
            values.append(_value(document, target))
        except UNREADABLE as error:
            bad[row] = str(error)
    return pa.array(values, target), bad


def _objects(lines: bytes, count: int, target: pa.DataType, seen: set[pa.DataType] | None) -> pa.Array | None:
    """`count` objects, one on each line, as structs of the type; None where Arrow's reader does not take them."""
    if not pa.types.is_struct(target) or not list(target) or not _simple(target):
        return None
    others: Literal["ignore", "infer"] = "ignore" if seen is None else "infer"
    options = pj.ParseOptions(pa.schema(list(target)), newlines_in_values=False, unexpected_field_behavior=others)
    reading = pj.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    try:
        table = pj.read_json(pa.BufferReader(lines), reading, options)
    except pa.ArrowException:
        return None
    if len(table) != count:
        return None
    if seen is not None:
        seen.add(pa.struct(list(table.schema)))
    columns = [conform(table.column(each.name).combine_chunks(), each.type) for each in target]
    return pa.StructArray.from_arrays(columns, fields=list(target))


def _value(document: bytes, target: pa.DataType) -> Any:  # noqa: ANN401 - JSON
    """A document as Arrow takes it for a type. Raises one of `UNREADABLE`."""
    found = shaped(msgspec.json.decode(document), target)
    pa.scalar(found, target)
    return found


def shaped(value: Any, target: pa.DataType) -> Any:  # noqa: ANN401 - JSON
    """A value as Arrow takes it for a type. Raises ValueError where it does not fit."""
    if value is None:
        return None
    if pa.types.is_struct(target) and isinstance(value, dict):
        return {each.name: shaped(value.get(each.name), each.type) for each in target}
    if pa.types.is_map(target) and isinstance(value, dict):
        return [(name, shaped(each, target.item_type)) for name, each in value.items()]
    if pa.types.is_list(target) and isinstance(value, list):
        return [shaped(each, target.value_type) for each in value]
    if pa.types.is_string(target):
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if pa.types.is_boolean(target) == isinstance(value, bool) and not isinstance(value, (dict, list)):
        return _scalar(value, target)
    msg = f"`{json.dumps(value)[:60]}` does not fit the type `{target}`"
    raise ValueError(msg)


def _scalar(value: Any, target: pa.DataType) -> Any:  # noqa: ANN401
    if pa.types.is_floating(target) and isinstance(value, int):
        return float(value)
    if isinstance(value, str) and (pa.types.is_temporal(target) or pa.types.is_decimal(target)):
        return pa.scalar(value).cast(target).as_py()
    if isinstance(value, float) and pa.types.is_integer(target) and not value.is_integer():
        msg = f"`{value}` does not fit the type `{target}`"
        raise ValueError(msg)
    return int(value) if isinstance(value, float) and pa.types.is_integer(target) else value


def _simple(target: pa.DataType) -> bool:
    """Whether Arrow's reader makes of the type what `shaped` makes."""
    if pa.types.is_struct(target):
        return all(_simple(each.type) for each in target)
    if pa.types.is_list(target):
        return _simple(target.value_type)
    return target in (pa.int64(), pa.float64(), pa.bool_(), pa.string())
