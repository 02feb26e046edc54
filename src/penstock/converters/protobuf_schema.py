"""Protobuf messages as Connect's schemas, as Confluent's ProtobufConverter represents them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.message_factory import GetMessageClass

from penstock.converters.connect_schema import DECIMAL, ConnectSchema, SchemaMistake

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.descriptor_pool import DescriptorPool

Descriptor = Any
"""Of a message, a field or a oneof."""

_SPACE = "io.confluent.connect.protobuf"
_DATA = "org.apache.kafka.connect.data"
_TYPES = {
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_SINT32: "int32",
    FieldDescriptor.TYPE_SFIXED32: "int32",
    FieldDescriptor.TYPE_UINT32: "int64",
    FieldDescriptor.TYPE_FIXED32: "int64",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_UINT64: "int64",
    FieldDescriptor.TYPE_SINT64: "int64",
    FieldDescriptor.TYPE_FIXED64: "int64",
    FieldDescriptor.TYPE_SFIXED64: "int64",
    FieldDescriptor.TYPE_FLOAT: "float",
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_BOOL: "boolean",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
}
_NAMED_TYPES = {
    FieldDescriptor.TYPE_SINT32: "sint32",
    FieldDescriptor.TYPE_SFIXED32: "sfixed32",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_FIXED32: "fixed32",
    FieldDescriptor.TYPE_UINT64: "uint64",
    FieldDescriptor.TYPE_SINT64: "sint64",
    FieldDescriptor.TYPE_FIXED64: "fixed64",
    FieldDescriptor.TYPE_SFIXED64: "sfixed64",
}
SMALL = ("int8", "int16")
LOGICAL = {
    "google.type.Date": ConnectSchema("int32", name=f"{_DATA}.Date", version=1),
    "google.type.TimeOfDay": ConnectSchema("int32", name=f"{_DATA}.Time", version=1),
    "google.protobuf.Timestamp": ConnectSchema("int64", name=f"{_DATA}.Timestamp", version=1),
}
DECIMAL_MESSAGE = "confluent.type.Decimal"
WRAPPERS = {
    "google.protobuf.DoubleValue": "double",
    "google.protobuf.FloatValue": "float",
    "google.protobuf.Int64Value": "int64",
    "google.protobuf.UInt64Value": "int64",
    "google.protobuf.Int32Value": "int32",
    "google.protobuf.UInt32Value": "int64",
    "google.protobuf.BoolValue": "boolean",
    "google.protobuf.StringValue": "string",
    "google.protobuf.BytesValue": "bytes",
}


@dataclass(frozen=True, slots=True)
class ProtobufOptions:
    """The options of Confluent's ProtobufDataConfig that change what a message becomes, with its defaults.

    `optional_map_keys`: `allow.optional.map.keys`.
    """

    full_names: bool = False
    int_enums: bool = False
    optional_for_nullables: bool = False
    optional_for_proto2: bool = True
    wrapper_for_nullables: bool = False
    wrapper_for_raw_primitives: bool = True
    struct_for_nulls: bool = False
    index_for_unions: bool = True
    flatten_unions: bool = False
    optional_map_keys: bool = False

    @classmethod
    def of(cls, given: Mapping[str, str], *, optional_map_keys: bool) -> ProtobufOptions:
        """From a converter's options."""

        def flag(name: str, *, default: bool = False) -> bool:
            return given.get(name, str(default)).strip().lower() == "true"

        return cls(
            flag("enhanced.protobuf.schema.support"),
            flag("int.for.enums"),
            flag("optional.for.nullables"),
            flag("optional.for.proto2", default=True),
            flag("wrapper.for.nullables"),
            flag("wrapper.for.raw.primitives", default=True),
            flag("generate.struct.for.nulls"),
            flag("generate.index.for.unions", default=True),
            flag("flatten.unions"),
            optional_map_keys,
        )

    @property
    def unwraps(self) -> bool:
        """Whether a field of a wrapper type is the value in it."""
        return self.wrapper_for_raw_primitives or self.wrapper_for_nullables


