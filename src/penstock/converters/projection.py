"""Data of one Avro schema under another one: the rare path, value by value (reference s3-sink-connector 2.3).

The rules are Avro's for resolving schemas; where Connect is kinder, the reader's schema is made so: a nullable field
without a default gets null, and a null takes the default of a field that may not be null.
"""

from __future__ import annotations

import functools
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import fastavro

from penstock.converters.compatibility import optional
from penstock.fields.avro import depth_guard

if TYPE_CHECKING:
    from collections.abc import Callable

Json = Any
_NULL = ("null", {"type": "null"})
UNREADABLE = (ValueError, TypeError, KeyError, IndexError, EOFError, OverflowError, AttributeError, RecursionError)


def words(error: Exception) -> str:
    """What one of `UNREADABLE` says, without the address of the stream that fastavro puts there."""
    return str(error).partition(" from <")[0] or "they end too early"


@dataclass(frozen=True, slots=True)
class Projection:
    """From data of one schema to values, or data, of another.

    `lenient`: the target, made to take what Connect takes. `guard`: raises where a datum is too deep to be read.
    """

    source: Any
    lenient: Any
    target: Any
    guard: Callable[[bytes], None]

    def value(self, datum: bytes) -> Any:  # noqa: ANN401 - Avro data
        """The value under the target. Raises one of `UNREADABLE`."""
        self.guard(datum)
        return filled(fastavro.schemaless_reader(io.BytesIO(datum), self.source, self.lenient), self.target, {})

    def datum(self, datum: bytes) -> bytes:
        """The datum under the target. Raises one of `UNREADABLE`."""
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self.target, self.value(datum))
        return out.getvalue()


@functools.lru_cache(maxsize=1024)
def projection(source: str, target: str) -> Projection:
    """The projection between two schemas, as JSON texts. Logical types are carried over as their raw values."""
    wanted = raw(json.loads(target))
    parsed = [fastavro.parse_schema(each) for each in (raw(json.loads(source)), lenient(wanted), wanted)]
    return Projection(parsed[0], parsed[1], parsed[2], depth_guard(json.loads(source)))


def raw(schema: Json) -> Json:
    """A schema without logical types, whose data are then the plain numbers and bytes."""
    if isinstance(schema, list):
        return [raw(branch) for branch in schema]
    if isinstance(schema, dict):
        return {k: v if k == "default" else raw(v) for k, v in schema.items() if k != "logicalType"}
    return schema


def lenient(schema: Json) -> Json:
    """A schema to read with: nullable fields have null as their default, fields with a default may be null."""
    if isinstance(schema, list):
        return [lenient(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {name: lenient(part) if name in ("type", "items", "values") else part for name, part in schema.items()}
    if "fields" in copy:
        copy["fields"] = [_lenient_field(field) for field in copy["fields"]]
    return copy


def _lenient_field(field: dict[str, Json]) -> dict[str, Json]:
    kind = lenient(field["type"])
    branches = kind if isinstance(kind, list) else [kind]
    is_optional = optional(kind)[0]
    if "default" in field:
        return {**field, "type": kind if is_optional else [*branches, "null"]}
    if not is_optional:
        return {**field, "type": kind}
    # Avro wants the branch of the default to come first.
    return {**field, "type": ["null", *(b for b in branches if b not in _NULL)], "default": None}


def filled(value: Any, schema: Json, known: dict[str, Json]) -> Any:  # noqa: ANN401 - Avro data
    """A value read with the lenient schema, with defaults where the real one takes no null."""
    if isinstance(schema, str):
        schema = known.get(schema, schema)
    if not isinstance(schema, dict) or value is None:
        if not isinstance(schema, list):
            return value
        rest = optional(schema)[1]
        return value if isinstance(rest, list) else filled(value, rest, known)
    kind = schema["type"]
    if kind in ("record", "error"):
        known[schema["name"]] = schema
        for field in schema["fields"]:
            held = value.get(field["name"])
            if held is None and "default" in field and not optional(field["type"])[0]:
                held = field["default"]
            value[field["name"]] = filled(held, field["type"], known)
    elif kind == "array":
        return [filled(item, schema["items"], known) for item in value]
    elif kind == "map":
        return {name: filled(item, schema["values"], known) for name, item in value.items()}
    return value
