"""A line of input becomes the key and value bytes of a record: pure but for the registry behind an Avro encoder."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.cli.avro_json import AvroSchema

Format = Literal["avro", "json", "string", "bytes"]
Binary = Literal["raw", "hex", "base64"]
Encode = "Callable[[bytes], bytes | None]"


@dataclass(frozen=True, slots=True)
class LineRules:
    """How a line splits into key and value. `separator`: None when lines hold values only."""

    separator: bytes | None = None
    null_marker: bytes | None = None

    def split(self, line: bytes) -> tuple[bytes | None, bytes | None]:
        """Key text and value text; None is null. Raises ValueError when the separator is not there."""
        if self.separator is None:
            return None, self._text(line)
        key, found, value = line.partition(self.separator)
        if not found:
            msg = f"has no key: `{self.separator.decode(errors='replace')}` is not in it"
            raise ValueError(msg)
        return self._text(key), self._text(value)

    def _text(self, text: bytes) -> bytes | None:
        return None if text == self.null_marker else text


def string(text: bytes) -> bytes:
    """UTF-8 as it is. Raises ValueError if it is not UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        msg = f"is not UTF-8 (byte {error.start + 1}); use the format bytes"
        raise ValueError(msg) from None
    return text


def json_text(text: bytes) -> bytes:
    """JSON as it is. Raises ValueError if it is not one JSON value."""
    parse_json(text)
    return text


def parse_json(text: bytes) -> object:
    """The JSON value of a line. Raises ValueError with what is wrong and where."""
    try:
        return json.loads(string(text))
    except json.JSONDecodeError as error:
        msg = f"is not valid JSON: {error.msg} at character {error.pos + 1}"
        raise ValueError(msg) from None
    except RecursionError:
        msg = "is not valid JSON: nested too deeply"
        raise ValueError(msg) from None


def raw(text: bytes) -> bytes:
    """Any bytes but the end of the line."""
    return text


def hexadecimal(text: bytes) -> bytes:
    """Two hex digits per byte, white space between bytes allowed. Raises ValueError."""
    try:
        return bytes.fromhex(text.decode("ascii"))
    except ValueError:
        msg = "is not hexadecimal: two digits of 0-9, a-f per byte"
        raise ValueError(msg) from None


def base64_text(text: bytes) -> bytes:
    """Standard base64. Raises ValueError."""
    try:
        return base64.b64decode(text.strip(), validate=True)
    except binascii.Error:
        msg = "is not base64"
        raise ValueError(msg) from None


BINARY: dict[Binary, Callable[[bytes], bytes]] = {"raw": raw, "hex": hexadecimal, "base64": base64_text}


def avro(schema: AvroSchema, write: Callable[[object], bytes | None]) -> Callable[[bytes], bytes | None]:
    """An encoder of JSON lines by `schema`; `write` frames and writes the Avro value."""

    def encode(text: bytes) -> bytes | None:
        return write(schema.read(parse_json(text)))

    return encode
