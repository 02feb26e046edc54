"""JSON Schemas as Connect's, with what reads values under them, as Confluent's JsonSchemaConverter has it.

Where that would read a text as 0 or a number as no text, the value is refused: nothing is written that was not sent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

from penstock.converters.connect_schema import ConnectSchema, SchemaMistake
from penstock.converters.json_schema_nodes import Node, java_order, node_of, referred
from penstock.converters.json_schema_values import (
    JsonMistake,
    array_reader,
    as_default,
    map_reader,
    member_reader,
    plain_reader,
    struct_reader,
    union_reader,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.converters.json_schema_nodes import Resolver
    from penstock.converters.json_schema_values import Read

Json = Any
_SPACE = "io.confluent.connect.json"
_UNION, _ENUM = f"{_SPACE}.OneOf", f"{_SPACE}.Enum"
_NUMBERS = {
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "float32": "float",
    "float64": "double",
    "bytes": "bytes",
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNIONS = ("any of", "one of")


@dataclass(frozen=True, slots=True)
class JsonSchemaOptions:
    """The options of Confluent's JsonSchemaDataConfig that change what a value becomes, and `json.fail.invalid.schema`.

    `optional`: `use.optional.for.nonrequired`; `flatten`: `flatten.singleton.unions`.
    """

    optional: bool = False
    flatten: bool = True
    validate: bool = False

    @classmethod
    def of(cls, given: Mapping[str, str]) -> JsonSchemaOptions:
        """From a converter's options."""

        def flag(name: str, default: str) -> bool:
            return given.get(name, default).strip().lower() == "true"

        return cls(
            flag("use.optional.for.nonrequired", "false"),
            flag("flatten.singleton.unions", "true"),
            flag("json.fail.invalid.schema", "false"),
        )


@dataclass(frozen=True, slots=True)
class Made:
    """A schema and what reads its values; `read` raises `JsonMistake`."""

    schema: ConnectSchema
    read: Read

    def as_optional(self) -> Made:
        """The same, but a value may be missing."""
        schema = replace(self.schema, optional=True)
        return Made(schema, self.read)


def scrubbed(name: str) -> str:
    """A name as AvroData has it with `scrub.invalid.names`: what Avro does not allow becomes `_`."""
    if _NAME.fullmatch(name):
        return name
    encoded = quote_plus(name, safe="*")
    return re.sub(r"[^A-Za-z0-9_]", "_", f"x{encoded}" if encoded[:1].isdigit() else encoded)


