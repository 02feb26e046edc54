"""JSON values read by their Connect schema into the data that Avro takes: a function for each type, made once."""

from __future__ import annotations

import base64
import binascii
import struct
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from penstock.converters.connect_schema import DECIMAL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.converters.connect_schema import ConnectSchema

    Read = Callable[[Any], Any]

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_FLOAT = struct.Struct("<f")
_SHOWN = 60
_WHOLE_NUMBERS, _NUMBERS = tuple(_BITS), (*_BITS, "float", "double")


class JsonMistake(ValueError):  # noqa: N818 - the producer's, not ours
    """A value that does not fit its schema; `place`: where, from the inside to the outside."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place: list[str] = []

    def __str__(self) -> str:
        return f"`{'.'.join(reversed(self.place))}` {self.reason}" if self.place else f"it {self.reason}"


def member_reader(schema: ConnectSchema, read: Read) -> Read:
    """What reads a value that may be null or missing."""
    optional, default, kind = schema.optional, schema.default, schema.type
    if default is not None:
        default = _from_default(schema, default)

    def read_or_null(value: Any) -> Any:  # noqa: ANN401 - a JSON value
        if value is not None:
            return read(value)
        if default is not None or optional:
            return default
        msg = f"is null or missing, and the {kind} is required; see use.optional.for.nonrequired"
        raise JsonMistake(msg)

    return read_or_null


def plain_reader(schema: ConnectSchema) -> Read | None:
    """What reads values of a schema without parts; None for one with parts."""
    if schema.type == "bytes":
        return _decimal(schema.scale) if schema.name == DECIMAL else _bytes
    if schema.type in _BITS:
        return _whole(_BITS[schema.type])
    return {"boolean": _boolean, "string": _text, "float": _float, "double": _double}.get(schema.type)


def struct_reader(members: Sequence[tuple[str, str, Read]]) -> Read:
    """What reads objects: members are (name in the datum, name in JSON, reader); others are dropped."""

    def read(value: Any) -> Any:  # noqa: ANN401
        if type(value) is not dict:
            raise _misfit(value, "an object")
        get, made = value.get, {}
        for name, key, member in members:
            try:
                made[name] = member(get(key))
            except JsonMistake as mistake:
                mistake.place.append(key)
                raise
        return made

    return read


def array_reader(item: Read) -> Read:
    """What reads arrays."""

    def read(value: Any) -> Any:  # noqa: ANN401
        if type(value) is not list:
            raise _misfit(value, "an array")
        return [item(each) for each in value]

    return read


def map_reader(schema: ConnectSchema, key: Read, item: Read) -> Read:
    """What reads maps: objects where the keys are texts, else arrays of objects with `key` and `value`."""
    as_map = schema.avro_map

    def read(value: Any) -> Any:  # noqa: ANN401
        if as_map:
            if type(value) is not dict:
                raise _misfit(value, "an object")
            return {name: item(each) for name, each in value.items()}
        if type(value) is not list or not all(type(each) is dict and len(each) == 2 for each in value):  # noqa: PLR2004
            raise _misfit(value, "an array of objects with `key` and `value`")
        return [{"key": key(each.get("key")), "value": item(each.get("value"))} for each in value]

    return read


def union_reader(members: Sequence[tuple[str, ConnectSchema, Read]]) -> Read:
    """What reads values of one of several types: the first plain one that fits, or the object sharing most names."""

    def read(value: Any) -> Any:  # noqa: ANN401
        best, most = -1, 0
        for at, (_, schema, _) in enumerate(members):
            if _is_plain(schema, value):
                best = at
                break
            shared = _shared(schema, value)
            if shared > most:
                best, most = at, shared
        if best < 0:
            raise _misfit(value, "of one of the types of its union")
        return {name: member(value) if at == best else None for at, (name, _, member) in enumerate(members)}

    return read


def as_default(value: Any) -> Any:  # noqa: ANN401 - what a reader gave
    """A value as `ConnectSchema.default` has it: JSON, with bytes in base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {name: as_default(each) for name, each in value.items()}
    return [as_default(each) for each in value] if isinstance(value, list) else value


def _from_default(schema: ConnectSchema, value: Any) -> Any:  # noqa: ANN401
    if value is None:
        return None
    if schema.type == "bytes":
        return base64.b64decode(value)
    if schema.type == "struct":
        return {name: _from_default(each, value.get(name)) for name, each in schema.fields}
    if schema.type == "array" and schema.values is not None:
        return [_from_default(schema.values, each) for each in value]
    return value


def _is_plain(schema: ConnectSchema, value: Any) -> bool:  # noqa: ANN401
    kind = schema.type
    if kind in _NUMBERS:
        whole = type(value) is int
        return whole or (kind not in _WHOLE_NUMBERS and isinstance(value, (float, Decimal)))
    types: dict[str, tuple[type, ...]] = {"boolean": (bool,), "string": (str,), "array": (list,), "map": (dict, list)}
    return type(value) in types.get(kind, ())


def _shared(schema: ConnectSchema, value: Any) -> int:  # noqa: ANN401
    """How many names an object and a struct share, those inside of them counted in."""
    if schema.type != "struct" or type(value) is not dict:
        return 0
    return sum(1 + _shared(each, value[name]) for name, each in schema.fields if name in value)


def _boolean(value: Any) -> bool:  # noqa: ANN401
    if type(value) is not bool:
        raise _misfit(value, "true or false")
    return value


def _text(value: Any) -> str:  # noqa: ANN401
    if type(value) is not str:
        raise _misfit(value, "a text")
    return value


def _whole(bits: int) -> Read:
    half = 1 << (bits - 1)

    def read(value: Any) -> int:  # noqa: ANN401
        number = value
        if type(value) is not int:
            if not isinstance(value, (float, Decimal)) or value != value // 1:
                raise _misfit(value, f"a whole number of {bits} bits")
            number = int(value)
        if not -half <= number < half:
            raise _misfit(value, f"a whole number of {bits} bits")
        return int(number)

    return read


def _double(value: Any) -> float:  # noqa: ANN401
    if type(value) is float:
        return value
    if not isinstance(value, (int, Decimal)) or isinstance(value, bool):
        raise _misfit(value, "a number")
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _float(value: Any) -> float:  # noqa: ANN401
    number = _double(value)
    try:
        return float(_FLOAT.unpack(_FLOAT.pack(number))[0])
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _bytes(value: Any) -> bytes:  # noqa: ANN401
    if type(value) is not str:
        raise _misfit(value, "bytes in base64")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _misfit(value, "bytes in base64") from error


def _decimal(scale: int) -> Read:
    def read(value: Any) -> bytes:  # noqa: ANN401
        if isinstance(value, str):
            return _bytes(value)
        if not isinstance(value, (int, float, Decimal)) or isinstance(value, bool):
            raise _misfit(value, "a decimal")
        shifted = Decimal(str(value)).scaleb(scale)
        number = int(shifted)
        if number != shifted:
            raise _misfit(value, f"a decimal of {scale} places")
        return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)

    return read


def _misfit(value: object, wanted: str) -> JsonMistake:
    text = str(value)
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return JsonMistake(f"must be {wanted}, got `{shown}`")
