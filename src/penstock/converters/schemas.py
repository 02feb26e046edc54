"""The Avro schema that a file carries for a schema of the registry (reference s3-sink-connector 4.2).

The binary layout is never changed, so that payloads can be copied: only properties are added, or dropped, that no
reader needs to decode. Where Confluent's way through Connect's types would change the layout, docs/formats.md says so.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from penstock.converters.base import FileSchema

_CONNECT_PROPERTIES = (
    "connect.name",
    "connect.version",
    "connect.doc",
    "connect.parameters",
    "connect.default",
    "connect.type",
)
_LOGICAL_NAMES = {
    "date": "org.apache.kafka.connect.data.Date",
    "time-millis": "org.apache.kafka.connect.data.Time",
    "timestamp-millis": "org.apache.kafka.connect.data.Timestamp",
    "decimal": "org.apache.kafka.connect.data.Decimal",
}
_NAMED = ("record", "error", "enum", "fixed")

Json = Any


def file_schema(text: str, version: int | None, *, connect_meta_data: bool, named: dict[str, Json]) -> FileSchema:
    """The file's schema for a registered one.

    `version`: the subject's, if known. `named`: full name -> schema of types that the registry keeps as references;
    each is written out where it is first used.
    """
    schema = _inline(json.loads(text), "", dict(named))
    schema = _annotate(schema, "", top=version) if connect_meta_data else _strip(schema)
    body = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    name = _full_name(schema, "") if isinstance(schema, dict) and "name" in schema else ""
    return FileSchema(body, hashlib.sha256(body.encode()).hexdigest()[:16], name, version)


def _full_name(schema: dict[str, Json], namespace: str) -> str:
    name = str(schema["name"])
    space = schema.get("namespace", namespace)
    return name if "." in name or not space else f"{space}.{name}"


def _children(schema: Json, namespace: str) -> tuple[dict[str, Json], str]:
    """A copy of a complex schema to fill in, and the namespace that holds inside of it."""
    copy = dict(schema)
    if schema.get("type") in _NAMED:
        namespace = _full_name(schema, namespace).rpartition(".")[0]
    return copy, namespace


def _inline(schema: Json, namespace: str, named: dict[str, Json]) -> Json:
    """With every referenced named type written out where it is first used."""
    if isinstance(schema, str):
        full = schema if "." in schema or not namespace else f"{namespace}.{schema}"
        found = next((name for name in (full, schema) if name in named), None)
        return schema if found is None else _inline(named.pop(found), "", named)
    if isinstance(schema, list):
        return [_inline(branch, namespace, named) for branch in schema]
    copy, namespace = _children(schema, namespace)
    if "fields" in copy:
        copy["fields"] = [{**f, "type": _inline(f["type"], namespace, named)} for f in copy["fields"]]
    for part in ("items", "values"):
        if part in copy:
            copy[part] = _inline(copy[part], namespace, named)
    if isinstance(copy.get("type"), (dict, list)):
        copy["type"] = _inline(copy["type"], namespace, named)
    return copy


def _annotate(schema: Json, namespace: str, *, top: int | None = None) -> Json:
    """With the `connect.*` properties that Confluent's converter leaves in a schema."""
    if isinstance(schema, str):
        return schema
    if isinstance(schema, list):
        return [_annotate(branch, namespace) for branch in schema]
    full = _full_name(schema, namespace) if schema.get("type") in _NAMED and "name" in schema else None
    copy, namespace = _children(schema, namespace)
    if "fields" in copy:
        copy["fields"] = [{**f, "type": _annotate(f["type"], namespace)} for f in copy["fields"]]
    for part in ("items", "values"):
        if part in copy:
            copy[part] = _annotate(copy[part], namespace)
    if isinstance(copy.get("type"), (dict, list)):
        copy["type"] = _annotate(copy["type"], namespace)
    logical = _LOGICAL_NAMES.get(str(copy.get("logicalType")))
    for name, value in _connect_properties(copy, full, logical, top).items():
        copy.setdefault(name, value)
    return copy


def _connect_properties(schema: dict[str, Json], full: str | None, logical: str | None, top: int | None) -> Json:
    """In Confluent's order."""
    found: dict[str, Json] = {}
    if full is not None and "doc" in schema:
        found["connect.doc"] = schema["doc"]
    if top is not None or logical:
        found["connect.version"] = top if top is not None else 1
    if schema.get("logicalType") == "decimal":
        precision = str(schema.get("precision", 64))
        found["connect.parameters"] = {"scale": str(schema.get("scale", 0)), "connect.decimal.precision": precision}
    if logical or full:
        found["connect.name"] = logical or full
    return found


def _strip(schema: Json) -> Json:
    """Without any `connect.*` property."""
    if isinstance(schema, list):
        return [_strip(branch) for branch in schema]
    if isinstance(schema, dict):
        return {k: _strip(v) if k != "default" else v for k, v in schema.items() if k not in _CONNECT_PROPERTIES}
    return schema


def without_known(schema: Json, other: Json) -> Json:
    """A schema beside another one: named types that the other defines alike are only named.

    Raises:
        ValueError: both define one name in two ways; words that stand for a record.
    """
    known = dict(_definitions(other, ""))

    def replaced(part: Json, namespace: str) -> Json:
        if isinstance(part, list):
            return [replaced(branch, namespace) for branch in part]
        if not isinstance(part, dict):
            return part
        if part.get("type") in _NAMED and (full := _full_name(part, namespace)) in known:
            if known[full] != part:
                msg = f"its key and its value define `{full}` in two ways, so they cannot stand in one schema"
                raise ValueError(msg)
            return full
        copy, namespace = _children(part, namespace)
        if "fields" in copy:
            copy["fields"] = [{**each, "type": replaced(each["type"], namespace)} for each in copy["fields"]]
        for name in ("items", "values"):
            if name in copy:
                copy[name] = replaced(copy[name], namespace)
        if isinstance(copy.get("type"), (dict, list)):
            copy["type"] = replaced(copy["type"], namespace)
        return copy

    return replaced(schema, "")


def _definitions(schema: Json, namespace: str) -> list[tuple[str, Json]]:
    """Every named type that a schema defines, by its full name."""
    if isinstance(schema, list):
        return [each for branch in schema for each in _definitions(branch, namespace)]
    if not isinstance(schema, dict):
        return []
    own = [(_full_name(schema, namespace), schema)] if schema.get("type") in _NAMED else []
    inner = own[0][0].rpartition(".")[0] if own else namespace
    below = [each["type"] for each in schema.get("fields", ())]
    below += [schema[name] for name in ("items", "values", "type") if isinstance(schema.get(name), (dict, list))]
    return own + [each for part in below for each in _definitions(part, inner)]
