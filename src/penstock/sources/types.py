"""Arrow types of values: evolving ones merged, and data carried over from one to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.sources.columns import MICROSECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable

_WIDER = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64())
_INTEGERS = 4
_MOST_DIGITS = 38
_NARROW = 32
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}


class Unmergeable(ValueError):  # noqa: N818 - what two types are to each other
    """Two types of one field that no type holds; the text names the field and both."""


def merge(types: Iterable[pa.DataType], *, or_text: bool = False) -> pa.DataType:
    """The type that holds the values of all: fields of any version, numbers as wide as the widest.

    `or_text`: what no type holds is a string.

    Raises:
        Unmergeable: there is none.
    """
    found = pa.null()
    for each in types:
        found = _merged(found, each, "value", or_text=or_text)
    return found


def grown(target: pa.DataType, seen: Iterable[pa.DataType]) -> pa.DataType | None:
    """The type with what values of other types have more; None where they have nothing.

    A field that was only ever null has no type yet. Of types that contradict the target it stays: their values are
    mistakes.
    """
    found = target
    for each in seen:
        try:
            found = merge([found, spark_like(without_nulls(each))])
        except Unmergeable:
            continue
    return None if found == target else found


def without_nulls(found: pa.DataType) -> pa.DataType:
    """A type without the fields that are null in all values."""
    if pa.types.is_struct(found):
        return pa.struct([pa.field(each.name, without_nulls(each.type)) for each in found if each.type != pa.null()])
    if pa.types.is_list(found):
        return pa.list_(pa.field("element", without_nulls(found.value_type)))
    return found


def conform(data: pa.Array, target: pa.DataType) -> pa.Array:
    """The same values as the type that `merge` made, or one like it: fields that are lacking are null.

    Raises:
        pa.ArrowInvalid: a value that the type does not hold.
    """
    if data.type == target:
        return data
    if data.offset and not pa.types.is_struct(data.type):
        data = data.take(pa.array(range(len(data))))  # Arrow makes no lists of a slice that has nulls
    if pa.types.is_null(data.type):
        return pa.nulls(len(data), target)
    if pa.types.is_struct(target) and pa.types.is_struct(data.type):
        return _struct(data, target)
    if pa.types.is_list(target) and pa.types.is_list(data.type):
        items = conform(data.values, target.value_type)
        return pa.ListArray.from_arrays(data.offsets, items, type=target, mask=data.is_null())
    if pa.types.is_map(target) and pa.types.is_map(data.type):
        keys, items = conform(data.keys, target.key_type), conform(data.items, target.item_type)
        return pa.MapArray.from_arrays(data.offsets, keys, items, type=target, mask=data.is_null())
    cut = pa.types.is_timestamp(data.type) and data.type.unit == "ns"
    return data.cast(target, safe=not (cut or pa.types.is_floating(target)))


def spark_like(found: pa.DataType) -> pa.DataType:
    """The type as Spark knows it: no nulls without a type, instants in microseconds, times of day as numbers."""
    if pa.types.is_null(found) or pa.types.is_large_string(found):
        return pa.string()
    if pa.types.is_time(found):
        return pa.int32() if found.bit_width == _NARROW else pa.int64()
    if pa.types.is_decimal256(found):
        return pa.string()
    if pa.types.is_timestamp(found):
        return MICROSECONDS if found.tz else pa.timestamp("us")
    if pa.types.is_fixed_size_binary(found) or pa.types.is_large_binary(found):
        return pa.binary()
    if pa.types.is_dictionary(found):
        return spark_like(found.value_type)
    if pa.types.is_list(found) or pa.types.is_large_list(found):
        return pa.list_(pa.field("element", spark_like(found.value_type)))
    if pa.types.is_map(found):
        return pa.map_(pa.string(), pa.field("value", spark_like(found.item_type)))
    if pa.types.is_struct(found):
        return pa.struct([pa.field(each.name, spark_like(each.type)) for each in found])
    return found


def _merged(left: pa.DataType, right: pa.DataType, path: str, *, or_text: bool) -> pa.DataType:
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        fields = {each.name: each.type for each in left}
        for each in right:
            fields[each.name] = _merged(
                fields.get(each.name, pa.null()), each.type, f"{path}.{each.name}", or_text=or_text
            )
        return pa.struct([pa.field(name, kind) for name, kind in fields.items()])
    if pa.types.is_list(left) and pa.types.is_list(right):
        items = _merged(left.value_type, right.value_type, f"{path}[]", or_text=or_text)
        return pa.list_(pa.field("element", items))
    if pa.types.is_map(left) and pa.types.is_map(right):
        items = _merged(left.item_type, right.item_type, f"{path}{{}}", or_text=or_text)
        return pa.map_(pa.string(), pa.field("value", items))
    found = _scalar(left, right)
    if found is None and or_text:
        return pa.string()
    if found is None:
        msg = f"`{path}` is `{left}` in one schema and `{right}` in another, and no type holds both"
        raise Unmergeable(msg)
    return found


def _scalar(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if left in _WIDER and right in _WIDER:
        low, high = sorted((_WIDER.index(left), _WIDER.index(right)))
        return pa.float64() if low < _INTEGERS <= high else _WIDER[high]
    if pa.types.is_decimal(left) or pa.types.is_decimal(right):
        return _decimal(left, right)
    if pa.types.is_timestamp(left) and pa.types.is_timestamp(right) and bool(left.tz) == bool(right.tz):
        return MICROSECONDS if left.tz else pa.timestamp("us")
    texts = (pa.string(), pa.binary())
    return pa.binary() if left in texts and right in texts else None


def _decimal(left: Any, right: Any) -> pa.DataType | None:  # noqa: ANN401 - Arrow types, one of them a decimal
    """The smallest decimal that holds both; None where Spark has none."""
    if not all(pa.types.is_decimal(each) or each in _DIGITS for each in (left, right)):
        return None
    sides = [
        (each.precision, each.scale) if pa.types.is_decimal(each) else (_DIGITS[each], 0) for each in (left, right)
    ]
    scale = max(each for _, each in sides)
    digits = max(digits - each for digits, each in sides) + scale
    return pa.decimal128(digits, scale) if digits <= _MOST_DIGITS else None


def _struct(data: pa.StructArray, target: pa.StructType) -> pa.Array:
    fields = list(target)
    given = {each.name: number for number, each in enumerate(data.type)}
    columns = [
        conform(data.field(given[each.name]), each.type) if each.name in given else pa.nulls(len(data), each.type)
        for each in fields
    ]
    if not fields:
        return pa.array([None if null else {} for null in data.is_null().to_pylist()], target)
    return pa.StructArray.from_arrays(columns, fields=fields, mask=data.is_null())
