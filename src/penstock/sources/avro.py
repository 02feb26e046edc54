"""Avro data as Arrow arrays: a whole block at once by polars where it knows the schema's types, else by fastavro."""

from __future__ import annotations

import decimal
import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import fastavro
import polars as pl
import pyarrow as pa

from penstock.converters.projection import UNREADABLE, raw
from penstock.formats.avro import long_bytes
from penstock.sources.rows import MICROSECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Json = Any
_LOCAL = pa.timestamp("us")
_PLAIN = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): MICROSECONDS,
    ("long", "timestamp-micros"): MICROSECONDS,
    ("long", "local-timestamp-millis"): _LOCAL,
    ("long", "local-timestamp-micros"): _LOCAL,
}
_NAMED = ("record", "error", "enum", "fixed")
_INTEGERS, _FLOATS = ("int", "long"), ("float", "double")
_MOST_DIGITS = 38
_MARKER = bytes(16)
_WORDS = (b"avro.codec", b"null", b"avro.schema")
_HEADER = b"Obj\x01" + long_bytes(2) + b"".join(long_bytes(len(word)) + word for word in _WORDS)


class UnusableSchema(ValueError):  # noqa: N818 - what a schema is to Spark
    """A schema that has no type in Spark; the text says why."""


@dataclass(frozen=True, slots=True)
class Node:
    """A schema as far as its data need it.

    `kind`: an Avro type, a logical type, or `union` of several types that are not null. `members`: fields of a record
    or branches of a union by name, the items of an array or map under "". `name`: of a named type.
    """

    kind: str
    type: pa.DataType
    members: tuple[tuple[str, Node], ...] = ()
    name: str = ""
    scale: int = 0

    @property
    def polars_knows(self) -> bool:
        """Whether polars reads it, as numbers and bytes."""
        if self.kind in ("null", "map", "union", "again") or (self.kind == "record" and not self.members):
            return False
        return all(member.polars_knows for _, member in self.members)

    @property
    def shaped(self) -> bool:
        """Whether what fastavro gives is something else than Arrow takes."""
        own = self.kind in ("map", "union", "decimal") or self.kind.endswith("-millis")
        return own or bool(self.name) or any(member.shaped for _, member in self.members)


@dataclass(slots=True)
class _Compiling:
    """Named types seen so far; those that are open contain what is being looked at."""

    known: dict[str, Node] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)

    def node(self, schema: Json, namespace: str) -> Node:
        if isinstance(schema, list):
            return self._union(schema, namespace)
        if isinstance(schema, str):
            return Node(schema, _PLAIN[schema]) if schema in _PLAIN else self._again(schema, namespace)
        kind = schema["type"]
        if isinstance(kind, (dict, list)):
            return self.node(kind, namespace)
        if kind in _NAMED:
            return self._named(schema, kind, namespace)
        if kind == "array":
            items = self.node(schema["items"], namespace)
            return Node("array", pa.list_(pa.field("element", items.type)), (("", items),))
        if kind == "map":
            items = self.node(schema["values"], namespace)
            return Node("map", pa.map_(pa.string(), pa.field("value", items.type)), (("", items),))
        return self._primitive(schema, kind, namespace)

    def _primitive(self, schema: Json, kind: str, namespace: str) -> Node:
        logical = schema.get("logicalType")
        if (kind, logical) in _LOGICAL:
            return Node(logical, _LOGICAL[kind, logical])
        if kind == "bytes" and logical == "decimal":
            return _decimal(schema) or Node(kind, _PLAIN[kind])
        return self.node(kind, namespace)

    def _named(self, schema: Json, kind: str, namespace: str) -> Node:
        name = str(schema["name"])
        space = schema.get("namespace", namespace)
        full = name if "." in name or not space else f"{space}.{name}"
        if kind == "enum":
            node = Node("enum", pa.string(), name=full)
        elif kind == "fixed":
            number = _decimal(schema, full) if schema.get("logicalType") == "decimal" else None
            node = Node("fixed", pa.binary(), name=full) if number is None else number
        else:
            self.open.add(full)
            inner = full.rpartition(".")[0]
            members = tuple((each["name"], self.node(each["type"], inner)) for each in schema["fields"])
            self.open.discard(full)
            node = Node("record", pa.struct([pa.field(n, member.type) for n, member in members]), members, full)
        self.known[full] = node
        return node

    def _again(self, name: str, namespace: str) -> Node:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = next((each for each in (full, name) if each in self.known or each in self.open), None)
        if found is None:
            msg = f"it refers to the type `{name}`, which it does not define"
            raise UnusableSchema(msg)
        if found in self.open:
            msg = f"its record `{found}` contains itself, and Spark has no type for that; decode it in a function"
            raise UnusableSchema(msg)
        first = self.known[found]
        # polars does not take a type by its name: the inner node says so.
        return Node("again", first.type, (("", first),), first.name)

    def _union(self, branches: list[Json], namespace: str) -> Node:
        nodes = [node for node in (self.node(each, namespace) for each in branches) if node.kind != "null"]
        if not nodes:
            return Node("null", pa.null())
        if len(nodes) == 1:
            return nodes[0]
        kinds = [node.kind for node in nodes]
        for group, wide in ((_INTEGERS, pa.int64()), (_FLOATS, pa.float64())):
            if all(kind in group for kind in kinds):
                return Node("union", wide, tuple((str(number), node) for number, node in enumerate(nodes)))
        fields = tuple((f"member{number}", node) for number, node in enumerate(nodes))
        return Node("union", pa.struct([pa.field(name, node.type) for name, node in fields]), fields)