@dataclass(slots=True)
class JsonSchemaTypes:
    """One schema's types. `modern`: newer than draft 7, whose properties keep their order.

    `seen_names`: whether a file shows names: then they are made such that Avro allows them; otherwise types are only
    numbered. `open`: ids of the documents that are being made -> the schema's name, its reader's cell.
    """

    options: JsonSchemaOptions
    modern: bool
    seen_names: bool
    open: dict[int, tuple[str | None, list[Read]]] = field(default_factory=dict)
    unions: int = 0
    structs: int = 0

    def make(self, node: Node, *, version: int | None = None, optional: bool = False) -> Made:
        """A node's type. Raises `SchemaMistake`."""
        if node.kind in _UNIONS:
            single = self._single(node, version, optional)
            if single is not None:
                return single
        if node.kind == "all of":
            return self._all_of(node, version, optional=optional)
        if node.kind == "reference":
            return self._reference(node, version, optional=optional)
        return self._completed(self._base(node), node, version, optional=optional)

    def _single(self, node: Node, version: int | None, optional: bool) -> Made | None:
        """What a union of one, or of one and null, stands for."""
        if len(node.parts) == 1 and self.options.flatten:
            return self.make(node.parts[0])
        others = [part for part in node.parts if part.kind != "null"]
        if len(node.parts) == 2 and len(others) == 1:  # noqa: PLR2004 - a pair
            return self.make(others[0], version=version, optional=True)
        del optional
        return None

    def _completed(self, made: Made, node: Node, version: int | None, *, optional: bool) -> Made:
        """With what stands beside the type: title, version, description, parameters, default."""
        doc, schema = node.doc, made.schema
        title, told = doc.get("title"), doc.get("connect.version")
        parameters = doc.get("connect.parameters")
        name = schema.name
        if name is None and isinstance(title, str) and (self.seen_names or schema.type != "struct"):
            name = self._name(title)
        schema = replace(
            schema,
            name=name,
            version=told if isinstance(told, int) else version,
            doc=doc.get("description"),
            parameters={**schema.parameters, **(parameters if isinstance(parameters, dict) else {})},
            optional=optional or schema.optional,
        )
        read = plain_reader(schema) or made.read
        default = doc.get("default")
        if default is not None:
            try:
                schema = replace(schema, default=as_default(read(default)))
            except JsonMistake as mistake:
                msg = f"its default does not fit: {mistake}"
                raise SchemaMistake(msg) from mistake
        return Made(schema, read)

    def _base(self, node: Node) -> Made:
        kind, told = node.kind, node.doc.get("connect.type")
        if kind == "array":
            return self._array(node, is_map=told == "map")
        if kind == "object":
            return self._map(node) if told == "map" else self._struct(node)
        if kind in _UNIONS:
            return self._union(node)
        if kind in ("enum", "const"):
            return Made(self._enum(node), str)
        if kind == "boolean":
            return Made(ConnectSchema("boolean"), bool)
        if kind == "string":
            return Made(ConnectSchema("bytes" if told == "bytes" else "string"), str)
        if kind in ("integer", "number"):
            plain = "int64" if kind == "integer" else "double"
            if told is not None and told not in _NUMBERS:
                msg = f"`{told}` is no connect.type of a number"
                raise SchemaMistake(msg)
            return Made(ConnectSchema(plain if told is None else _NUMBERS[told]), str)
        msg = f"a part of it can hold {'anything' if kind == 'any' else 'what Connect has no type for'}; give it a type"
        raise SchemaMistake(msg)

    def _enum(self, node: Node) -> ConnectSchema:
        values = node.doc["enum"] if node.kind == "enum" else [node.doc["const"]]
        texts = ["<NULL>" if each is None else _java_text(each) for each in values]
        return ConnectSchema("string", parameters={_ENUM: "", **{f"{_ENUM}.{each}": each for each in texts}})

    def _array(self, node: Node, *, is_map: bool) -> Made:
        items = node.doc.get("items")
        if not isinstance(items, (dict, bool)):
            msg = "an array in it does not say the one type of its items"
            raise SchemaMistake(msg)
        item = node_of(items, node.where)
        if is_map and item.kind == "object":
            keys, values = (
                self.make(node_of(item.doc.get("properties", {}).get(name, True), item.where))
                for name in ("key", "value")
            )
            schema = ConnectSchema("map", keys=keys.schema, values=values.schema)
            return Made(schema, map_reader(schema, _member(keys), _member(values)))
        made = self.make(item)
        return Made(ConnectSchema("array", values=made.schema), array_reader(_member(made)))

    def _map(self, node: Node) -> Made:
        values = node.doc.get("additionalProperties")
        if not isinstance(values, dict):
            msg = "a map in it does not say the type of its values (`additionalProperties`)"
            raise SchemaMistake(msg)
        made = self.make(node_of(values, node.where))
        schema = ConnectSchema("map", keys=ConnectSchema("string"), values=made.schema)
        return Made(schema, map_reader(schema, str, _member(made)))

    def _union(self, node: Node) -> Made:
        self.unions += 1
        number = self.unions
        name = _UNION if number == 1 else f"{_UNION}{number}"
        parts = [part for part in node.parts if part.kind != "null"]
        members = [(f"{_UNION}.field.{at}", self.make(part, optional=True)) for at, part in enumerate(parts)]
        named = [(self._field_name(field_name), made) for field_name, made in members]
        fields = tuple((field_name, made.schema) for field_name, made in named)
        schema = ConnectSchema("struct", len(parts) < len(node.parts), name, fields=fields)
        return Made(schema, union_reader([(field_name, made.schema, made.read) for field_name, made in named]))

    def _struct(self, node: Node) -> Made:
        properties, required = node.doc.get("properties", {}), node.doc.get("required", [])
        names = list(properties) if self.modern else java_order(properties)
        nodes = {name: node_of(properties[name], node.where) for name in names}
        return self._of_properties(node, _indexed(nodes), set(required))

    def _of_properties(self, node: Node, nodes: Mapping[str, Node], required: set[str]) -> Made:
        title = node.doc.get("title")
        name = self._name(title) if isinstance(title, str) and self.seen_names and node.kind == "object" else None
        if not self.seen_names:
            self.structs += 1
            name = f"struct{self.structs}"
        cell: list[Read] = []
        self.open[id(node.doc)] = name, cell
        members = []
        for each, part in nodes.items():
            made = self.make(part, optional=self.options.optional and each not in required)
            members.append((self._field_name(each), each, made))
        del self.open[id(node.doc)]
        names = [field_name for field_name, _, _ in members]
        if len(set(names)) < len(names):
            msg = "two of its properties have the same name in Avro"
            raise SchemaMistake(msg)
        read = struct_reader([(field_name, each, _member(made)) for field_name, each, made in members])
        cell.append(read)
        return Made(ConnectSchema("struct", name=name, fields=tuple((n, made.schema) for n, _, made in members)), read)

    def _reference(self, node: Node, version: int | None, *, optional: bool) -> Made:
        schema, where = referred(node)
        if id(schema) in self.open:
            name, cell = self.open[id(schema)]
            return Made(ConnectSchema("struct", optional, name, reference=True), lambda value: cell[0](value))  # noqa: PLW0108 - not there yet
        return self.make(node_of(schema, where), version=version, optional=optional)

    def _all_of(self, node: Node, version: int | None, *, optional: bool) -> Made:
        nodes: dict[str, Node] = {}
        required: dict[str, bool] = {}
        _collect(node, nodes, required, set())
        if nodes:
            made = self._of_properties(node, nodes, {name for name, needed in required.items() if needed})
            return made.as_optional() if optional else made
        last = {part.kind: part for part in node.parts}
        number = last.get("number") or last.get("integer")
        combined = [part for part in node.parts if part.kind in (*_UNIONS, "all of")]
        chosen: Node | None = None
        if combined:
            chosen = combined[-1]
        elif "const" in last:
            chosen = last.get("string") or number
        elif "enum" in last:
            chosen = last["enum"] if "string" in last else number
        elif "string" in last:
            chosen = number or last["string"]
        else:
            chosen = last.get("reference")
        if chosen is None:
            msg = "an `allOf` in it is of no type that Connect has"
            raise SchemaMistake(msg)
        return self.make(chosen, version=version, optional=optional)

    def _name(self, title: str) -> str:
        return ".".join(scrubbed(part) for part in title.split(".")) if self.seen_names else title

    def _field_name(self, name: str) -> str:
        return scrubbed(name) if self.seen_names else name


