"""Connect's schemas as its JsonConverter writes them, and the Avro schemas that AvroData derives from them.

Reference s3-sink-connector 4.2.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field, replace
from typing import Any

Json = Any

DECIMAL = "org.apache.kafka.connect.data.Decimal"
_NAMESPACE = "io.confluent.connect.avro"
_ENUM = "io.confluent.connect.avro.Enum"
_PRECISION = "connect.decimal.precision"
_DEFAULT_PRECISION = 64
_LOGICAL = {
    "org.apache.kafka.connect.data.Date": ("int32", "date"),
    "org.apache.kafka.connect.data.Time": ("int32", "time-millis"),
    "org.apache.kafka.connect.data.Timestamp": ("int64", "timestamp-millis"),
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AVRO = {
    "boolean": "boolean",
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "float": "float",
    "double": "double",
    "bytes": "bytes",
    "string": "string",
}


class SchemaMistake(ValueError):  # noqa: N818 - somebody's, not ours
    """A Connect schema that means nothing, or that Avro cannot express."""


@dataclass(frozen=True, slots=True)
class ConnectSchema:
    """A schema with what it is made of. `default`: as JSON has it, None where there is none.

    `fields`: of a struct. `keys`, `values`: of a map; an array has only `values`. `reference`: a struct that is written
    out elsewhere, earlier or around this one; here is only its name.
    """

    type: str
    optional: bool = False
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    default: Json = None
    fields: tuple[tuple[str, ConnectSchema], ...] = ()
    keys: ConnectSchema | None = None
    values: ConnectSchema | None = None
    reference: bool = False

    @property
    def scale(self) -> int:
        """Of a decimal."""
        return int(self.parameters.get("scale", "0"))

    @property
    def text_keys(self) -> bool:
        """Whether a map is an object in JSON."""
        return self.keys is not None and self.keys.type == "string"

    @property
    def avro_map(self) -> bool:
        """Whether a map is one in Avro, too; otherwise it is an array of entries."""
        return self.keys is not None and self.keys.type == "string" and not self.keys.optional


def parse(document: Json, *, optional_map_keys: bool = False) -> ConnectSchema:
    """A schema from the `schema` member of an envelope. Raises `SchemaMistake`.

    `optional_map_keys`: `allow.optional.map.keys`; a map whose keys are optional texts is then one in Avro, too.
    """
    if not isinstance(document, dict) or not isinstance(document.get("type"), str):
        msg = "a schema must be an object with a `type`"
        raise SchemaMistake(msg)
    kind = document["type"]
    if kind not in _AVRO and kind not in ("struct", "map", "array"):
        msg = f"`{kind}` is not a type of Connect's JSON schemas"
        raise SchemaMistake(msg)
    fields = document.get("fields")
    if kind == "struct" and not (isinstance(fields, list) and all(_is_field(each) for each in fields)):
        msg = "a struct needs `fields`, each with a `field` and a `type`"
        raise SchemaMistake(msg)

    def inner(part: Json) -> ConnectSchema:
        return parse(part, optional_map_keys=optional_map_keys)

    keys = inner(document.get("keys")) if kind == "map" else None
    if keys is not None and optional_map_keys and keys.type == "string":
        keys = replace(keys, optional=False)
    return ConnectSchema(
        kind,
        bool(document.get("optional", False)),
        document.get("name"),
        document.get("version"),
        document.get("doc"),
        {str(name): str(value) for name, value in (document.get("parameters") or {}).items()},
        document.get("default"),
        tuple((each["field"], inner(each)) for each in fields or ()) if kind == "struct" else (),
        keys,
        inner(document.get("values" if kind == "map" else "items")) if kind in ("map", "array") else None,
    )


def _is_field(each: Json) -> bool:
    return isinstance(each, dict) and isinstance(each.get("field"), str)


def avro_schema(schema: ConnectSchema, *, connect_meta_data: bool, any_names: bool = False) -> str:
    """The Avro schema of a Connect schema as JSON text; without `connect.*` where `connect_meta_data` is false.

    `any_names`: those that Avro does not allow stay as they are; for schemas that no file carries.
    """
    derived = _Derivation(connect_meta_data, any_names=any_names).derive(schema)
    return json.dumps(derived, separators=(",", ":"), ensure_ascii=False)


@dataclass(slots=True)
class _Derivation:
    """One schema's derivation. `space`: the namespace around; `written`: named types so far, later only named."""

    connect_meta_data: bool
    any_names: bool = False
    space: str = ""
    unnamed: int = 0
    written: dict[str, ConnectSchema] = field(default_factory=dict)

    def derive(self, schema: ConnectSchema) -> Json:
        """With null where it is optional; the first branch is the one that the default is of."""
        base = self._type(schema)
        if not schema.optional:
            return base
        return ["null", base] if schema.default is None else [base, "null"]

    def _type(self, schema: ConnectSchema) -> Json:
        full = self._full_name(schema)
        if full is not None and (schema.reference or self._is_written(full, schema)):
            return self._reference(full)
        base = self._base(schema) if full is None else self._named(full, schema)
        if self.connect_meta_data:
            base |= self._meta_data(schema)
        base |= _logical_type(schema)
        return base["type"] if base.keys() == {"type"} else base

    def _full_name(self, schema: ConnectSchema) -> str | None:
        """Of a type that has a name in Avro."""
        if schema.type == "string":
            return schema.parameters.get(_ENUM)
        if schema.type != "struct":
            return None
        if schema.name is not None:
            return schema.name
        if schema.reference:
            msg = "it has a type that holds itself and has no name; give it one"
            raise SchemaMistake(msg)
        self.unnamed += 1
        return f"{_NAMESPACE}.ConnectDefault{self.unnamed if self.unnamed > 1 else ''}"

    def _is_written(self, full: str, schema: ConnectSchema) -> bool:
        """Whether a type was written out before. Raises `SchemaMistake` if another has its name."""
        alike = replace(schema, optional=False)
        if self.written.setdefault(full, alike) is alike:
            return False
        if self.written[full] != alike:
            msg = f"it has two different types with the name `{full}`"
            raise SchemaMistake(msg)
        return True

    def _reference(self, full: str) -> str:
        space, _, last = full.rpartition(".")
        return last if space == self.space else full

    def _head(self, full: str) -> dict[str, Json]:
        """Name and namespace, which is left out where it is that around."""
        for part in full.split("."):
            self._checked(part)
        space, _, last = full.rpartition(".")
        return {"name": last} if space == self.space else {"name": last, "namespace": space}

    def _base(self, schema: ConnectSchema) -> dict[str, Json]:
        if schema.type == "array" and schema.values is not None:
            return {"type": "array", "items": self.derive(schema.values)}
        if schema.type == "map" and schema.values is not None and schema.keys is not None:
            if schema.avro_map:
                return {"type": "map", "values": self.derive(schema.values)}
            return {"type": "array", "items": self._entry(schema, schema.keys, schema.values)}
        base: dict[str, Json] = {"type": _AVRO[schema.type]}
        if schema.name == DECIMAL:
            precision = int(schema.parameters.get(_PRECISION, _DEFAULT_PRECISION))
            base |= {"scale": schema.scale, "precision": precision}
        return base

    def _named(self, full: str, schema: ConnectSchema) -> dict[str, Json]:
        head = self._head(full)
        if schema.type == "string":
            prefix = f"{_ENUM}."
            symbols = [self._checked(value) for name, value in schema.parameters.items() if name.startswith(prefix)]
            return {"type": "enum", **head, "symbols": symbols}
        return {"type": "record", **head, "fields": self._within(full, schema.fields)}

    def _within(self, full: str, fields: tuple[tuple[str, ConnectSchema], ...]) -> Json:
        """The fields of a record, whose namespace holds inside of it."""
        around, self.space = self.space, full.rpartition(".")[0]
        declared = [self._field(name, each) for name, each in fields]
        self.space = around
        return declared

    def _field(self, name: str, schema: ConnectSchema) -> Json:
        declared = {"name": self._checked(name), "type": self.derive(schema)}
        if schema.default is not None:
            declared["default"] = _avro_default(schema, schema.default)
        elif schema.optional:
            declared["default"] = None
        return declared

    def _entry(self, schema: ConnectSchema, keys: ConnectSchema, values: ConnectSchema) -> Json:
        """The record of a key and its value."""
        full = schema.name or f"{_NAMESPACE}.MapEntry"
        if self._is_written(full, ConnectSchema("map", name=schema.name, keys=keys, values=values)):
            return self._reference(full)
        head = self._head(full)
        around, self.space = self.space, full.rpartition(".")[0]
        fields = [self._field("key", keys), self._field("value", values)]
        self.space = around
        mark = {"connect.internal.type": "MapEntry"} if schema.name else {}
        return {"type": "record", **head, "fields": fields, **mark}

    def _checked(self, name: str) -> str:
        if not self.any_names and not _NAME.fullmatch(name):
            msg = f"Avro does not allow the name `{name}`"
            raise SchemaMistake(msg)
        return name

    def _meta_data(self, schema: ConnectSchema) -> dict[str, Json]:
        found: dict[str, Json] = {}
        if schema.doc is not None:
            found["connect.doc"] = schema.doc
        if schema.version is not None:
            found["connect.version"] = schema.version
        if schema.parameters:
            found["connect.parameters"] = schema.parameters
        if schema.default is not None:
            found["connect.default"] = _avro_default(schema, schema.default)
        if schema.name is not None:
            found["connect.name"] = schema.name
        if schema.type in ("int8", "int16"):
            found["connect.type"] = schema.type
        return found


