"""JSON Schema in Confluent's wire format: a zero byte, the schema's id, a JSON document."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import msgspec

from penstock.converters.connect_schema import DECIMAL, SchemaMistake
from penstock.converters.json_schema_nodes import document
from penstock.converters.json_schema_types import JsonSchemaOptions, JsonSchemaTypes, root, scrubbed
from penstock.converters.json_schema_values import JsonMistake, member_reader
from penstock.converters.structured import Typed, ValueMistake

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from penstock.converters.json_schema_nodes import Document
    from penstock.converters.structured import Opened
    from penstock.registry import Registered

__all__ = ["JsonSchemaOptions", "JsonSchemaSource"]
_SHOWN = 200
_DRAFT_7 = "http://json-schema.org/draft-07/schema#"


@dataclass(frozen=True, slots=True)
class JsonSchemaSource:
    """`unique_names`: types are numbered, and names are the producer's, where no file shows what types are called."""

    options: JsonSchemaOptions
    unique_names: bool
    kind: str = "JSON"
    word: str = "JSON Schema"

    def open(self, registered: Registered) -> Opened:
        """Read a schema with what it refers to."""
        return _Schema(self, document(registered.text, registered.named), registered.version)


@dataclass(frozen=True, slots=True)
class _Schema:
    source: JsonSchemaSource
    document: Document
    version: int | None
    first: None = None

    def split(self, value: bytes) -> tuple[Hashable, bytes]:
        """There is one type."""
        return 0, value

    def typed(self, which: Hashable) -> Typed:  # noqa: ARG002 - the only one
        """The type of the documents."""
        told, options, named = self.document, self.source.options, not self.source.unique_names
        try:
            made = root(JsonSchemaTypes(options, told.modern, named), told.root, told.resolver, self.version)
        except RecursionError as error:
            msg = "it refers to itself without end"
            raise SchemaMistake(msg) from error
        title = told.root.get("title", "") if isinstance(told.root, dict) else ""
        check = _validator(told) if options.validate else None
        read = _reader(member_reader(made.schema, made.read), check, exact=DECIMAL in str(told.resources))
        return Typed(made.schema, str(title), read, _scrubbed_path if named else str)


def _scrubbed_path(path: str) -> str:
    return ".".join(scrubbed(step) for step in path.split("."))


def _reader(
    read: Callable[[Any], Any], check: Callable[[bytes], None] | None, *, exact: bool
) -> Callable[[bytes], Any]:
    decode = msgspec.json.Decoder(float_hook=Decimal if exact else None).decode

    def body(data: bytes) -> Any:  # noqa: ANN401 - Avro data
        try:
            value = decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            msg = f"is not JSON ({error})"
            raise ValueMistake(msg) from error
        if value is None:
            return None
        if check is not None:
            check(data)
        try:
            return read(value)
        except JsonMistake as mistake:
            msg = f"does not fit the schema it names: {mistake}"
            raise ValueMistake(msg) from mistake

    return body


def _validator(told: Document) -> Callable[[bytes], None]:
    try:
        registry = jsonschema_rs.Registry(told.resources)
        schema = {"$schema": _DRAFT_7, **told.root} if isinstance(told.root, dict) else told.root
        validator = jsonschema_rs.validator_for(schema, registry=registry, base_uri=told.base, offline=True)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        msg = f"it cannot be used to check values ({error})"
        raise SchemaMistake(msg) from error

    def check(data: bytes) -> None:
        try:
            validator.validate(msgspec.json.decode(data))
        except jsonschema_rs.ValidationError as error:
            place = ".".join(str(step) for step in error.instance_path)
            said = f"`{place}`: {error.message}" if place else str(error.message)
            msg = f"does not fit the schema it names: {said[:_SHOWN]}"
            raise ValueMistake(msg) from error

    return check
