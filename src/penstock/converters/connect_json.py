"""Avro values as Connect's JsonConverter writes them without schemas (reference s3-sink-connector 4.3).

Compiled per schema: what msgspec writes the same way is left alone, so most values pass untouched.
"""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from penstock.converters.compatibility import full_name, optional
from penstock.converters.java_numbers import double_text, float_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Change = Callable[[Any], Any]

Json = Any
DecimalFormat = Literal["BASE64", "NUMERIC"]
_MAP_ENTRY = "io.confluent.connect.avro.MapEntry"
_NAMED = ("record", "error", "enum", "fixed")
_PYTHON: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (float, int),
    "double": (float, int),
    "string": (str,),
    "enum": (str,),
    "bytes": (bytes,),
    "fixed": (bytes,),
    "array": (list,),
    "map": (dict,),
    "record": (dict,),
    "error": (dict,),
}
_MARK = "penstock_branch_is_"


def rendering(schema: Json, decimals: DecimalFormat) -> Change | None:
    """What makes a value, decoded without logical types, ready for `msgspec.json.encode`; None where nothing has to.

    `schema`: with its logical types. The branch of a union is what its mark says (see `marked`); in a value without
    marks it is the first one of that Python type.
    """
    return _Compiler(decimals).change(schema, "")


def marked(schema: Json) -> Json:
    """The schema to decode with: the same layout, without logical types and defaults, and unions tell their branch.

    A branch of a union of several types becomes a record whose one field has the branch's number in its name.
    """
    return _marked(schema, "", itertools.count())


def _marked(schema: Json, space: str, names: Iterator[int]) -> Json:
    if isinstance(schema, list):
        plain = not isinstance(optional(schema)[1], list)
        branches = [_marked(branch, space, names) for branch in schema]
        return branches if plain else [_mark(at, branch, space, names) for at, branch in enumerate(branches)]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") in _NAMED:
        space = full_name(schema, space).rpartition(".")[0]
    copy = {name: part for name, part in schema.items() if name not in ("logicalType", "default")}
    for part in ("type", "items", "values"):
        if part in copy:
            copy[part] = _marked(copy[part], space, names)
    if "fields" in copy:
        fields = [{name: part for name, part in each.items() if name != "default"} for each in copy["fields"]]
        copy["fields"] = [{**each, "type": _marked(each["type"], space, names)} for each in fields]
    return copy


def _mark(at: int, branch: Json, space: str, names: Iterator[int]) -> Json:
    if branch in ("null", {"type": "null"}):
        return branch
    name = f"penstock_branch_{next(names)}"
    return {"type": "record", "name": name, "namespace": space, "fields": [{"name": f"{_MARK}{at}", "type": branch}]}


