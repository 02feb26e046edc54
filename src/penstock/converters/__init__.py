"""The family of converters: a record's bytes to what a format takes. docs/formats.md has the table of pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from penstock.converters.avro import AvroConverter
from penstock.converters.bytes import BytesConverter
from penstock.converters.json import JsonConverter
from penstock.converters.string import StringConverter
from penstock.errors import ConfigError
from penstock.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.converters.base import Converter, Kind

KINDS: dict[str, tuple[Kind, ...]] = {
    "avro": ("avro", "json"),
    "json": ("json",),
    "string": ("text", "avro", "json"),
    "bytes": ("bytes", "avro", "json"),
}


def negotiate(converter: str, file_format: str, accepts: tuple[Kind, ...], where: str = "value.converter") -> Kind:
    """The kind that the converter can give and the format likes best.

    Raises:
        ConfigError: they have none in common.
    """
    common = [kind for kind in accepts if kind in KINDS[converter]]
    if not common:
        able = ", ".join(f"`{name}`" for name, kinds in KINDS.items() if set(kinds) & set(accepts))
        msg = (
            f"{where} `{converter}` cannot be written with format.class `{file_format}`; "
            f"this format takes the converters {able}"
        )
        raise ConfigError([msg])
    return common[0]


def build(
    name: str,
    kind: Kind,
    options: Mapping[str, str],
    *,
    separator: bytes,
    connect_meta_data: bool,
    part: Literal["value", "key"] = "value",
) -> Converter:
    """The converter of that short name.

    `options`: what stands behind `value.converter.` in the properties. `separator`: the format's, for `text` and
    `bytes`. Raises `ConfigError` where an option is missing.
    """
    if name == "avro":
        return AvroConverter(
            kind, Registry.of(options, f"{part}.converter"), connect_meta_data=connect_meta_data, part=part
        )
    if name == "json":
        return JsonConverter()
    if name == "string":
        return StringConverter(kind, separator)
    return BytesConverter(kind, separator)
