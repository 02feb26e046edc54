"""An Avro schema as columns: which Arrow types its data have, and the table by which they are walked over."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.columnar import walk
from penstock.columnar.node import Node
from penstock.columnar.steps import compiled_steps

if TYPE_CHECKING:
    from penstock.columnar.steps import Program

Json = Any
VALUE = "value"
"""The column of data that are no records."""

_PLAIN: dict[str, tuple[int, pa.DataType]] = {
    "null": (walk.NULL, pa.null()),
    "boolean": (walk.BOOL, pa.bool_()),
    "int": (walk.INT, pa.int32()),
    "long": (walk.LONG, pa.int64()),
    "float": (walk.FLOAT, pa.float32()),
    "double": (walk.DOUBLE, pa.float64()),
    "string": (walk.TEXT, pa.string()),
    "bytes": (walk.BYTES, pa.binary()),
}
_SIZES = {"boolean": 1, "float": 4, "double": 8}
_LOGICAL: dict[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}
_MOST_DIGITS, _NARROW_DIGITS = 76, 38
_MOST_NODES = 10_000


class NoColumnsError(ValueError):
    """A schema that columns cannot hold; says why, in words that follow "its schema "."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What data of a schema are read with. `names`: the columns'; `nodes`: how many nodes there are."""

    root: Node
    names: tuple[str, ...]
    nodes: int
    program: Program

    @classmethod
    def compile(cls, text: str) -> Columns:
        """For an Avro schema as JSON. Raises `NoColumnsError`."""
        schema = json.loads(text)
        if _record_of(schema) is None:
            schema = {"type": "record", "name": "Value", "fields": [{"name": VALUE, "type": schema}]}
        tree = _Tree()
        root = tree.add(schema, "")
        names = tuple(each.name for each in root.type)
        for child in root.children:
            if child is not None and root.nullable >= 0:
                child.member = True
        return cls(root, names, len(tree.nodes), compiled_steps(root, tree.nodes, tree.limits))

    @property
    def has_lists(self) -> bool:
        """Whether a row may have more than one value of a node."""
        return bool((self.program[0][:, walk.KIND] == walk.LIST).any())

    @property
    def arrow(self) -> pa.Schema:
        """The columns' names and types."""
        return pa.schema([each.arrow(name) for name, each in zip(self.names, self.root.children, strict=True) if each])


def _record_of(schema: Json) -> Json:
    """The record that a schema is, or None; null beside it does not count."""
    if isinstance(schema, list):
        rest = [branch for branch in schema if branch not in ("null", {"type": "null"})]
        return _record_of(rest[0]) if len(rest) == 1 and len(schema) == 2 else None  # noqa: PLR2004 - null and it
    if not isinstance(schema, dict):
        return None
    return schema if schema["type"] in ("record", "error") else _record_of(schema["type"])


