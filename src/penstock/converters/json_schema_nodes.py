"""JSON Schema documents as the trees that Confluent's JsonSchemaConverter reads: what kind of schema each one is.

Keywords side by side (`type` and `enum`, say) make several schemas that all must hold, as in the everit library.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urljoin

import referencing
import referencing.exceptions
from referencing.jsonschema import DRAFT7, specification_with

from penstock.converters.connect_schema import SchemaMistake

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Json = Any
Resolver = Any
"""`referencing`'s: it knows relative to what a `$ref` is meant."""

NodeKind = Literal[
    "boolean", "integer", "number", "string", "null", "array", "object",
    "enum", "const", "any of", "one of", "all of", "reference", "any", "other",
]  # fmt: skip

_TYPES: dict[str, NodeKind] = {
    "boolean": "boolean",
    "integer": "integer",
    "number": "number",
    "string": "string",
    "null": "null",
    "array": "array",
    "object": "object",
}
_COMBINED: dict[str, NodeKind] = {"allOf": "all of", "anyOf": "any of", "oneOf": "one of"}
_SNIFFED: dict[NodeKind, tuple[str, ...]] = {
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": ("items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "object": ("properties", "required", "minProperties", "maxProperties", "dependencies", "patternProperties",
               "additionalProperties", "propertyNames"),
    "string": ("minLength", "maxLength", "pattern", "format"),
}  # fmt: skip
_OUTER = ("title", "description", "default")
_NOWHERE = "http://registered.invalid/schema.json"  # what names without a place are relative to; nothing is fetched
_MODERN = ("2019-09", "2020-12")
_FIRST_SIZE, _TABLE_LOAD = 16, 0.75


@dataclass(frozen=True, slots=True)
class Node:
    """A schema. `parts`: of a combined one; `where`: for what it refers to."""

    kind: NodeKind
    doc: Mapping[str, Json]
    where: Resolver
    parts: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A registered schema. `modern`: newer than draft 7. `registry`: `referencing`'s, with what it refers to."""

    root: Json
    base: str
    modern: bool
    resources: tuple[tuple[str, Json], ...]
    resolver: Resolver


def document(text: str, references: Mapping[str, str]) -> Document:
    """Read a schema. `references`: name -> text of what the registry keeps apart. Raises `SchemaMistake`."""
    try:
        root = json.loads(text)
        others = {name: json.loads(each) for name, each in references.items()}
    except (ValueError, RecursionError) as error:
        msg = f"it is not JSON ({error})"
        raise SchemaMistake(msg) from error
    told = root.get("$schema", "") if isinstance(root, dict) else ""
    dialect = specification_with(told, default=DRAFT7) if isinstance(told, str) else DRAFT7
    said = root.get("$id", root.get("id", "")) if isinstance(root, dict) else ""
    base = urljoin(_NOWHERE, said) if isinstance(said, str) else _NOWHERE
    named = tuple((urljoin(base, name), each) for name, each in others.items())
    registry: Any = referencing.Registry().with_resources(
        (uri, dialect.create_resource(each)) for uri, each in ((base, root), *named)
    )
    modern = isinstance(told, str) and any(draft in told for draft in _MODERN)
    return Document(root, base, modern, ((base, root), *named), registry.resolver(base))


def node_of(schema: Json, where: Resolver) -> Node:
    """A schema with the kinds of those that it is combined of."""
    if schema is True or schema == {}:
        return Node("any", {}, where)
    if not isinstance(schema, dict):
        return Node("other", {}, where)
    if "$ref" in schema:
        return Node("reference", schema, where)
    parts = list(_parts(schema, where))
    if not parts:
        return Node("any", schema, where)
    if len(parts) == 1:
        return Node(parts[0].kind, schema, where, parts[0].parts)
    return Node("all of", schema, where, _combined_first(parts))


def referred(node: Node) -> tuple[Json, Resolver]:
    """What a reference means, and where that stands. `#/$defs/X` and `#/definitions/X` stand for each other."""
    said = str(node.doc["$ref"])
    other = said.replace("/$defs/", "/definitions/") if "/$defs/" in said else said.replace("/definitions/", "/$defs/")
    for name in dict.fromkeys((said, other)):
        try:
            found = node.where.lookup(name)
        except (referencing.exceptions.Unresolvable, ValueError, LookupError):
            continue
        return found.contents, found.resolver
    msg = f"it refers to `{said}`, which is neither in it nor among its references in the registry"
    raise SchemaMistake(msg)


def _parts(schema: Mapping[str, Json], where: Resolver) -> Iterable[Node]:
    inner = {name: each for name, each in schema.items() if name not in _OUTER and not name.startswith("connect.")}
    if "enum" in schema:
        yield Node("enum", inner, where)
    for word, kind in _COMBINED.items():
        if isinstance(schema.get(word), list):
            yield Node(kind, inner, where, _combined_first([node_of(each, where) for each in schema[word]]))
    if "not" in schema or "if" in schema:
        yield Node("other", inner, where)
    if "const" in schema:
        yield Node("const", inner, where)
    types = schema.get("type")
    if isinstance(types, list):
        yield Node("any of", inner, where, tuple(Node(_type(each), inner, where) for each in types))
    elif types is not None:
        yield Node(_type(types), inner, where)
    else:
        yield from (Node(kind, inner, where) for kind, words in _SNIFFED.items() if any(w in schema for w in words))


def _type(said: Json) -> NodeKind:
    if said not in _TYPES:
        msg = f"`{said}` is no type of JSON Schema"
        raise SchemaMistake(msg)
    return _TYPES[said]


def _combined_first(parts: list[Node]) -> tuple[Node, ...]:
    return tuple(sorted(parts, key=lambda part: part.kind not in ("any of", "one of", "all of")))


def java_order(names: Iterable[str]) -> list[str]:
    """Names in the order in which Java's HashMap has them, which is that of the connector's fields up to draft 7."""
    given = list(names)
    size = _FIRST_SIZE
    while len(given) > size * _TABLE_LOAD:
        size *= 2
    return sorted(given, key=lambda name: _java_hash(name) & (size - 1))


def _java_hash(text: str) -> int:
    """`String.hashCode`, spread as HashMap does."""
    number = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        number = (31 * number + units[at] * 256 + units[at + 1]) & 0xFFFFFFFF
    return number ^ (number >> 16)
