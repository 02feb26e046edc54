"""Subjects, versions and compatibility levels of the development Schema Registry, kept in one append-only file.

Every change is one JSON line, on disk before it is answered; a start reads them all again.
"""

from __future__ import annotations

import json
import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from penstock.dev.avro_compatibility import AvroSchema, incompatibilities, parse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Level = Literal["NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE"]
LEVELS: tuple[Level, ...] = (
    "NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE",
)  # fmt: skip
SCHEMA_TYPES = ("JSON", "PROTOBUF", "AVRO")


class RegistryError(Exception):
    """An answer other than success: HTTP status, Confluent's error code, a sentence."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as a client sent it. `references`: Confluent's objects with name, subject and version."""

    text: str
    kind: str = "AVRO"
    references: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a subject."""

    subject: str
    number: int
    schema_id: int
    schema: Schema


@dataclass(slots=True)
class _State:
    """What the file says. `deleted`: versions that are deleted but not permanently."""

    ids: dict[str, int] = field(default_factory=dict)
    schemas: dict[int, Schema] = field(default_factory=dict)
    versions: dict[str, dict[int, int]] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    deleted: set[tuple[str, int]] = field(default_factory=set)
    levels: dict[str, Level] = field(default_factory=dict)

    def apply(self, change: Mapping[str, Any]) -> None:
        """One line of the file."""
        subject = change.get("subject", "")
        match change["op"]:
            case "register":
                schema = Schema(change["schema"], change["schemaType"], tuple(change["references"]))
                self.ids[change["key"]] = change["id"]
                self.schemas[change["id"]] = schema
                self.versions.setdefault(subject, {})[change["version"]] = change["id"]
                self.newest[subject] = change["version"]
            case "delete":
                self.deleted.add((subject, change["version"]))
            case "erase":
                self.deleted.discard((subject, change["version"]))
                del self.versions[subject][change["version"]]
            case "level" if change["level"] is None:
                self.levels.pop(subject, None)
            case "level":
                self.levels[subject] = change["level"]


class RegistryStore:
    """The registry's whole state; safe to call from several threads.

    Every method that names a subject, version or id that is not there raises `RegistryError` with Confluent's code.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._state = _State()
        path.touch(mode=0o600)
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            os.truncate(path, len(whole))  # A line that a crash cut off was never answered.
        for line in whole.splitlines():
            self._state.apply(json.loads(line))
        self._file = path.open("a", encoding="utf-8")

    def close(self) -> None:
        """Close the file; nothing can be changed after it."""
        self._file.close()

    def subjects(self, *, deleted: bool = False) -> list[str]:
        """All subjects that have a version, sorted."""
        with self._lock:
            return [subject for subject in sorted(self._state.versions) if self._numbers(subject, deleted=deleted)]

    def numbers(self, subject: str, *, deleted: bool = False) -> list[int]:
        """The version numbers of a subject, ascending."""
        with self._lock:
            numbers = self._numbers(subject, deleted=deleted)
            if not numbers:
                raise RegistryError(404, 40401, f"Subject '{subject}' not found.")
            return numbers

    def version(self, subject: str, which: str, *, deleted: bool = False) -> Version:
        """A version by its number, or `latest`."""
        with self._lock:
            numbers = self.numbers(subject, deleted=deleted)
            number = numbers[-1] if which in {"latest", "-1"} else _number(which)
            if number not in numbers:
                raise RegistryError(404, 40402, f"Version {number} not found.")
            return self._version(subject, number)

    def schema(self, schema_id: int) -> Schema:
        """A schema by its id, whether its versions are deleted or not."""
        with self._lock:
            if schema_id not in self._state.schemas:
                raise RegistryError(404, 40403, f"Schema {schema_id} not found")
            return self._state.schemas[schema_id]

    def uses(self, schema_id: int) -> list[tuple[str, int]]:
        """The subjects and versions that have a schema."""
        with self._lock:
            self.schema(schema_id)
            return [
                (subject, number)
                for subject in sorted(self._state.versions)
                for number in self._numbers(subject, deleted=False)
                if self._state.versions[subject][number] == schema_id
            ]

    def find(self, subject: str, schema: Schema, *, deleted: bool = False) -> Version:
        """The version of a subject that has this schema."""
        with self._lock:
            numbers = self.numbers(subject, deleted=deleted)
            schema_id = self._state.ids.get(self._key(schema))
            for number in reversed(numbers):
                if self._state.versions[subject][number] == schema_id:
                    return self._version(subject, number)
            raise RegistryError(404, 40403, "Schema not found")

    def register(self, subject: str, schema: Schema) -> Version:
        """The version of a subject with this schema, made if it is new and compatible with those before it."""
        with self._lock:
            key = self._key(schema)
            known = self._state.ids.get(key)
            numbers = self._numbers(subject, deleted=False)
            for number in numbers:
                if self._state.versions[subject][number] == known:
                    return self._version(subject, number)
            problems = self.problems(subject, schema, [self._version(subject, number) for number in numbers])
            if problems:
                detail = "; ".join(problems)
                message = (
                    f"Schema being registered is incompatible with an earlier schema for subject '{subject}': {detail}"
                )
                raise RegistryError(409, 409, message)
            number = self._state.newest.get(subject, 0) + 1
            schema_id = known or len(self._state.schemas) + 1
            self._change(
                op="register", subject=subject, version=number, id=schema_id, key=key,
                schema=schema.text, schemaType=schema.kind, references=list(schema.references),
            )  # fmt: skip
            return self._version(subject, number)

    def delete(self, subject: str, which: str | None, *, permanent: bool) -> list[int]:
        """Delete a version, or all (`which` None); the numbers that were deleted. Permanent needs a deletion before."""
        with self._lock:
            chosen = (
                self.numbers(subject, deleted=permanent)
                if which is None
                else [self.version(subject, which, deleted=permanent).number]
            )
            for number in chosen:
                if permanent and (subject, number) not in self._state.deleted:
                    code, what = (40405, f"Subject '{subject}'") if which is None else (40407, f"Version {number}")
                    raise RegistryError(404, code, f"{what} was not deleted first before being permanently deleted")
            for number in chosen:
                self._change(op="erase" if permanent else "delete", subject=subject, version=number)
            return chosen

    def level(self, subject: str | None, *, or_global: bool) -> Level:
        """The compatibility level of a subject, or the global one (`subject` None)."""
        with self._lock:
            if subject is not None and not or_global and subject not in self._state.levels:
                message = f"Subject '{subject}' does not have subject-level compatibility configured"
                raise RegistryError(404, 40408, message)
            default = self._state.levels.get("", "BACKWARD")
            return default if subject is None else self._state.levels.get(subject, default)

    def set_level(self, subject: str | None, level: str | None) -> None:
        """Set, or with None take back, the level of a subject or the global one."""
        if level is not None and level not in LEVELS:
            raise RegistryError(422, 42203, f"Invalid compatibility level. Valid values are {', '.join(LEVELS)}")
        with self._lock:
            self._change(op="level", subject=subject or "", level=level)

    def problems(self, subject: str, schema: Schema, earlier: list[Version]) -> list[str]:
        """Why `schema` may not follow the versions `earlier` (ascending) under the subject's level."""
        with self._lock:
            level = self.level(subject, or_global=True)
            parsed = self._parsed(schema)
            if level == "NONE" or not earlier:
                return []
            kinds = {schema.kind, *(version.schema.kind for version in earlier)}
            if kinds != {"AVRO"}:
                message = f"this development registry checks Avro only, not {', '.join(sorted(kinds))}: set NONE"
                raise RegistryError(501, 50101, message)
            if parsed is None:
                raise AssertionError(schema.kind)
            looked_at = earlier if level.endswith("_TRANSITIVE") else earlier[-1:]
            return [found for version in reversed(looked_at) for found in self._compare(level, parsed, version)]

    def _compare(self, level: Level, new: AvroSchema, version: Version) -> list[str]:
        old = self._parsed(version.schema)
        if old is None:
            raise AssertionError(version.schema.kind)
        found = [] if level.startswith("FORWARD") else incompatibilities(new, old)
        if not level.startswith("BACKWARD"):
            found += incompatibilities(old, new)
        return [f"version {version.number}: {each}" for each in found]

    def _parsed(self, schema: Schema) -> AvroSchema | None:
        """The Avro schema with what it refers to; None for the other kinds, which are only stored."""
        if schema.kind not in SCHEMA_TYPES:
            raise RegistryError(422, 42201, f"Invalid schema type {schema.kind}")
        names: dict[str, Any] = {}
        for reference in schema.references:
            referred = self.version(str(reference["subject"]), str(reference["version"]), deleted=True).schema
            names.update(getattr(self._parsed(referred), "names", {}))
        if schema.kind != "AVRO":
            return None
        try:
            return parse(schema.text, names)
        except ValueError as error:
            raise RegistryError(422, 42201, f"Invalid schema: {error}") from error

    def _key(self, schema: Schema) -> str:
        """What makes two schemas the same: Avro by its canonical text, others by their own."""
        parsed = self._parsed(schema)
        text = schema.text if parsed is None else parsed.canonical
        return json.dumps([schema.kind, text, list(schema.references)], sort_keys=True)

    def _numbers(self, subject: str, *, deleted: bool) -> list[int]:
        numbers = sorted(self._state.versions.get(subject, {}))
        return numbers if deleted else [n for n in numbers if (subject, n) not in self._state.deleted]

    def _version(self, subject: str, number: int) -> Version:
        schema_id = self._state.versions[subject][number]
        return Version(subject, number, schema_id, self._state.schemas[schema_id])

    def _change(self, **change: object) -> None:
        self._file.write(json.dumps(change) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._state.apply(change)


def _number(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text) < 2**31:
        return int(text)
    message = f"The specified version '{text}' is not a valid version id. Allowed values are 1 to 2^31-1 and 'latest'"
    raise RegistryError(422, 42202, message)
