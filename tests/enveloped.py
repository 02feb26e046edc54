"""Values of `json` with schemas: envelopes of `schema` and `payload`, and the converters that read them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from penstock.converters import ConverterOptions, build

if TYPE_CHECKING:
    from penstock.converters.base import Converter

CONNECT = "org.apache.kafka.connect.data"
DECIMAL = {"type": "bytes", "name": f"{CONNECT}.Decimal", "version": 1, "parameters": {"scale": "2"}}
COLOUR = {
    "type": "string",
    "name": "n.Colour",
    "parameters": {
        "io.confluent.connect.avro.Enum": "n.Colour",
        "io.confluent.connect.avro.Enum.RED": "RED",
        "io.confluent.connect.avro.Enum.BLUE": "BLUE",
    },
}


def envelope(schema: Any, payload: Any) -> bytes:
    """A value as Connect's JsonConverter writes it."""
    return json.dumps({"schema": schema, "payload": payload}).encode()


def struct(*fields: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A schema with these fields in this order."""
    return {"type": "struct", "fields": [{"field": name, **schema} for name, schema in fields], **more}


def converter(kind: str = "json", **more: Any) -> Converter:
    """From envelopes to `kind`; with all meta data unless `meta` says otherwise."""
    return build("json_envelope", kind, {}, ConverterOptions(connect_meta_data=more.pop("meta", True), **more))