def _member(made: Made) -> Read:
    return member_reader(made.schema, made.read)


def _indexed(nodes: Mapping[str, Node]) -> dict[str, Node]:
    """Properties in the order of `connect.index`; one without is behind those before it."""
    placed: dict[int, str] = {}
    for name, node in nodes.items():
        index = node.doc.get("connect.index")
        placed[index if isinstance(index, int) else len(placed)] = name
    return {placed[index]: nodes[placed[index]] for index in sorted(placed)}


def _collect(node: Node, nodes: dict[str, Node], required: dict[str, bool], seen: set[int]) -> None:
    """The properties of all objects that an `allOf` combines."""
    if id(node.doc) in seen and node.kind == "reference":
        return
    seen.add(id(node.doc))
    if node.kind == "all of":
        for part in node.parts:
            _collect(part, nodes, required, seen)
    elif node.kind == "object":
        for name in java_order(node.doc.get("properties", {})):
            nodes[name] = node_of(node.doc["properties"][name], node.where)
            required[name] = name in node.doc.get("required", [])
    elif node.kind == "reference":
        schema, where = referred(node)
        _collect(node_of(schema, where), nodes, required, seen)


def _java_text(value: Json) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def root(types: JsonSchemaTypes, schema: Json, where: Resolver, version: int | None) -> Made:
    """The type of whole values."""
    return types.make(node_of(schema, where), version=version)