def real_oneofs(message: Descriptor) -> list[Descriptor]:
    """A message's oneofs without those that `optional` of proto3 makes."""
    proto = _proto(message)
    made = {each.oneof_index for each in proto.field if each.proto3_optional}
    return [oneof for oneof in message.oneofs if oneof.index not in made]


def plain_fields(message: Descriptor) -> list[Descriptor]:
    """A message's fields that are in no real oneof."""
    within = {each.name for oneof in real_oneofs(message) for each in oneof.fields}
    return [each for each in message.fields if each.name not in within]


def says_optional(each: Descriptor) -> bool:
    """Whether a field stands with the word `optional`, or as one of proto2 does."""
    declared = next(proto for proto in _proto(each.containing_type).field if proto.name == each.name)
    file = FileDescriptorProto()
    each.containing_type.file.CopyToProto(file)
    in_proto2 = file.syntax in ("", "proto2")
    optional = declared.label == FieldDescriptor.LABEL_OPTIONAL and not declared.HasField("oneof_index")
    return bool(declared.proto3_optional or (in_proto2 and optional))


def is_map(each: Descriptor) -> bool:
    """Whether Connect takes a field for a map: by what its entries look like, however they were declared."""
    if not is_repeated(each) or each.message_type is None or not each.message_type.name.endswith("Entry"):
        return False
    within = each.message_type.fields
    return [part.name for part in within] == ["key", "value"] and not any(is_repeated(part) for part in within)


def is_repeated(each: Descriptor) -> bool:
    """Whether a field holds a list or a map."""
    return bool(each.is_repeated)


def union_name(oneof: Descriptor, options: ProtobufOptions) -> str:
    """What a oneof is called among the fields of its message."""
    return f"{oneof.name}_{oneof.index}" if options.index_for_unions else str(oneof.name)


def parameters(each: Descriptor, pool: DescriptorPool) -> dict[str, str]:
    """The parameters of a field in Confluent's `field_meta` option."""
    raw = each.GetOptions().SerializeToString()
    if not raw:
        return {}
    try:
        extension = pool.FindExtensionByName("confluent.field_meta")
    except KeyError:
        return {}
    options: Any = GetMessageClass(extension.containing_type).FromString(raw)
    return dict(options.Extensions[extension].params)


def small_type(each: Descriptor, pool: DescriptorPool) -> str | None:
    """`int8` or `int16`, where a field says that it holds one."""
    if _TYPES.get(each.type) != "int32":
        return None
    said = parameters(each, pool).get("connect.type")
    return said if said in SMALL else None


def scale(each: Descriptor, pool: DescriptorPool) -> int:
    """The places that a field of Confluent's Decimal says it has."""
    said = parameters(each, pool).get("scale", "")
    return int(said) if re.fullmatch(r"[+-]?\d{1,9}", said) else 0


def message_schema(
    message: Descriptor, pool: DescriptorPool, options: ProtobufOptions, version: int | None
) -> ConnectSchema:
    """The schema of a whole value. Raises `SchemaMistake`."""
    if options.wrapper_for_raw_primitives and message.full_name in WRAPPERS:
        return ConnectSchema(WRAPPERS[message.full_name], version=version)
    return _Schemas(pool, options).struct(message, version=version)


