"""Columns for JSON documents without a schema: types that fit all documents of a file (docs/formats.md).

Whether a block of documents fits the types found so far is msgspec's to tell, at once; only a block that does not is
looked at document by document. Others were tried and are not used: pyarrow's reader moves values within lists that
begin with null, and msgspec's TypedDict loses members whose names are not ASCII.
"""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass, field
from typing import Annotated, Any, Optional

import msgspec
import pyarrow as pa

VALUE = "value"
"""The column of documents that are no objects."""
_MIXED = pa.large_string()  # values of several types: becomes text, as `pa.string()` is already
_DEEPEST = 32
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_INT = Annotated[int, msgspec.Meta(ge=_SMALLEST, le=_LARGEST)]
_ANY = msgspec.json.Decoder()
_ENCODE = msgspec.json.Encoder().encode
# ValueError: also names of members that msgspec's types cannot have (quotes, control characters).
_MISFITS = (msgspec.MsgspecError, RecursionError, ValueError)
_PLAIN: dict[pa.DataType, Any] = {pa.bool_(): bool, pa.int64(): _INT, pa.float64(): float, pa.string(): str}


@dataclass(slots=True)
class Shape:
    """The types of the documents seen so far."""

    found: pa.DataType = field(default_factory=lambda: pa.struct([]))

    def see(self, lines: bytes) -> None:
        """Take documents, a line feed behind each, into account."""
        try:
            _checker(self.found).decode_lines(lines)
        except _MISFITS:
            for line in lines.splitlines():
                self.found = merged(self.found, _type(_as_object(_document(line)), 0))

    def schema(self) -> pa.Schema:
        """The columns: all may be null. There is one at least, so that documents without a member are rows, too."""
        fields = [pa.field(each.name, _settled(each.type)) for each in self.found]
        return pa.schema(fields or [pa.field(VALUE, pa.string())])

    def table(self, lines: bytes) -> pa.Table:
        """Documents that were seen as columns of all that were."""
        schema, rows = self.schema(), documents(lines)
        fitted = [each.name for each in self.found if _must_fit(each.type)]
        for row in rows if fitted else ():
            for name in fitted:
                if name in row:
                    row[name] = _fitted(row[name], schema.field(name).type)
        return pa.Table.from_pylist(rows, schema=schema)


def documents(lines: bytes) -> list[dict[str, Any]]:
    """Each as an object: what is none stands in the column `value`."""
    try:
        found = _ANY.decode_lines(lines)
    except _MISFITS:
        found = [_document(line) for line in lines.splitlines()]
    return [_as_object(each) for each in found]


def _as_object(document: Any) -> dict[str, Any]:  # noqa: ANN401 - a JSON value
    return document if isinstance(document, dict) else {VALUE: document}


def _document(line: bytes) -> Any:  # noqa: ANN401 - a JSON value
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        return _clean(json.loads(line))  # a number that is larger than a double, half of a character


def _clean(value: Any) -> Any:  # noqa: ANN401 - a JSON value
    """With halves of characters, which no column can hold, replaced."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_clean(name): _clean(item) for name, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value


def merged(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type that holds values of both."""
    if one.equals(other) or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        types = {each.name: each.type for each in one}
        for each in other:
            types[each.name] = merged(types[each.name], each.type) if each.name in types else each.type
        return pa.struct([pa.field(name, kind) for name, kind in types.items()])
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(merged(one.value_type, other.value_type))
    return pa.float64() if {one, other} <= {pa.int64(), pa.float64()} else _MIXED


def _type(value: Any, depth: int) -> pa.DataType:  # noqa: ANN401 - a JSON value, one answer for each kind
    if isinstance(value, (dict, list)) and depth >= _DEEPEST:
        return _MIXED
    if isinstance(value, dict):
        return pa.struct([pa.field(name, _type(item, depth + 1)) for name, item in value.items()])
    if isinstance(value, list):
        return pa.list_(functools.reduce(merged, (_type(item, depth + 1) for item in value), pa.null()))
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int64() if _SMALLEST <= value <= _LARGEST else pa.float64()
    if isinstance(value, float):
        return pa.float64()
    return pa.null() if value is None else pa.string()


def _settled(kind: pa.DataType) -> pa.DataType:
    """What a column becomes: what was only ever null, or an object without a member, is text."""
    if pa.types.is_struct(kind):
        fields = [pa.field(each.name, _settled(each.type)) for each in kind]
        return pa.struct(fields) if fields else pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_settled(kind.value_type))
    return pa.string() if kind in (pa.null(), _MIXED) else kind


def _must_fit(kind: pa.DataType) -> bool:
    """Whether a value may be of another type than its column."""
    if pa.types.is_struct(kind):
        return not kind.num_fields or any(_must_fit(each.type) for each in kind)
    return _must_fit(kind.value_type) if pa.types.is_list(kind) else kind in (_MIXED, pa.float64())


def _fitted(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 - a JSON value
    """A value as its column has it: where that is text, anything else as the JSON it was."""
    if value is None:
        return None
    if pa.types.is_string(kind):
        return value if isinstance(value, str) else _ENCODE(value).decode()
    if pa.types.is_struct(kind):
        return {each.name: _fitted(value.get(each.name), each.type) for each in kind}
    if pa.types.is_list(kind):
        return [_fitted(item, kind.value_type) for item in value]
    return _float(value) if pa.types.is_floating(kind) else value


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


@functools.lru_cache(maxsize=64)
def _checker(kind: pa.DataType) -> msgspec.json.Decoder[Any]:
    """Refuses documents that do not fit a type."""
    return msgspec.json.Decoder(_checked(kind))


def _checked(kind: pa.DataType) -> Any:  # noqa: ANN401 - a type
    if pa.types.is_struct(kind):
        fields = [
            (f"f{at}", _optional(_checked(each.type)), msgspec.field(default=None, name=each.name))
            for at, each in enumerate(kind)
        ]
        return msgspec.defstruct("Document", fields, forbid_unknown_fields=True)
    if pa.types.is_list(kind):
        return list[_optional(_checked(kind.value_type))]  # type: ignore[misc]
    return _PLAIN.get(kind, None if pa.types.is_null(kind) else Any)


def _optional(kind: Any) -> Any:  # noqa: ANN401 - a type
    return Optional[kind]  # noqa: UP045 - it may be None itself
