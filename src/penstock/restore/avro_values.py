"""Values of columns to what fastavro encodes under the Avro schema that the columns were made from."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Json = Any
    Convert = Callable[[Any], Any]
    Known = dict[str, Json]

_NULLS = ("null", {"type": "null"})
_NAMED = ("record", "error", "enum", "fixed")


def converting(schema: Json, known: Known, space: str) -> Convert:
    """The conversion for a schema. `known`: full name -> definition of the named types so far; `space`: namespace."""
    if isinstance(schema, list):
        return _union(schema, known, space)
    if isinstance(schema, str):
        full = _known_name(schema, known, space)
        return _same if full is None else converting(known[full], known, full.rpartition(".")[0])
    kind = schema["type"]
    if kind in _NAMED:
        full = _full_name(schema, space)
        known[full], space = schema, full.rpartition(".")[0]
    if kind in ("record", "error"):
        fields = [(each["name"], converting(each["type"], known, space)) for each in schema["fields"]]
        return lambda value: {name: convert(value[name]) for name, convert in fields}
    if kind == "array":
        item = converting(schema["items"], known, space)
        return lambda value: [item(each) for each in value]
    if kind == "map":
        held = converting(schema["values"], known, space)
        return lambda value: {name: held(each) for name, each in value}
    if kind in ("bytes", "fixed"):
        size = schema.get("size")
        return lambda value: _unscaled(value, size) if isinstance(value, Decimal) else value
    return _same if kind == "enum" else converting(kind, known, space)


def _union(schema: list[Json], known: Known, space: str) -> Convert:
    """As `penstock.columnar.schema` lays it out: a nullable value, or a struct with a member for each branch."""
    branches = [each for each in schema if each not in _NULLS]
    made = [(_branch_name(each, known, space), converting(each, known, space)) for each in branches]
    if len(schema) == 2 and len(branches) == 1 and not isinstance(branches[0], list):  # noqa: PLR2004 - null and it
        name, convert = made[0]
        return lambda value: None if value is None else (name, convert(value))

    def chosen(value: dict[str, Any] | None) -> tuple[str, Any] | None:
        for number, (name, convert) in enumerate(made):
            held = None if value is None else value[f"member{number}"]
            if held is not None:
                return name, convert(held)
        return None

    return chosen


def _branch_name(branch: Json, known: Known, space: str) -> str:
    """How fastavro calls a branch."""
    if isinstance(branch, str):
        return _known_name(branch, known, space) or branch
    return _full_name(branch, space) if branch["type"] in _NAMED else str(branch["type"])


def _known_name(name: str, known: Known, space: str) -> str | None:
    """The full name of a type that was defined before, or None for one of Avro's own."""
    full = name if "." in name or not space else f"{space}.{name}"
    return next((each for each in (full, name) if each in known), None)


def _full_name(schema: Json, space: str) -> str:
    name, around = str(schema["name"]), schema.get("namespace", space)
    return name if "." in name or not around else f"{around}.{name}"


def _same(value: Any) -> Any:  # noqa: ANN401 - any value
    return value


def _unscaled(value: Decimal, size: int | None) -> bytes:
    """A decimal as the bytes of its digits: as few as they need, or `size`."""
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    return number.to_bytes(size or number.bit_length() // 8 + 1, "big", signed=True)