@dataclass(slots=True)
class _Tree:
    """A schema on its way into the table. `known`: full name -> definition and namespace; `open`: names around."""

    nodes: list[Node] = field(default_factory=list)
    limits: list[int] = field(default_factory=list)
    known: dict[str, tuple[Json, str]] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)

    def add(self, schema: Json, space: str) -> Node:
        """The node of a schema, with all below it."""
        if isinstance(schema, list):
            return self._union(schema, space)
        if isinstance(schema, str):
            if schema in _PLAIN:
                kind, made = _PLAIN[schema]
                return self._new(kind, made, _SIZES.get(schema, 0))
            full = schema if "." in schema or not space else f"{space}.{schema}"
            definition, space = self.known[full if full in self.known else schema]
            return self.add(definition, space)
        kind = schema["type"]
        if isinstance(kind, (dict, list)):
            return self.add(kind, space)
        if kind in ("record", "error", "enum", "fixed"):
            return self._named(schema, kind, space)
        if kind in ("array", "map"):
            return self._list(schema, kind, space)
        return self._plain(schema, kind) if kind in _PLAIN else self.add(kind, space)

    def _new(self, kind: int, made: pa.DataType, size: int = 0) -> Node:
        if len(self.nodes) >= _MOST_NODES:
            msg = f"has more than {_MOST_NODES} parts"
            raise NoColumnsError(msg)
        self.nodes.append(Node(len(self.nodes), kind, made, size=size))
        return self.nodes[-1]

    def _plain(self, schema: Json, kind: str) -> Node:
        logical = str(schema.get("logicalType"))
        code, made = _PLAIN[kind]
        node = self._new(code, _LOGICAL.get((kind, logical), made), _SIZES.get(kind, 0))
        return self._decimal(node, schema, walk.DECIMAL) if kind == "bytes" and logical == "decimal" else node

    def _decimal(self, node: Node, schema: Json, kind: int) -> Node:
        """As a decimal where Arrow has one that holds it; else it stays bytes."""
        precision, scale = int(schema.get("precision", 0)), int(schema.get("scale", 0))
        if not (0 < precision <= _MOST_DIGITS and 0 <= scale <= precision):
            return node
        node.type = (pa.decimal128 if precision <= _NARROW_DIGITS else pa.decimal256)(precision, scale)
        node.kind, node.limit = kind, len(self.limits)
        self.limits += list((10**precision).to_bytes(walk.LIMIT_BYTES, "big"))
        return node

    def _named(self, schema: Json, kind: str, space: str) -> Node:
        name = str(schema["name"])
        around = schema.get("namespace", space)
        full = name if "." in name or not around else f"{around}.{name}"
        self.known[full] = (schema, space)
        if kind == "enum":
            node = self._new(walk.ENUM, pa.dictionary(pa.int32(), pa.string()))
            node.symbols = tuple(schema["symbols"])
            return node
        if kind == "fixed":
            node = self._new(walk.FIXED, pa.binary(int(schema["size"])), int(schema["size"]))
            is_decimal = schema.get("logicalType") == "decimal"
            return self._decimal(node, schema, walk.FIXED_DECIMAL) if is_decimal else node
        if full in self.open:
            msg = f"contains the record `{full}` within itself, which columns cannot hold"
            raise NoColumnsError(msg)
        if not schema["fields"]:
            msg = f"has the record `{full}` without a field, which columns cannot hold"
            raise NoColumnsError(msg)
        self.open.append(full)
        node = self._new(walk.RECORD, pa.null())
        inner = full.rpartition(".")[0]
        made = [self.add(each["type"], inner) for each in schema["fields"]]
        node.children = [*made]
        node.type = pa.struct([each.arrow(one["name"]) for each, one in zip(made, schema["fields"], strict=True)])
        self.open.pop()
        return node

    def _list(self, schema: Json, kind: str, space: str) -> Node:
        node = self._new(walk.LIST, pa.null())
        if kind == "array":
            item = self.add(schema["items"], space)
            node.type, node.children = pa.list_(item.arrow("element")), [item]
            return node
        entry = self._new(walk.RECORD, pa.null())
        key = self._new(walk.TEXT, pa.string())
        value = self.add(schema["values"], space)
        entry.children, entry.type = [key, value], pa.struct([key.arrow("key"), value.arrow("value")])
        node.type, node.children = pa.map_(key.type, value.arrow("value")), [entry]
        return node

    def _union(self, schema: list[Json], space: str) -> Node:
        """Null and one other: that one, nullable. Others: a struct with a member for each branch, all but one null."""
        nulls = [number for number, branch in enumerate(schema) if branch in ("null", {"type": "null"})]
        if len(schema) == 2 and len(nulls) == 1:  # noqa: PLR2004 - null and one other
            node = self.add(schema[1 - nulls[0]], space)
            if node.kind != walk.UNION and node.nullable < 0:
                node.nullable = nulls[0]
                return node
        node = self._new(walk.UNION, pa.null())
        node.children = [None if n in nulls else self.add(each, space) for n, each in enumerate(schema)]
        members = [each for each in node.children if each is not None]
        if not members:
            msg = "has a union of nothing but null, which columns cannot hold"
            raise NoColumnsError(msg)
        for each in members:
            each.member = True
        node.type = pa.struct([each.arrow(f"member{number}") for number, each in enumerate(members)])
        return node