def _decimal(schema: Json, name: str = "") -> Node | None:
    """A decimal that Arrow and Spark hold; None where its bytes are all there is to show."""
    precision, scale = schema.get("precision", _MOST_DIGITS), schema.get("scale", 0)
    if not 0 < precision <= _MOST_DIGITS or not 0 <= scale <= precision:
        return None
    return Node("decimal", pa.decimal128(precision, scale), name=name, scale=scale)


@dataclass(frozen=True, slots=True)
class AvroReader:
    """Reads data of one schema."""

    text: str
    node: Node
    raw_text: bytes
    parsed: Any

    @classmethod
    def of(cls, text: str) -> AvroReader:
        """A reader for a schema.

        Raises:
            UnusableSchema: Spark has no type for it.
        """
        schema = json.loads(text)
        plain = raw(schema)
        return cls(text, _Compiling().node(schema, ""), json.dumps(plain).encode(), fastavro.parse_schema(plain))

    def block(self, body: bytes, count: int) -> pa.Array:
        """`count` data that lie one behind the other. Raises one of `UNREADABLE`."""
        if self.node.kind == "record" and self.node.polars_knows:
            head = _HEADER + long_bytes(len(self.raw_text)) + self.raw_text + long_bytes(0) + _MARKER
            container = b"".join((head, long_bytes(count), long_bytes(len(body)), body, _MARKER))
            try:
                table = pl.read_avro(io.BytesIO(container)).to_arrow()
            except pl.exceptions.PolarsError as error:
                raise ValueError(str(error)) from error
            columns = [_revived(column.combine_chunks(), member) for column, (_, member) in _pairs(table, self.node)]
            return pa.StructArray.from_arrays(columns, fields=list(self.node.type))
        stream = io.BytesIO(body)
        return self.array(self.value(stream) for _ in range(count))

    def value(self, stream: io.BytesIO) -> Any:  # noqa: ANN401 - Avro data
        """The next datum, as `array` takes it. Raises one of `UNREADABLE`."""
        value = fastavro.schemaless_reader(stream, self.parsed, None, return_named_type=True)
        return shape(value, self.node)

    def array(self, values: Iterable[Any]) -> pa.Array:
        """Values as Arrow's. Raises one of `UNREADABLE`."""
        try:
            return pa.array(list(values), self.node.type)
        except pa.ArrowException as error:
            raise ValueError(str(error)) from error


def _pairs(table: pa.Table, node: Node) -> Iterable[tuple[Any, tuple[str, Node]]]:
    return zip(table.columns, node.members, strict=True)


def _revived(data: Any, node: Node) -> pa.Array:  # noqa: ANN401 - an Arrow array
    """What polars read, with its logical types."""
    if node.kind == "record":
        columns = [_revived(data.field(number), member) for number, (_, member) in enumerate(node.members)]
        return pa.StructArray.from_arrays(columns, fields=list(node.type), mask=data.is_null())
    if node.kind == "array":
        items = _revived(data.values, node.members[0][1])
        return pa.ListArray.from_arrays(data.offsets.cast(pa.int32()), items, type=node.type, mask=data.is_null())
    if node.kind == "decimal":
        return pa.array([_number(each, node.scale) for each in data.to_pylist()], node.type)
    if node.kind.endswith("-millis"):
        return data.cast(pa.timestamp("ms", node.type.tz)).cast(node.type)
    return data.cast(node.type)


def shape(value: Any, node: Node) -> Any:  # noqa: ANN401 - Avro data
    """What fastavro read of a schema without logical types, as Arrow takes it for the node's type."""
    if value is None:
        return None
    if isinstance(value, tuple) and node.kind != "union":  # a named type within a union comes with its name
        value = value[1]
    if not node.shaped:
        return value
    return _SHAPES.get(node.kind, _same)(value, node)


def _same(value: Any, _: Node) -> Any:  # noqa: ANN401
    return value


def _union_member(value: Any, node: Node) -> Any:  # noqa: ANN401
    """The branch that a value is of, by its name or its Python type; numbers as they are where all are numbers."""
    if not pa.types.is_struct(node.type):
        return value
    for name, member in node.members:
        if (value[0] == member.name) if isinstance(value, tuple) else _fits(value, member):
            return {name: shape(value, member)}
    msg = f"a value of type {type(value).__name__} is in no branch of its union"
    raise ValueError(msg)


def _fits(value: Any, node: Node) -> bool:  # noqa: ANN401
    kind = type(value)
    if kind is int:
        return node.kind == "long" or pa.types.is_temporal(node.type) or (node.kind == "int" and abs(value) < 2**31)
    wanted = {bool: ("boolean",), float: _FLOATS, str: ("string",), bytes: ("bytes", "decimal")}
    return (
        node.kind in wanted.get(kind, ())
        or (kind is list and node.kind == "array")
        or (kind is dict and node.kind == "map")
    )


def _number(value: bytes | None, scale: int) -> decimal.Decimal | None:
    if value is None:
        return None
    return decimal.Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale, _EXACT)


_EXACT = decimal.Context(prec=1000)
_SHAPES: dict[str, Callable[[Any, Node], Any]] = {
    "record": lambda value, node: {name: shape(value[name], member) for name, member in node.members},
    "array": lambda value, node: [shape(each, node.members[0][1]) for each in value],
    "map": lambda value, node: [(name, shape(each, node.members[0][1])) for name, each in value.items()],
    "again": lambda value, node: shape(value, node.members[0][1]),
    "union": _union_member,
    "decimal": lambda value, node: _number(value, node.scale),
    "timestamp-millis": lambda value, _: value * 1000,
    "local-timestamp-millis": lambda value, _: value * 1000,
}
