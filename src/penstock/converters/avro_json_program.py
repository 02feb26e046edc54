"""Avro schemas as instructions for the compiled machine (`avro_json_walk`), with the texts that it writes.

What stands between two values, field names above all, is put together here: `,"country":` is written at once, together
with the value that follows. A record type is a routine of its own, so that it may hold itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from penstock.converters import avro_json_walk as walk
from penstock.converters.compatibility import full_name, learn, optional

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.converters.connect_json import DecimalFormat

    Program = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]

Json = Any
_PLAIN = {
    "boolean": walk.BOOLEAN,
    "int": walk.LONG,
    "long": walk.LONG,
    "float": walk.FLOAT,
    "double": walk.DOUBLE,
    "string": walk.STRING,
    "bytes": walk.BYTES,
}
_NULL = ("null", {"type": "null"})
_NAMED = ("record", "error", "enum", "fixed")


class Untaken(Exception):  # noqa: N818 - not a failure: Python prints such data
    """A schema that has no instructions."""


@dataclass(slots=True)
class Instructions:
    """The instructions for any number of schemas. `text`: what is to be written with the next instruction."""

    ops: list[list[int]] = field(default_factory=list)
    jumps: list[int] = field(default_factory=list)
    words: list[tuple[int, int]] = field(default_factory=list)
    pool: bytearray = field(default_factory=bytearray)
    text: bytearray = field(default_factory=bytearray)

    def emit(self, op: int, a: int = 0, b: int = 0) -> int:
        """One instruction more; its place."""
        start = self.keep(bytes(self.text))
        self.ops.append([op, start, len(self.text), a, b])
        self.text.clear()
        return len(self.ops) - 1

    def here(self) -> int:
        """A place to go on at: what came before has written its text."""
        if self.text:
            self.emit(walk.TEXT)
        return len(self.ops)

    def keep(self, text: bytes) -> int:
        """Where a text stands in the pool."""
        start = self.pool.find(text)
        if start < 0:
            start = len(self.pool)
            self.pool += text
        return start

    def program(self) -> Program:
        """As the machine wants them."""
        return (
            np.array(self.ops, dtype=np.int64).reshape(-1, walk.COLUMNS),
            np.array([*self.jumps, 0], dtype=np.int64),
            np.array([*self.words, (0, 0)], dtype=np.int64),
            np.frombuffer(bytes(self.pool) + bytes(walk.PADDING), dtype=np.uint8),
        )


def compile_schema(schema: Json, decimals: DecimalFormat) -> Instructions:
    """The instructions for data of one schema, from 0 on.

    Raises:
        Untaken: there are none.
    """
    known: dict[str, Json] = {}
    learn(schema, "", known)
    compiler = _Compiler(Instructions(), known, decimals)
    compiler.lines(schema)
    return compiler.code


def linked(parts: list[Instructions]) -> tuple[Program, list[int]]:
    """Several schemas' instructions as one program, and where each begins."""
    whole, entries = Instructions(), []
    for part in parts:
        base, jumps, words, pool = len(whole.ops), len(whole.jumps), len(whole.words), len(whole.pool)
        shifts = {walk.BRANCH: jumps, walk.ENUM: words, **dict.fromkeys(_GOING, base)}
        entries.append(base)
        whole.ops += [[op, start + pool, size, a + shifts.get(op, 0), b] for op, start, size, a, b in part.ops]
        whole.jumps += [to + base for to in part.jumps]
        whole.words += [(start + pool, size) for start, size in part.words]
        whole.pool += part.pool
    return whole.program(), entries


_GOING = (walk.CALL, walk.JUMP, walk.ITEMS, walk.NEXT)


