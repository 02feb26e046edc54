"""JSON values read as an Avro schema says: plain, or with Avro's own JSON encoding (`{"string": "x"}` in unions).

What comes out is what fastavro writes: bytes for bytes and fixed (JSON text, one character per byte), a pair of name
and value in a union. A field that is left out takes its default. Numbers of logical types are written as they are;
a decimal may also be a JSON number.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NOT_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})
_SHOWN_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A schema that fastavro has parsed, with the named types in it."""

    parsed: Any
    names: Mapping[str, Any]

    def read(self, value: object) -> Any:  # noqa: ANN401 - Avro data
        """The value that fastavro writes. Raises ValueError that says where in the value it does not fit."""
        return _read(value, self.parsed, self, "")


def parse_schema(text: str) -> AvroSchema:
    """Raises ValueError if it is not an Avro schema."""
    import fastavro
    from fastavro.schema import SchemaParseException

    names: dict[str, Any] = {}
    try:
        parsed = fastavro.parse_schema(json.loads(text), named_schemas=names)
    except json.JSONDecodeError as error:
        msg = f"not valid JSON: {error.msg} at character {error.pos + 1}"
        raise ValueError(msg) from None
    except (SchemaParseException, KeyError, TypeError, RecursionError) as error:
        msg = f"not an Avro schema: {error}"
        raise ValueError(msg) from None
    return AvroSchema(parsed, names)


def without_logical_types(schema: Any) -> Any:  # noqa: ANN401 - a schema as JSON
    """The same schema whose values are read as the raw numbers and bytes that were written."""
    if isinstance(schema, list):
        return [without_logical_types(item) for item in schema]
    if isinstance(schema, dict):
        return {name: without_logical_types(item) for name, item in schema.items() if name != "logicalType"}
    return schema


def _read(value: object, schema: Any, root: AvroSchema, where: str) -> Any:  # noqa: ANN401
    if isinstance(schema, list):
        return _union(value, schema, root, where)
    if isinstance(schema, str) and schema in root.names:
        schema = root.names[schema]
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind in _COMPLEX:
        return _COMPLEX[kind](value, schema, root, where)
    if isinstance(kind, (dict, list)):
        return _read(value, kind, root, where)
    return _primitive(value, kind, schema, where)


def _primitive(value: object, kind: str, schema: Any, where: str) -> object:  # noqa: ANN401
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "null" and value is None:
        return None
    if kind == "boolean" and isinstance(value, bool):
        return value
    if kind in _BITS and number and isinstance(value, int):
        if -(1 << _BITS[kind]) <= value < 1 << _BITS[kind]:
            return value
        raise _misfit(value, f"a number that fits Avro's {kind}", where)
    if kind in {"float", "double"} and (number or value in _NOT_FINITE):
        return float(value)  # type: ignore[arg-type] # a number, as the line above has checked
    if kind == "string" and isinstance(value, str):
        return value
    if kind == "bytes":
        return _bytes(value, schema, where)
    raise _misfit(value, kind, where)


def _bytes(value: object, schema: Any, where: str) -> bytes | Decimal:  # noqa: ANN401
    decimal = isinstance(schema, dict) and schema.get("logicalType") == "decimal"
    if decimal and isinstance(value, (int, float)) and not isinstance(value, bool):
        return Decimal(str(value))
    if isinstance(value, str):
        try:
            return value.encode("iso-8859-1")
        except UnicodeEncodeError:
            pass
    raise _misfit(value, "bytes as text, one character up to U+00FF per byte", where)


def _fixed(value: object, schema: Any, _root: AvroSchema, where: str) -> bytes | Decimal:  # noqa: ANN401
    data = _bytes(value, schema, where)
    if isinstance(data, bytes) and len(data) != schema["size"]:
        raise _misfit(value, f"{schema['size']} bytes", where)
    return data


def _enum(value: object, schema: Any, _root: AvroSchema, where: str) -> str:  # noqa: ANN401
    if isinstance(value, str) and value in schema["symbols"]:
        return value
    raise _misfit(value, f"one of {', '.join(schema['symbols'])}", where)


def _array(value: object, schema: Any, root: AvroSchema, where: str) -> list[Any]:  # noqa: ANN401
    if not isinstance(value, list):
        raise _misfit(value, "an array", where)
    return [_read(item, schema["items"], root, f"{where}[{index}]") for index, item in enumerate(value)]


def _map(value: object, schema: Any, root: AvroSchema, where: str) -> dict[str, Any]:  # noqa: ANN401
    if not isinstance(value, dict):
        raise _misfit(value, "an object", where)
    return {key: _read(item, schema["values"], root, f"{where}.{key}") for key, item in value.items()}


def _record(value: object, schema: Any, root: AvroSchema, where: str) -> dict[str, Any]:  # noqa: ANN401
    if not isinstance(value, dict):
        raise _misfit(value, f"an object (record {schema['name']})", where)
    fields = {field["name"]: field for field in schema["fields"]}
    unknown = next((name for name in value if name not in fields), None)
    if unknown is not None:
        msg = f"{_place(where)}record {schema['name']} has no field `{unknown}`"
        raise ValueError(msg)
    result = {}
    for name, field in fields.items():
        if name not in value and "default" not in field:
            msg = f"{_place(where)}field `{name}` is missing"
            raise ValueError(msg)
        result[name] = _read(value.get(name, field.get("default")), field["type"], root, f"{where}.{name}")
    return result


def _union(value: object, branches: list[Any], root: AvroSchema, where: str) -> tuple[str, Any]:
    if isinstance(value, dict) and len(value) == 1:
        tag, inner = next(iter(value.items()))
        for branch in branches:
            name = _name(branch)
            if tag in {name, name.rpartition(".")[2]}:
                return name, _read(inner, branch, root, where)
    problems = []
    for branch in branches:
        try:
            return _name(branch), _read(value, branch, root, where)
        except ValueError as error:
            if _name(branch) != "null":
                problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    raise _misfit(value, f"one of {', '.join(map(_name, branches))}", where)


def _name(branch: Any) -> str:  # noqa: ANN401
    return branch if isinstance(branch, str) else str(branch.get("name", branch["type"]))


def _misfit(value: object, wanted: str, where: str) -> ValueError:
    text = json.dumps(value, default=str)
    shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
    return ValueError(f"{_place(where)}must be {wanted}, got `{shown}`")


def _place(where: str) -> str:
    return f"{where.lstrip('.')}: " if where else ""


_BITS = {"int": 31, "long": 63}
_COMPLEX: dict[str, Callable[[object, Any, AvroSchema, str], Any]] = {
    "fixed": _fixed,
    "enum": _enum,
    "array": _array,
    "map": _map,
    "record": _record,
    "error": _record,
}
