"""One field out of many Avro data, by its dotted path, without decoding records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.columns import Part
from penstock.compiled import compiled, memcpy
from penstock.fields import avro_walk as walk
from penstock.model import Slices

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from penstock.columns import Field

    Longs = NDArray[np.int64]
    Bytes = NDArray[np.uint8]

Json = Any
_PLAIN = {
    "null": walk.NULL,
    "boolean": walk.BOOL,
    "int": walk.LONG,
    "long": walk.LONG,
    "float": walk.FLOAT,
    "double": walk.DOUBLE,
    "bytes": walk.BYTES,
    "string": walk.BYTES,
}
_SIZES = {"boolean": 1, "float": 4, "double": 8}
_CODES = {walk.FOUND_NULL: "null", walk.FOUND_NONE: "absent", walk.MALFORMED: "malformed"}
_NOTHING = (walk.RECORD, walk.ARRAY, walk.MAP)


@dataclass(slots=True)
class _Nodes:
    """A schema on its way into tables. `names`: node -> the names of a record's fields.

    `around`: the records whose fields are being added. `endless`: one holds itself, so data may be of any depth.
    """

    rows: list[list[int]] = field(default_factory=list)
    children: list[list[int]] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    names: dict[int, list[str]] = field(default_factory=dict)
    symbols: dict[int, list[str]] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    around: set[int] = field(default_factory=set)
    endless: bool = False

    def add(self, schema: Json, namespace: str) -> int:
        """The node of a schema, made with all below it; a named type that was seen before is the node it was then."""
        if isinstance(schema, list):
            node = self._new(walk.UNION, "union", len(schema))
            self.children[node] = [self.add(branch, namespace) for branch in schema]
            return node
        if isinstance(schema, str):
            if schema in _PLAIN:
                return self._new(_PLAIN[schema], schema, _SIZES.get(schema, 0))
            full = schema if "." in schema or not namespace else f"{namespace}.{schema}"
            node = self.known[full] if full in self.known else self.known[schema]
            self.endless |= node in self.around
            return node
        kind = schema["type"]
        if isinstance(kind, (dict, list)):
            return self.add(kind, namespace)
        if kind in ("record", "error", "enum", "fixed"):
            return self._named(schema, kind, namespace)
        if kind in ("array", "map"):
            node = self._new(walk.ARRAY if kind == "array" else walk.MAP, kind, 1)
            self.children[node] = [self.add(schema["items" if kind == "array" else "values"], namespace)]
            return node
        if kind not in _PLAIN:
            return self.add(kind, namespace)
        return self._new(_PLAIN[kind], str(schema.get("logicalType", kind)), _SIZES.get(kind, 0))

    def _named(self, schema: dict[str, Json], kind: str, namespace: str) -> int:
        name = str(schema["name"])
        space = schema.get("namespace", namespace)
        full = name if "." in name or not space else f"{space}.{name}"
        if kind == "fixed":
            node = self._new(walk.FIXED, str(schema.get("logicalType", kind)), int(schema["size"]))
        elif kind == "enum":
            node = self._new(walk.ENUM, kind, len(schema["symbols"]))
            self.symbols[node] = list(schema["symbols"])
        else:
            node = self._new(walk.RECORD, "record", len(schema["fields"]))
        self.known[full] = node
        if kind in ("record", "error"):
            inner = full.rpartition(".")[0]
            self.names[node] = [each["name"] for each in schema["fields"]]
            self.around.add(node)
            self.children[node] = [self.add(each["type"], inner) for each in schema["fields"]]
            self.around.remove(node)
        return node

    def _new(self, kind: int, name: str, count: int) -> int:
        self.rows.append([kind, 0, count])
        self.children.append([])
        self.types.append(name)
        return len(self.rows) - 1

    def tables(self) -> tuple[Longs, Longs]:
        """The node table and the list of children, as the walk wants them."""
        flat: list[int] = []
        for row, children in zip(self.rows, self.children, strict=True):
            row[walk.FIRST] = len(flat)
            flat += children
        return np.array(self.rows, dtype=np.int64), np.array([*flat, 0], dtype=np.int64)


def boundaries(data: Bytes, count: int, schema: tuple[Longs, Longs]) -> Longs:
    """Where each of `count` data begins that lie one behind the other, and where the last one ends.

    `schema`: of `tables`. Raises ValueError where one is malformed; it says which, from 0.
    """
    result = np.empty(count + 1, dtype=np.int64)
    found = int(walk.boundaries(data, schema, result))
    if found < count:
        msg = f"datum {found} is malformed"
        raise ValueError(msg)
    return result


def tables(schema: Json) -> tuple[Longs, Longs]:
    """A schema as `boundaries` wants it."""
    nodes = _Nodes()
    nodes.add(schema, "")
    return nodes.tables()


def fates(data: Bytes, offsets: Longs, rows: Longs, schema: tuple[Longs, Longs]) -> Longs:
    """For each of `rows` 0 where it is one whole datum, `avro_walk.TOO_DEEP`, or -1. `schema`: of `tables`."""
    result = np.empty(len(rows), dtype=np.int64)
    walk.fates(data, offsets, rows, schema, result)
    return result


def depth_guard(schema: Json) -> Callable[[bytes], None]:
    """What is asked of a datum before a reader that calls itself at each level: such a one could end the process.

    It raises ValueError where the datum is more than `avro_walk.DEEPEST` levels deep, or malformed. A schema that does
    not hold itself has no such data.
    """
    nodes = _Nodes()
    nodes.add(schema, "")
    if not nodes.endless:
        return lambda _: None
    tables = nodes.tables()

    def check(datum: bytes) -> None:
        ends = np.array([0, len(datum)], dtype=np.int64)
        fate = int(fates(np.frombuffer(datum, dtype=np.uint8), ends, ends[:1], tables)[0])
        if fate == walk.TOO_DEEP:
            msg = f"nested more than {walk.DEEPEST} levels deep"
            raise ValueError(msg)
        if fate < 0:
            msg = "they end too early, or too late"
            raise ValueError(msg)

    return check


@dataclass(frozen=True, slots=True)
class AvroField:
    """Reads one field of data of one schema."""

    types: tuple[str, ...]
    symbols: dict[int, list[str]]
    path: tuple[Longs, Bytes, Longs]
    schema: tuple[Longs, Longs]

    @classmethod
    def compile(cls, schema: Json, path: str) -> AvroField:
        """A reader for `path`, whose names are separated by dots: fields of records, or keys of maps."""
        nodes = _Nodes()
        nodes.add(schema, "")
        steps = path.split(".")
        fields = np.full((len(steps), len(nodes.rows)), -1, dtype=np.int64)
        for node, names in nodes.names.items():
            for depth, step in enumerate(steps):
                if step in names:
                    fields[depth, node] = names.index(step)
        raw = [step.encode() for step in steps]
        text = np.frombuffer(b"".join(raw) or b"\x00", dtype=np.uint8)
        ends = np.cumsum([len(each) for each in raw]).astype(np.int64)
        return cls(tuple(nodes.types), nodes.symbols, (fields, text, ends), nodes.tables())

    def read(self, data: Bytes, offsets: Longs, rows: Longs) -> Field:
        """The field in `rows`: row i is the datum `data[offsets[i]:offsets[i + 1]]`."""
        result = np.empty((len(rows), walk.RESULT_COLUMNS), dtype=np.int64)
        walk.find(data, offsets, rows, self.path, self.schema, result)
        leaves = result[:, walk.LEAF]
        if len(rows) and (leaves == leaves[0]).all():
            return (self._part(int(leaves[0]), data, rows, result),)
        parts = []
        for leaf in np.unique(leaves).tolist():
            mine = np.flatnonzero(leaves == leaf)
            parts.append(self._part(leaf, data, rows[mine], result[mine]))
        return tuple(parts)

    def _part(self, leaf: int, data: Bytes, rows: Longs, result: Longs) -> Part:
        """The rows that lead to one node."""
        if leaf < 0:
            return Part(_CODES[leaf], rows, by_schema=True)
        kind, name, values = int(self.schema[0][leaf, walk.KIND]), self.types[leaf], result[:, walk.VALUE]
        if kind in _NOTHING:
            return Part(name, rows)
        if kind == walk.LONG:
            return Part(name, rows, np.ascontiguousarray(values))
        if kind == walk.ENUM:
            return Part(name, rows, texts=_symbols(self.symbols[leaf], values))
        texts = _taken(data, values, result[:, walk.SIZE])
        if kind == walk.BOOL:
            return Part(name, rows, (texts.data != 0).astype(np.int64))
        if kind in (walk.FLOAT, walk.DOUBLE):
            bits = texts.data.view("<f4" if kind == walk.FLOAT else "<f8")
            with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN as well
                return Part(name, rows, bits.astype(np.float64))
        return Part(name, rows, texts=texts)


def _symbols(symbols: list[str], values: Longs) -> Slices:
    raw = [symbol.encode() for symbol in symbols]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in raw])]).astype(np.int64)
    return _taken(np.frombuffer(b"".join(raw), dtype=np.uint8), offsets[values], np.diff(offsets)[values])


def _taken(data: Bytes, starts: Longs, sizes: Longs) -> Slices:
    """Pieces of `data`, one behind the other; the walk has checked that they lie within it."""
    offsets = np.zeros(len(starts) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    out = np.empty(int(offsets[-1]), dtype=np.uint8)
    _copy(out, offsets, data, np.ascontiguousarray(starts))
    return Slices(out, offsets)


@compiled
def _copy(target: Bytes, offsets: Longs, source: Bytes, starts: Longs) -> None:
    for row in range(len(starts)):
        memcpy(target, offsets[row], source, starts[row], offsets[row + 1] - offsets[row])


def warm() -> None:
    """Compile, or load from numba's cache, what `AvroField.read` calls."""
    walk.warm()
    empty = np.zeros(0, dtype=np.uint8)
    _copy(empty, np.zeros(1, dtype=np.int64), empty, np.zeros(0, dtype=np.int64))