@dataclass(slots=True)
class _Schemas:
    """`seen`: full names of the messages that were written out so far."""

    pool: DescriptorPool
    options: ProtobufOptions
    seen: set[str] = field(default_factory=set)

    def struct(self, message: Descriptor, *, version: int | None = None) -> ConnectSchema:
        """A message as a struct, as a reference where it was there before."""
        name = self._name(message)
        if message.full_name in self.seen:
            return ConnectSchema("struct", name=name, reference=True)
        self.seen.add(message.full_name)
        fields: list[tuple[str, ConnectSchema]] = []
        for oneof in real_oneofs(message):
            members = tuple((each.name, self._field(each, in_oneof=True)) for each in oneof.fields)
            if self.options.flatten_unions:
                fields += members
            else:
                union = ConnectSchema("struct", True, f"{_SPACE}.Union.{self._name(oneof)}", fields=members)
                fields.append((union_name(oneof, self.options), union))
        fields += [(each.name, self._field(each)) for each in plain_fields(message)]
        return ConnectSchema("struct", name=name, version=version, fields=tuple(fields))

    def _name(self, named: Descriptor) -> str:
        return str(named.full_name if self.options.full_names else named.name)

    def _field(self, each: Descriptor, *, in_oneof: bool = False) -> ConnectSchema:
        base = self._type(each)
        optional = base.optional
        if is_repeated(each) and base.type != "map":
            base, optional = ConnectSchema("array", values=_with(base, optional=True)), True
        if in_oneof:
            optional = True
        elif self.options.optional_for_nullables:
            optional = optional or says_optional(each)
        elif not self.options.wrapper_for_nullables:
            optional = True
        return _with(base, optional=optional, parameters={**base.parameters, f"{_SPACE}.Tag": str(each.number)})

    def _type(self, each: Descriptor) -> ConnectSchema:
        if each.type == FieldDescriptor.TYPE_ENUM:
            return self._enum(each.enum_type)
        if each.type == FieldDescriptor.TYPE_MESSAGE:
            return _with(self._message(each), optional=True)
        if each.type not in _TYPES:
            msg = f"field `{each.full_name}` is a group, which Connect does not know"
            raise SchemaMistake(msg)
        small = small_type(each, self.pool)
        if small is not None:
            return ConnectSchema(small)
        named = _NAMED_TYPES.get(each.type)
        return ConnectSchema(_TYPES[each.type], parameters={f"{_SPACE}.Type": named} if named else {})

    def _enum(self, enum: Descriptor) -> ConnectSchema:
        symbols = {f"{_SPACE}.Enum.{each.name}": str(each.number) for each in enum.values}
        kind = "int32" if self.options.int_enums else "string"
        return ConnectSchema(kind, True, self._name(enum), parameters={f"{_SPACE}.Enum": enum.name, **symbols})

    def _message(self, each: Descriptor) -> ConnectSchema:
        full = each.message_type.full_name
        if full == DECIMAL_MESSAGE:
            said = {"scale": str(scale(each, self.pool))}
            precision = parameters(each, self.pool).get("precision", "")
            if re.fullmatch(r"[+-]?\d{1,9}", precision):
                said["connect.decimal.precision"] = str(int(precision))
            return ConnectSchema("bytes", name=DECIMAL, version=1, parameters=said)
        if full in LOGICAL:
            return LOGICAL[full]
        if full in WRAPPERS and self.options.unwraps:
            return ConnectSchema(WRAPPERS[full])
        return self._map(each.message_type) if is_map(each) else self.struct(each.message_type)

    def _map(self, entry: Descriptor) -> ConnectSchema:
        keys, values = (self._field(each) for each in entry.fields)
        if self.options.optional_map_keys and keys.type == "string":
            keys = _with(keys, optional=False)
        space, _, last = self._name(entry).rpartition(".")
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", last.removesuffix("Entry")).lower()
        return ConnectSchema("map", name=f"{space}.{name}" if space else name, keys=keys, values=values)


def _with(schema: ConnectSchema, *, optional: bool, parameters: dict[str, str] | None = None) -> ConnectSchema:
    return ConnectSchema(
        schema.type,
        optional,
        schema.name,
        schema.version,
        parameters=schema.parameters if parameters is None else parameters,
        fields=schema.fields,
        keys=schema.keys,
        values=schema.values,
        reference=schema.reference,
    )


def _proto(message: Descriptor) -> DescriptorProto:
    proto = DescriptorProto()
    message.CopyToProto(proto)
    return proto
