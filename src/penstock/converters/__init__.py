"""The family of converters: a record's bytes to what a format takes. docs/formats.md has the table of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from penstock.converters.avro import AvroConverter
from penstock.converters.bytes import BytesConverter
from penstock.converters.json import JsonConverter
from penstock.converters.json_envelope import JsonEnvelopeConverter
from penstock.converters.json_schema import JsonSchemaOptions, JsonSchemaSource
from penstock.converters.protobuf import ProtobufSource
from penstock.converters.protobuf_schema import ProtobufOptions
from penstock.converters.string import StringConverter
from penstock.converters.structured import StructuredConverter
from penstock.errors import ConfigError
from penstock.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.converters.base import Converter, Kind
    from penstock.converters.connect_json import DecimalFormat
    from penstock.converters.structured import Source

KINDS: dict[str, tuple[Kind, ...]] = {
    "avro": ("avro", "json"),
    "protobuf": ("avro", "json"),
    "json_schema": ("avro", "json"),
    "json": ("json",),
    "json_envelope": ("avro", "json"),
    "string": ("text", "avro", "json"),
    "bytes": ("bytes", "avro", "json"),
}
_WORDS = {"json": "`json` with schemas.enable=false", "json_envelope": "`json` with schemas.enable=true"}


@dataclass(frozen=True, slots=True)
class ConverterOptions:
    """What converters take from properties that are not their own.

    `separator`: the format's, for `text` and `bytes`. `decimals`: `json.decimal.format`; `optional_map_keys`:
    `allow.optional.map.keys`.
    """

    separator: bytes = b""
    connect_meta_data: bool = True
    decimals: DecimalFormat = "BASE64"
    optional_map_keys: bool = False
    part: Literal["value", "key"] = "value"


def resolve(name: str, options: Mapping[str, str]) -> str:
    """The converter that a short name stands for: JSON has schemas unless it is told otherwise, as in Connect."""
    has_schemas = options.get("schemas.enable", "true").strip().lower() != "false"
    return "json_envelope" if name == "json" and has_schemas else name


def negotiate(converter: str, file_format: str, accepts: tuple[Kind, ...], where: str = "value.converter") -> Kind:
    """The kind that the converter can give and the format likes best.

    Raises:
        ConfigError: they have none in common.
    """
    common = [kind for kind in accepts if kind in KINDS[converter]]
    if not common:
        able = ", ".join(_WORDS.get(name, f"`{name}`") for name, kinds in KINDS.items() if set(kinds) & set(accepts))
        msg = (
            f"{where} {_WORDS.get(converter, f'`{converter}`')} cannot be written with format.class `{file_format}`; "
            f"this format takes the converters {able}"
        )
        raise ConfigError([msg])
    return common[0]


def build(name: str, kind: Kind, own: Mapping[str, str], options: ConverterOptions) -> Converter:
    """The converter of a name that `resolve` gave. Raises `ConfigError` where an option is missing.

    `own`: what stands behind `value.converter.` in the properties, or `key.converter.`.
    """
    if name == "avro":
        registry = Registry.of(own, f"{options.part}.converter")
        return AvroConverter(kind, registry, options.connect_meta_data, options.decimals, options.part)
    if name in ("protobuf", "json_schema"):
        return _structured(name, kind, own, options)
    if name == "json_envelope":
        content = own.get("schema.content", "")
        try:
            return JsonEnvelopeConverter(
                kind, options.connect_meta_data, options.decimals, options.optional_map_keys, content
            )
        except ValueError as error:
            raise ConfigError([f"{options.part}.converter.schema.content {error}"]) from error
    if name == "json":
        return JsonConverter()
    if name == "string":
        return StringConverter(kind, options.separator)
    return BytesConverter(kind, options.separator)


def _structured(name: str, kind: Kind, own: Mapping[str, str], options: ConverterOptions) -> Converter:
    """Protobuf or JSON Schema. Where lines of JSON are wanted, no names of types are seen: they need only differ."""
    registry, unseen = Registry.of(own, f"{options.part}.converter"), kind == "json"
    source: Source
    if name == "protobuf":
        shape = ProtobufOptions.of(own, optional_map_keys=options.optional_map_keys)
        source = ProtobufSource(shape, unique_names=unseen)
    else:
        source = JsonSchemaSource(JsonSchemaOptions.of(own), unique_names=unseen)
    return StructuredConverter(kind, registry, source, options.connect_meta_data, options.decimals, options.part)
