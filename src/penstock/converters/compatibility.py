"""`schema.compatibility`: which records may enter a file of another schema (reference s3-sink-connector 2.3)."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from penstock.converters.base import FileSchema

Json = Any
Mode = Literal["NONE", "BACKWARD", "FORWARD", "FULL", "UNION"]
_NUMBERS = ("int", "long", "float", "double")
_NAMED = ("record", "error", "enum", "fixed")
_MISSING = object()


def joins(file: FileSchema, record: FileSchema, mode: Mode) -> bool:
    """Whether a record may enter a file of another schema, projected to it.

    BACKWARD and FULL: the record's version is not newer than the file's; FORWARD: not older. Then, and with UNION,
    the file's schema has to read the record's data. A version that is missing joins nothing.
    """
    if mode == "NONE":
        return file == record
    if mode != "UNION":
        if file.version is None or record.version is None:
            return False
        if (record.version < file.version) if mode == "FORWARD" else (record.version > file.version):
            return False
    return reads(file.text, record.text)


def lacks_version(file: FileSchema, record: FileSchema, mode: Mode) -> bool:
    """Whether it cannot be said how two different schemas get on, because a version is missing."""
    return mode in ("BACKWARD", "FORWARD", "FULL") and file != record and None in (file.version, record.version)


def newer(a: FileSchema, b: FileSchema) -> bool:
    """Whether `a` is the newer one: by version, or else because only `a` reads the other's data."""
    if a.version is not None and b.version is not None and a.version != b.version:
        return a.version > b.version
    forth, back = reads(a.text, b.text), reads(b.text, a.text)
    return forth if forth != back else a.fingerprint > b.fingerprint


@functools.lru_cache(maxsize=4096)
def reads(reader: str, writer: str) -> bool:
    """Whether data written under one Avro schema can be projected to another, both as JSON texts."""
    if reader == writer:
        return True
    if not reader or not writer:
        return False
    return _Match({}, {}, set()).reads(json.loads(reader), "", json.loads(writer), "")


def optional(schema: Json) -> tuple[bool, Json]:
    """Whether a union with null, and what it is apart from that; a union of several others stays one."""
    if isinstance(schema, list):
        rest = [branch for branch in schema if branch not in ("null", {"type": "null"})]
        return len(rest) < len(schema), rest[0] if len(rest) == 1 else rest
    return schema in ("null", {"type": "null"}), schema


class _Match:
    """Two schemas walked side by side; named types are known by their full names from where they are defined."""

    def __init__(self, readers: dict[str, Json], writers: dict[str, Json], seen: set[tuple[str, str]]) -> None:
        self._readers, self._writers, self._seen = readers, writers, seen

    def reads(self, reader: Json, reader_space: str, writer: Json, writer_space: str) -> bool:
        """Whether `reader` takes what `writer` gives."""
        nullable, reader = optional(reader)
        null, writer = optional(writer)
        if null and not nullable:
            return False
        if isinstance(writer, list):
            return all(self._any(reader, reader_space, branch, writer_space) for branch in writer)
        if isinstance(reader, list):
            return self._any(reader, reader_space, writer, writer_space)
        reader, reader_space = _resolved(reader, reader_space, self._readers)
        writer, writer_space = _resolved(writer, writer_space, self._writers)
        kind, other = reader["type"], writer["type"]
        if reader.get("logicalType") != writer.get("logicalType"):
            return False
        if kind in _NUMBERS and other in _NUMBERS:
            return _NUMBERS.index(other) <= _NUMBERS.index(kind)
        if kind != other:
            return False
        if kind in _NAMED:
            return self._named(reader, reader_space, writer, writer_space)
        part = {"array": "items", "map": "values"}.get(kind)
        if part is not None:
            return self.reads(reader[part], reader_space, writer[part], writer_space)
        return bool(
            reader.get("logicalType") != "decimal"
            or (reader.get("scale", 0), reader.get("precision")) == (writer.get("scale", 0), writer.get("precision"))
        )

    def _any(self, reader: Json, reader_space: str, writer: Json, writer_space: str) -> bool:
        branches = reader if isinstance(reader, list) else [reader]
        return any(self.reads(branch, reader_space, writer, writer_space) for branch in branches)

    def _named(self, reader: Json, reader_space: str, writer: Json, writer_space: str) -> bool:
        pair = (full_name(reader, reader_space), full_name(writer, writer_space))
        if pair[0] != pair[1]:
            return False
        if reader["type"] == "fixed":
            return bool(reader["size"] == writer["size"])
        if reader["type"] == "enum":
            return set(writer["symbols"]) <= set(reader["symbols"])
        if pair in self._seen:
            return True
        self._seen.add(pair)
        spaces = pair[0].rpartition(".")[0], pair[1].rpartition(".")[0]
        theirs = {field["name"]: field for field in writer["fields"]}
        # All of the writer's types are made known first: what follows may refer to them by name.
        for field in writer["fields"]:
            learn(field["type"], spaces[1], self._writers)
        for field in reader["fields"]:
            learn(field["type"], spaces[0], self._readers)
            their = theirs.get(field["name"])
            if their is None:
                if field.get("default", _MISSING) is _MISSING and not optional(field["type"])[0]:
                    return False
            elif not self._field(field, spaces[0], their, spaces[1]):
                return False
        return True

    def _field(self, mine: Json, space: str, their: Json, their_space: str) -> bool:
        nullable, null = optional(mine["type"])[0], optional(their["type"])[0]
        if null and not nullable and mine.get("default", _MISSING) is not _MISSING:
            # A null takes the default of a field that may not be null.
            their = {**their, "type": optional(their["type"])[1]}
        return self.reads(mine["type"], space, their["type"], their_space)


def full_name(schema: dict[str, Json], space: str) -> str:
    """A named type's name with its namespace."""
    name = str(schema["name"])
    space = schema.get("namespace", space)
    return name if "." in name or not space else f"{space}.{name}"


def _resolved(schema: Json, space: str, known: dict[str, Json]) -> tuple[dict[str, Json], str]:
    """A schema as an object with a plain `type`, and the namespace that holds in it."""
    while True:
        if isinstance(schema, str):
            full = schema if "." in schema or not space else f"{space}.{schema}"
            found = known.get(full, known.get(schema))
            if found is None:
                return {"type": schema}, space
            schema, space = found, full.rpartition(".")[0]
        elif isinstance(schema["type"], dict):
            schema = {**schema["type"], **{k: v for k, v in schema.items() if k == "logicalType"}}
        else:
            learn(schema, space, known)
            kind = schema["type"]
            if kind in (*_NUMBERS, *_NAMED, "array", "map", "string", "bytes", "boolean", "null"):
                return schema, space
            schema = kind


def learn(schema: Json, space: str, known: dict[str, Json]) -> None:
    """Note every named type that is defined in a schema."""
    if isinstance(schema, list):
        for branch in schema:
            learn(branch, space, known)
    if not isinstance(schema, dict):
        return
    if schema.get("type") in _NAMED and "name" in schema:
        full = full_name(schema, space)
        if full in known:
            return
        known[full], space = schema, full.rpartition(".")[0]
    for part in ("type", "items", "values"):
        if isinstance(schema.get(part), (dict, list)):
            learn(schema[part], space, known)
    for field in schema.get("fields", ()):
        learn(field["type"], space, known)
