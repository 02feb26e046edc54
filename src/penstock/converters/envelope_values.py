"""Payloads of envelopes, read by their schema: a function for each, made once, gives what fastavro or msgspec takes.

Where Jackson would read a text as 0 and a number as no text, the payload is refused instead: nothing is written that
the producer did not send.
"""

from __future__ import annotations

import base64
import binascii
import struct
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from penstock.converters.connect_json import numeric
from penstock.converters.connect_schema import DECIMAL
from penstock.converters.java_numbers import double_text, float_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.converters.connect_json import DecimalFormat
    from penstock.converters.connect_schema import ConnectSchema

    Read = Callable[[Any], Any]

Target = Literal["avro", "json"]

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_SHOWN = 60
_EXACT = Context(prec=100_000)
_FLOAT = struct.Struct("<f")


class PayloadMistake(ValueError):  # noqa: N818 - the producer's, not ours
    """A payload that does not fit its schema."""


def reader(schema: ConnectSchema, target: Target, decimals: DecimalFormat = "BASE64", place: str = "payload") -> Read:
    """Reads a JSON value of a schema into what `target` needs.

    `avro`: what fastavro writes. `json`: what msgspec prints as Connect does. The function raises `PayloadMistake`.
    """
    read = _value_reader(schema, target, decimals, place)
    default, optional, name = schema.default, schema.optional, schema.type
    if default is not None:
        read(default)  # a default that does not fit is a mistake of the schema

    def read_or_null(value: Any) -> Any:  # noqa: ANN401 - a JSON value
        if value is not None:
            return read(value)
        if default is not None:
            return read(default)
        if optional:
            return None
        msg = f"{place} is null or missing, and the {name} is required"
        raise PayloadMistake(msg)

    return read_or_null


def _value_reader(schema: ConnectSchema, target: Target, decimals: DecimalFormat, place: str) -> Read:
    if schema.type in ("struct", "array", "map"):
        return {"struct": _struct, "array": _array, "map": _map}[schema.type](schema, target, decimals, place)
    if schema.name == DECIMAL and schema.type == "bytes":
        return _decimal(schema.scale, target, decimals, place)
    if schema.type in _BITS:
        return _whole(_BITS[schema.type], place)
    if schema.type in ("float", "double"):
        return _real(schema.type, target, place)
    return {"boolean": _boolean, "string": _text, "bytes": _bytes_for(target)}[schema.type](place)


def _struct(schema: ConnectSchema, target: Target, decimals: DecimalFormat, place: str) -> Read:
    fields = [(name, reader(each, target, decimals, f"{place}.{name}")) for name, each in schema.fields]

    def read(value: Any) -> Any:  # noqa: ANN401
        if type(value) is not dict:
            raise _misfit(place, "an object", value)
        get = value.get
        return {name: each(get(name)) for name, each in fields}

    return read


def _array(schema: ConnectSchema, target: Target, decimals: DecimalFormat, place: str) -> Read:
    if schema.values is None:
        raise AssertionError
    item = reader(schema.values, target, decimals, f"{place}[]")

    def read(value: Any) -> Any:  # noqa: ANN401
        if type(value) is not list:
            raise _misfit(place, "an array", value)
        return [item(each) for each in value]

    return read


def _map(schema: ConnectSchema, target: Target, decimals: DecimalFormat, place: str) -> Read:
    if schema.keys is None or schema.values is None:
        raise AssertionError
    key = reader(schema.keys, target, decimals, f"{place}{{key}}")
    item = reader(schema.values, target, decimals, f"{place}{{}}")
    text_keys = schema.text_keys
    as_object = schema.avro_map if target == "avro" else text_keys

    def read(value: Any) -> Any:  # noqa: ANN401
        if type(value) is not (dict if text_keys else list):
            raise _misfit(place, "an object" if text_keys else "an array of pairs", value)
        pairs: Any = value.items() if type(value) is dict else value
        if not text_keys and not all(type(pair) is list and len(pair) == 2 for pair in pairs):  # noqa: PLR2004
            raise _misfit(place, "an array of pairs", value)
        if as_object:
            return {key(name): item(each) for name, each in pairs}
        if target == "avro":
            return [{"key": key(name), "value": item(each)} for name, each in pairs]
        return [[key(name), item(each)] for name, each in pairs]

    return read


def _whole(bits: int, place: str) -> Read:
    lowest, highest = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def read(value: Any) -> Any:  # noqa: ANN401
        if type(value) is not int:
            if not isinstance(value, (float, Decimal)) or value != int(value):
                raise _misfit(place, f"a whole number of {bits} bits", value)
            value = int(value)
        if not lowest <= value <= highest:
            raise _misfit(place, f"a whole number of {bits} bits", value)
        return value

    return read


def _real(kind: str, target: Target, place: str) -> Read:
    text = float_text if kind == "float" else double_text
    show = (lambda number: msgspec.Raw(text(number).encode())) if target == "json" else float

    def read(value: Any) -> Any:  # noqa: ANN401
        if type(value) is not float:
            number = isinstance(value, (int, Decimal)) and not isinstance(value, bool)
            if not number and value not in ("NaN", "Infinity", "-Infinity"):
                raise _misfit(place, "a number", value)
            value = float(value)
        return show(_narrowed(value) if kind == "float" else value)

    return read


def _narrowed(number: float) -> float:
    """As four bytes hold it; infinite where they cannot."""
    try:
        return float(_FLOAT.unpack(_FLOAT.pack(number))[0])
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _decimal(scale: int, target: Target, decimals: DecimalFormat, place: str) -> Read:
    def read(value: Any) -> Any:  # noqa: ANN401
        if isinstance(value, str):
            unscaled = int.from_bytes(_decoded(value, place), "big", signed=True)
        elif isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
            shifted = Decimal(str(value)).scaleb(scale, _EXACT)
            unscaled = int(shifted)
            if unscaled != shifted:
                raise _misfit(place, f"a decimal of {scale} places", value)
        else:
            raise _misfit(place, "a decimal", value)
        if target == "avro":
            return _twos_complement(unscaled)
        return numeric(unscaled, scale) if decimals == "NUMERIC" else _base64(_twos_complement(unscaled))

    return read


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _twos_complement(number: int) -> bytes:
    """Java's `BigInteger.toByteArray`: in as few bytes as hold it."""
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def _boolean(place: str) -> Read:
    def read(value: Any) -> Any:  # noqa: ANN401
        if type(value) is not bool:
            raise _misfit(place, "true or false", value)
        return value

    return read


def _text(place: str) -> Read:
    def read(value: Any) -> Any:  # noqa: ANN401
        if type(value) is not str:
            raise _misfit(place, "a text", value)
        return value

    return read


def _bytes_for(target: Target) -> Callable[[str], Read]:
    def of(place: str) -> Read:
        def read(value: Any) -> Any:  # noqa: ANN401
            if type(value) is not str:
                raise _misfit(place, "bytes in base64", value)
            data = _decoded(value, place)
            return data if target == "avro" else _base64(data)

        return read

    return of


def _decoded(value: str, place: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _misfit(place, "bytes in base64", value) from error


def _misfit(place: str, wanted: str, value: object) -> PayloadMistake:
    text = str(value)
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return PayloadMistake(f"{place} must be {wanted}, got `{shown}`")