def _logical_type(schema: ConnectSchema) -> dict[str, Json]:
    if schema.name == DECIMAL and schema.type == "bytes":
        precision = int(schema.parameters.get(_PRECISION, _DEFAULT_PRECISION))
        return {"logicalType": "decimal"} if 0 <= schema.scale <= precision else {}
    kind, logical = _LOGICAL.get(schema.name or "", ("", ""))
    return {"logicalType": logical} if kind == schema.type else {}


def _avro_default(schema: ConnectSchema, value: Json) -> Json:
    """A default of an envelope's schema as Avro's JSON has it: bytes are text, one character a byte."""
    if value is None:
        return None
    if schema.type == "bytes":
        return base64.b64decode(str(value)).decode("iso-8859-1")
    if schema.type == "struct":
        return {name: _avro_default(each, value.get(name, each.default)) for name, each in schema.fields}
    if schema.type == "map":
        return _default_entries(schema, value)
    return [_avro_default(schema.values, item) for item in value] if schema.values is not None else value


def _default_entries(schema: ConnectSchema, value: Json) -> Json:
    if schema.keys is None or schema.values is None:
        return value
    if schema.avro_map:
        return {name: _avro_default(schema.values, item) for name, item in value.items()}
    pairs = value.items() if isinstance(value, dict) else value
    return [
        {"key": _avro_default(schema.keys, key), "value": _avro_default(schema.values, item)} for key, item in pairs
    ]