class _Compiler:
    def __init__(self, decimals: DecimalFormat) -> None:
        self._decimals = decimals
        self._known: dict[str, Json] = {}
        self._made: dict[str, Change | None] = {}
        self._open: set[str] = set()

    def change(self, schema: Json, space: str) -> Change | None:
        if isinstance(schema, str):
            full = schema if "." in schema or not space else f"{space}.{schema}"
            name = full if full in self._known else schema
            if name in self._known:
                return self._of_name(name)
            schema = {"type": schema}
        if isinstance(schema, list):
            return self._union(schema, space)
        kind = schema["type"]
        if isinstance(kind, (dict, list)):
            return self.change(kind, space)
        if kind == "float":
            return lambda value: msgspec.Raw(float_text(value).encode())
        if kind == "double":
            return lambda value: msgspec.Raw(double_text(value).encode())
        if schema.get("logicalType") == "decimal" and self._decimals == "NUMERIC":
            return _decimal(int(schema.get("scale", 0)))
        if kind in _NAMED:
            name = full_name(schema, space)
            self._known[name] = schema
            return self._of_name(name)
        return self._items(schema, space) if kind in ("array", "map") else None

    def _items(self, schema: Json, space: str) -> Change | None:
        is_array = schema["type"] == "array"
        if is_array and is_entry(schema["items"], space):
            return self._entries(schema["items"], space)
        each = self.change(schema["items" if is_array else "values"], space)
        if each is None:
            return None
        if is_array:
            return lambda values: [each(value) for value in values]
        return lambda values: {key: each(value) for key, value in values.items()}

    def _entries(self, entry: Json, space: str) -> Change:
        """Entries of a map: an object where the keys are texts, else an array of pairs."""
        inner = full_name(entry, space).rpartition(".")[0]
        self._known[full_name(entry, space)] = entry
        types = [each["type"] for each in entry["fields"]]
        key, value = (self.change(each, inner) or _same for each in types)
        if _is_text(optional(types[0])[1]):
            return lambda entries: {each["key"]: value(each["value"]) for each in entries}
        return lambda entries: [[key(each["key"]), value(each["value"])] for each in entries]

    def _of_name(self, name: str) -> Change | None:
        schema = self._known[name]
        if schema["type"] not in ("record", "error"):
            decimal = schema.get("logicalType") == "decimal" and self._decimals == "NUMERIC"
            return _decimal(int(schema.get("scale", 0))) if decimal else None
        if name in self._made:
            return self._made[name]
        if name in self._open:
            # A type within itself: looked up when a value is there.
            return lambda value: value if (made := self._made[name]) is None else made(value)
        self._open.add(name)
        self._made[name] = self._record(schema, name.rpartition(".")[0])
        return self._made[name]

    def _record(self, schema: Json, space: str) -> Change | None:
        changes: dict[str, Change] = {}
        for field in schema["fields"]:
            change = self.change(field["type"], space)
            if optional(field["type"])[0] and field.get("default") is not None:
                change = _or_default(change, field["default"])
            if change is not None:
                changes[field["name"]] = change
        if not changes:
            return None

        def record(value: dict[str, Any]) -> dict[str, Any]:
            for name, change in changes.items():
                value[name] = change(value[name])
            return value

        return record

    def _union(self, schema: list[Json], space: str) -> Change | None:
        rest = optional(schema)[1]
        if not isinstance(rest, list):
            change = self.change(rest, space)
            return None if change is None else lambda value: None if value is None else change(value)
        branches = [(self._branch(branch, space), self.change(branch, space)) for branch in rest]
        marks = {f"{_MARK}{schema.index(branch)}": at for at, branch in enumerate(rest)}

        def union(value: Any) -> Any:  # noqa: ANN401 - Avro data
            """Connect's struct for a union: a member for each branch, all but one null."""
            if value is None:
                return None
            out: dict[str, Any] = {name: None for (name, _), _ in branches}
            mark = next(iter(value)) if type(value) is dict and len(value) == 1 else None
            chosen = (
                [branches[marks[mark]]] if mark in marks else [each for each in branches if type(value) in each[0][1]]
            )
            held = value[mark] if mark in marks else value
            for (name, _), change in chosen[:1]:
                out[name] = held if change is None else change(held)
            return out

        return union

    def _branch(self, schema: Json, space: str) -> tuple[str, tuple[type, ...]]:
        """The name of a union's branch in Connect's struct, and the Python types of its values."""
        if isinstance(schema, str):
            full = schema if "." in schema or not space else f"{space}.{schema}"
            name = full if full in self._known else schema
            kind = self._known[name]["type"] if name in self._known else schema
            return name, _PYTHON[kind]
        kind = schema["type"]
        return (full_name(schema, space) if kind in _NAMED else kind), _PYTHON[kind]


def is_entry(schema: Json, space: str) -> bool:
    """Whether an array's items are how AvroData writes the entries of a map."""
    if not isinstance(schema, dict) or schema.get("type") != "record":
        return False
    mark = schema.get("connect.internal.type") == "MapEntry" or full_name(schema, space) == _MAP_ENTRY
    return mark and [each["name"] for each in schema["fields"]] == ["key", "value"]


def _is_text(schema: Json) -> bool:
    return schema == "string" or (isinstance(schema, dict) and schema.get("type") == "string")


def _same(value: Any) -> Any:  # noqa: ANN401 - any value
    return value


def _decimal(scale: int) -> Change:
    return lambda value: numeric(int.from_bytes(value, "big", signed=True), scale)


def numeric(unscaled: int, scale: int) -> msgspec.Raw:
    """Java's `BigDecimal.toString`, which Python's Decimal follows."""
    digits = tuple(int(digit) for digit in str(abs(unscaled)))
    return msgspec.Raw(str(Decimal((int(unscaled < 0), digits, -scale))).encode())


def _or_default(change: Change | None, default: Json) -> Change:
    """JsonConverter's `replace.null.with.default`, which is on: a null prints the default."""

    def made(value: Any) -> Any:  # noqa: ANN401 - Avro data
        if value is None:
            return default
        return value if change is None else change(value)

    return made