@dataclass(slots=True)
class _Compiler:
    """`routines`: where each record type's begins. `calls`: instructions that call one, by its name."""

    code: Instructions
    known: dict[str, Json]
    decimals: DecimalFormat
    routines: dict[str, int] = field(default_factory=dict)
    calls: list[tuple[int, str]] = field(default_factory=list)

    def lines(self, schema: Json) -> None:
        self._value(schema, "", b"null")
        self.code.text += b"\n"
        self.code.emit(walk.END)
        for call, name in self.calls:  # grows while it runs: routines call others
            if name not in self.routines:
                self.routines[name] = len(self.code.ops)
                self._record(self.known[name], name.rpartition(".")[0])
            self.code.ops[call][walk.A] = self.routines[name]

    def _value(self, schema: Json, space: str, null: bytes) -> None:
        """`null`: what is printed for one."""
        if isinstance(schema, list):
            self._union(schema, space, null)
            return
        if isinstance(schema, str):
            name = self._name(schema, space)
            if name is not None:
                self._named(name)
                return
            schema = {"type": schema}
        kind = schema["type"]
        self._check(schema)
        if isinstance(kind, (dict, list)):
            self._value(kind, space, null)
        elif kind == "null":
            self.code.text += null
        elif kind in _NAMED:
            self._named(full_name(schema, space))
        elif kind in ("array", "map"):
            self._items(schema, space)
        elif kind in _PLAIN:
            self.code.emit(_PLAIN[kind])
        else:
            raise Untaken(kind)

    def _name(self, reference: str, space: str) -> str | None:
        """The full name of the named type that is referred to."""
        full = reference if "." in reference or not space else f"{space}.{reference}"
        name = full if full in self.known else reference
        if name.rpartition(".")[2] in (*_PLAIN, "null") and name in self.known:
            raise Untaken(name)
        return name if name in self.known else None

    def _check(self, schema: Json) -> None:
        if schema.get("logicalType") == "decimal" and self.decimals == "NUMERIC":
            raise Untaken(schema)

    def _named(self, name: str) -> None:
        schema, code = self.known[name], self.code
        self._check(schema)
        if schema["type"] == "fixed":
            code.emit(walk.FIXED, int(schema["size"]))
        elif schema["type"] == "enum":
            words = [msgspec.json.encode(symbol) for symbol in schema["symbols"]]
            code.emit(walk.ENUM, len(code.words), len(words))
            code.words += [(code.keep(word), len(word)) for word in words]
        else:
            self.calls.append((code.emit(walk.CALL), name))

    def _record(self, schema: Json, space: str) -> None:
        between = b"{"
        for each in schema["fields"]:
            self.code.text += between + msgspec.json.encode(each["name"]) + b":"
            # JsonConverter's `replace.null.with.default`, which is on: a null prints the default.
            default = each.get("default") if optional(each["type"])[0] else None
            self._value(each["type"], space, msgspec.json.encode(default))
            between = b","
        self.code.text += b"}" if schema["fields"] else b"{}"
        self.code.emit(walk.RETURN)

    def _items(self, schema: Json, space: str) -> None:
        code, is_map = self.code, schema["type"] == "map"
        code.text += b"{" if is_map else b"["
        begin = code.emit(walk.ITEMS)
        body = code.emit(walk.KEY) if is_map else code.here()
        self._value(schema["values" if is_map else "items"], space, b"null")
        code.ops[begin][walk.A] = code.here()
        code.emit(walk.NEXT, body, ord("}" if is_map else "]"))

    def _union(self, schema: list[Json], space: str, null: bytes) -> None:
        """Connect's struct for a union of several types: a member for each, all but one null."""
        code, rest, leaving = self.code, [branch for branch in schema if branch not in _NULL], []
        names = [msgspec.json.encode(name) for name in self._branches(rest, space)] if len(rest) > 1 else []
        first = len(code.jumps)
        code.emit(walk.BRANCH, first, len(schema))
        code.jumps += [0] * len(schema)
        # The nulls come first: what is no null goes on without a jump.
        order = sorted(range(len(schema)), key=lambda at: schema[at] not in _NULL)
        for at in order:
            code.jumps[first + at] = code.here()
            if schema[at] in _NULL:
                code.text += null
            else:
                self._branch(schema[at], space, names, at - sum(each in _NULL for each in schema[:at]))
            if at != order[-1]:
                leaving.append(code.emit(walk.JUMP))
        behind = code.here()
        for jump in leaving:
            code.ops[jump][walk.A] = behind

    def _branch(self, schema: Json, space: str, names: list[bytes], mine: int) -> None:
        if not names:
            self._value(schema, space, b"null")
            return
        nulls = [name + b":null" for name in names]
        self.code.text += b"{" + b",".join([*nulls[:mine], names[mine] + b":"])
        self._value(schema, space, b"null")
        self.code.text += b"".join(b"," + each for each in nulls[mine + 1 :]) + b"}"

    def _branches(self, branches: list[Json], space: str) -> list[str]:
        """The names of a union's members in Connect's struct."""
        names = []
        for branch in branches:
            name = self._name(branch, space) if isinstance(branch, str) else None
            schema = {"type": branch} if isinstance(branch, str) else branch
            names.append(name or (full_name(schema, space) if schema["type"] in _NAMED else schema["type"]))
        if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise Untaken(branches)
        return names
