"""Whether data written with one Avro schema can be read with another: the resolution rules of the Avro specification.

As Confluent's registry (Avro's Java `SchemaCompatibility`) answers it: names match without their namespace, or by an
alias of the reader; logical types play no part.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from fastavro import parse_schema
from fastavro.schema import SchemaParseException, UnknownType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Node: TypeAlias = Any  # A part of a schema: a type's name, a list (a union), or an object.

_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_PROMOTIONS = {
    "long": {"int"},
    "float": {"int", "long"},
    "double": {"int", "long", "float"},
    "string": {"bytes"},
    "bytes": {"string"},
}
_INTERNAL = ("__fastavro_parsed__", "__named_schemas")


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A valid schema. `names`: its named types, and those of schemas that it refers to, by full name."""

    root: Node
    names: Mapping[str, Node]

    @property
    def canonical(self) -> str:
        """Equal for equal schemas: full names, no white space, attributes in one order; docs and defaults count."""
        return json.dumps(_plain(self.root), sort_keys=True, separators=(",", ":"))


def parse(text: str, known: Mapping[str, Node] | None = None) -> AvroSchema:
    """A schema from its JSON text; `known`: named types that it may use without defining them.

    Raises:
        ValueError: the text is no Avro schema.
    """
    names: dict[str, Node] = dict(known or {})
    try:
        source = json.loads(text)
        _check_fields(source)
        root = parse_schema(source, named_schemas=names, _write_hint=False)
    except UnknownType as error:
        msg = f"unknown type `{error.name}`"
        raise ValueError(msg) from error
    except (SchemaParseException, json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        msg = f"{type(error).__name__}: {error}"
        raise ValueError(msg) from error
    return AvroSchema(root, names)


def incompatibilities(reader: AvroSchema, writer: AvroSchema) -> list[str]:
    """Why `reader` cannot read what `writer` wrote, one sentence per place; empty if it can."""
    return list(_Comparison(reader.names, writer.names, set()).differences(reader.root, writer.root, ""))


@dataclass(frozen=True, slots=True)
class _Comparison:
    """One comparison. `seen`: pairs of records that are being compared further up, so that recursive types end."""

    reader_names: Mapping[str, Node]
    writer_names: Mapping[str, Node]
    seen: set[tuple[str, str]]

    def differences(self, reader: Node, writer: Node, path: str) -> Iterator[str]:
        reader, writer = _resolved(reader, self.reader_names), _resolved(writer, self.writer_names)
        kinds = _kind(reader), _kind(writer)
        if kinds[1] == "union":
            for n, branch in enumerate(writer):
                yield from self.differences(reader, branch, f"{path}/{n}")
        elif kinds[0] == "union":
            if not any(self._fits(branch, writer, path) for branch in reader):
                yield f"{path or '/'}: no branch of the reader's union takes the writer's {_title(writer)}"
        elif kinds[0] != kinds[1]:
            if kinds[1] not in _PROMOTIONS.get(kinds[0], ()):
                yield f"{path or '/'}: the reader's {_title(reader)} cannot take the writer's {_title(writer)}"
        elif kinds[0] not in _PRIMITIVES:
            yield from self._same_kind(kinds[0], reader, writer, path)

    def _fits(self, reader: Node, writer: Node, path: str) -> bool:
        trial = _Comparison(self.reader_names, self.writer_names, set(self.seen))
        return next(trial.differences(reader, writer, path), None) is None

    def _same_kind(self, kind: str, reader: Node, writer: Node, path: str) -> Iterator[str]:
        if kind == "array":
            yield from self.differences(reader["items"], writer["items"], f"{path}/items")
        elif kind == "map":
            yield from self.differences(reader["values"], writer["values"], f"{path}/values")
        elif not _same_name(reader, writer):
            yield f"{path or '/'}: the writer's name is `{writer['name']}`, the reader's `{reader['name']}`"
        elif kind == "fixed":
            if reader["size"] != writer["size"]:
                yield f"{path or '/'}: fixed of {writer['size']} bytes, the reader wants {reader['size']}"
        elif kind == "enum":
            lost = [symbol for symbol in writer["symbols"] if symbol not in reader["symbols"]]
            if lost and "default" not in reader:
                yield f"{path or '/'}: the reader's enum lacks {', '.join(lost)} and has no default"
        else:
            yield from self._records(reader, writer, path)

    def _records(self, reader: Node, writer: Node, path: str) -> Iterator[str]:
        pair = (reader["name"], writer["name"])
        if pair in self.seen:
            return
        self.seen.add(pair)
        written = {field["name"]: field for field in writer["fields"]}
        for field in reader["fields"]:
            place = f"{path}/{field['name']}"
            source = next((written[n] for n in (field["name"], *field.get("aliases", ())) if n in written), None)
            if source is not None:
                yield from self.differences(field["type"], source["type"], place)
            elif "default" not in field:
                yield f"{place}: the writer has no such field, and the reader has no default for it"


def _check_fields(node: Node) -> None:
    """Refuse a record without fields, which fastavro takes for an empty one."""
    if isinstance(node, dict):
        if node.get("type") in ("record", "error") and not isinstance(node.get("fields"), list):
            msg = f"record `{node.get('name')}` has no list of fields"
            raise ValueError(msg)
        for part in (node.get("type"), node.get("items"), node.get("values"), node.get("fields")):
            _check_fields(part)
    elif isinstance(node, list):
        for part in node:
            _check_fields(part)


def _resolved(node: Node, names: Mapping[str, Node]) -> Node:
    """A node without indirection: what a name stands for; a primitive as its bare name."""
    if isinstance(node, str):
        return node if node in _PRIMITIVES else names[node]
    if isinstance(node, dict) and (not isinstance(node["type"], str) or node["type"] in _PRIMITIVES):
        return _resolved(node["type"], names)
    return node


def _kind(node: Node) -> str:
    if isinstance(node, list):
        return "union"
    kind = node if isinstance(node, str) else node["type"]
    return "record" if kind == "error" else str(kind)


def _title(node: Node) -> str:
    return _kind(node) + (f" `{node['name']}`" if isinstance(node, dict) and "name" in node else "")


def _same_name(reader: Node, writer: Node) -> bool:
    full = writer["name"]
    namespace = reader["name"].rpartition(".")[0]
    aliases = {a if "." in a or not namespace else f"{namespace}.{a}" for a in reader.get("aliases", ())}
    return reader["name"].rpartition(".")[2] == full.rpartition(".")[2] or full in aliases


def _plain(node: Node) -> Node:
    """A node without the parser's own marks, and with `{"type": "string"}` as `"string"`."""
    if isinstance(node, list):
        return [_plain(branch) for branch in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _plain(value) for key, value in node.items() if key not in _INTERNAL}
    return kept["type"] if kept.keys() == {"type"} else kept
