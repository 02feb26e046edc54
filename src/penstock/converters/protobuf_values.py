"""Protobuf messages as the data that Avro takes under their Connect schema: a function for each type, made once."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import FieldDescriptor

from penstock.converters.protobuf_schema import (
    DECIMAL_MESSAGE,
    WRAPPERS,
    is_map,
    is_repeated,
    plain_fields,
    real_oneofs,
    says_optional,
    scale,
    small_type,
    union_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from google.protobuf.descriptor_pool import DescriptorPool

    from penstock.converters.protobuf_schema import Descriptor, ProtobufOptions

    Read = Callable[[Any], Any]
    Pairs = Iterable[tuple[Any, Any]]

_UNSIGNED = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)
_SIGN, _ROUND = 1 << 63, 1 << 64
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
_NANOS, _NANOS_PER_MS = 1_000_000_000, 1_000_000
_EPOCH = dt.date(1970, 1, 1).toordinal()


class MessageMistake(ValueError):  # noqa: N818 - the producer's, not ours
    """A message that holds what Connect cannot represent."""


def message_reader(message: Descriptor, pool: DescriptorPool, options: ProtobufOptions) -> Read:
    """What reads messages of a type. It raises `MessageMistake`."""
    readers = _Readers(pool, options)
    if options.wrapper_for_raw_primitives and message.full_name in WRAPPERS:
        return _wrapped(message)
    return readers.struct(message)


@dataclass(slots=True)
class _Readers:
    """`made`: full name -> reader; one for a type within itself is there before it is complete."""

    pool: DescriptorPool
    options: ProtobufOptions
    made: dict[str, Read] = field(default_factory=dict)

    def struct(self, message: Descriptor) -> Read:
        """A message as a dict, its members in the order of the schema."""
        if message.full_name in self.made:
            return self.made[message.full_name]
        members: list[tuple[str, Read]] = []

        def read(value: Any) -> dict[str, Any]:  # noqa: ANN401 - a message
            return {name: get(value) for name, get in members}

        self.made[message.full_name] = read
        for oneof in real_oneofs(message):
            chosen = [(each.name, self._if_set(each)) for each in oneof.fields]
            if self.options.flatten_unions:
                members += chosen
            else:
                members.append((union_name(oneof, self.options), _union(oneof.name, chosen)))
        members += [(each.name, self._member(each)) for each in plain_fields(message)]
        return read

    def _member(self, each: Descriptor) -> Read:
        optional = says_optional(each) and (self.options.optional_for_proto2 or _is_proto3_optional(each))
        always = is_repeated(each) or (each.type != FieldDescriptor.TYPE_MESSAGE and not optional)
        return self._always(each) if always or self.options.struct_for_nulls else self._if_set(each)

    def _if_set(self, each: Descriptor) -> Read:
        name, get = each.name, self._always(each)
        return lambda message: get(message) if message.HasField(name) else None

    def _always(self, each: Descriptor) -> Read:
        get = attrgetter(each.name)
        if is_map(each):
            return self._map(each, get)
        read = self._value(each)
        if is_repeated(each):
            if read is None:
                return lambda message: list(get(message))
            item = read
            return lambda message: [item(one) for one in get(message)]
        if read is None:
            return get
        value = read
        return lambda message: value(get(message))

    def _map(self, each: Descriptor, get: Read) -> Read:
        """Sorted by key: the library keeps no order, and Java's has no meaning."""
        keys, values = each.message_type.fields
        key, value = self._value(keys) or _same, self._value(values) or _same
        pairs = _entries if each.message_type.GetOptions().map_entry else _declared_entries
        # As in AvroData: a map with texts for keys is one in Avro only where they cannot be null.
        options = self.options
        nullable = says_optional(keys) if options.optional_for_nullables else not options.wrapper_for_nullables
        if keys.type == FieldDescriptor.TYPE_STRING and (options.optional_map_keys or not nullable):
            return lambda message: {key(name): value(one) for name, one in pairs(get(message))}
        return lambda message: [{"key": key(name), "value": value(one)} for name, one in pairs(get(message))]

    def _value(self, each: Descriptor) -> Read | None:
        """What makes a single value; None where nothing has to."""
        if each.type == FieldDescriptor.TYPE_MESSAGE:
            return self._message(each)
        if each.type == FieldDescriptor.TYPE_ENUM:
            return None if self.options.int_enums else _symbol(each.enum_type)
        if each.type == FieldDescriptor.TYPE_STRING:
            # Texts of proto2 that are no UTF-8 come as bytes.
            return lambda value: value if type(value) is str else value.decode("utf-8", "replace")
        if each.type in _UNSIGNED:
            return _signed
        small = small_type(each, self.pool)
        return None if small is None else _narrowed(8 if small == "int8" else 16)

    def _message(self, each: Descriptor) -> Read:
        full = each.message_type.full_name
        if full == DECIMAL_MESSAGE:
            return _decimal(each.full_name, scale(each, self.pool))
        if full in _LOGICAL:
            return _LOGICAL[full]
        if full in WRAPPERS and self.options.unwraps:
            return _wrapped(each.message_type)
        return self.struct(each.message_type)


def _same(value: Any) -> Any:  # noqa: ANN401 - any value
    return value


def _is_proto3_optional(each: Descriptor) -> bool:
    return each.containing_oneof is not None


def _union(name: str, members: list[tuple[str, Read]]) -> Read:
    return lambda message: None if message.WhichOneof(name) is None else {one: get(message) for one, get in members}


def _entries(held: Any) -> Pairs:  # noqa: ANN401 - a container of the library
    return [(key, held[key]) for key in sorted(held)]


def _declared_entries(held: Any) -> Pairs:  # noqa: ANN401 - a container of the library
    last = {entry.key: entry.value for entry in held}
    return sorted(last.items(), key=lambda pair: pair[0])


def _symbol(enum: Descriptor) -> Read:
    names: dict[int, str] = {}
    for each in enum.values:
        names.setdefault(each.number, each.name)

    def read(number: int) -> str:
        found = names.get(number)
        return f"UNKNOWN_ENUM_VALUE_{enum.name}_{number}" if found is None else found

    return read


def _signed(number: int) -> int:
    """As a Java long holds it."""
    return number if number < _SIGN else number - _ROUND


def _narrowed(bits: int) -> Read:
    half, whole = 1 << (bits - 1), 1 << bits
    return lambda number: (number + half) % whole - half


def _wrapped(message: Descriptor) -> Read:
    return (lambda value: _signed(value.value)) if message.name == "UInt64Value" else attrgetter("value")


def _timestamp(value: Any) -> int:  # noqa: ANN401 - a message
    if not (_FIRST_SECOND <= value.seconds <= _LAST_SECOND and 0 <= value.nanos < _NANOS):
        msg = f"a Timestamp of {value.seconds} s and {value.nanos} ns is no time from year 1 to 9999"
        raise MessageMistake(msg)
    return int(value.seconds) * 1000 + int(value.nanos) // _NANOS_PER_MS


def _date(value: Any) -> int:  # noqa: ANN401 - a message
    try:
        return dt.date(value.year, value.month, value.day).toordinal() - _EPOCH
    except (ValueError, OverflowError):
        msg = f"a Date of year {value.year}, month {value.month}, day {value.day} is no day"
        raise MessageMistake(msg) from None


def _time(value: Any) -> int:  # noqa: ANN401 - a message
    h, m, s = value.hours, value.minutes, value.seconds
    if not (0 <= h < 24 and 0 <= m < 60 and 0 <= s < 60 and 0 <= value.nanos < _NANOS):  # noqa: PLR2004 - a clock's
        msg = f"a TimeOfDay of {h}:{m}:{s} and {value.nanos} ns is no time of a day"
        raise MessageMistake(msg)
    return int(((h * 60 + m) * 60 + s) * 1000 + value.nanos // _NANOS_PER_MS)


def _decimal(name: str, places: int) -> Read:
    def read(value: Any) -> bytes:  # noqa: ANN401 - a message
        if value.scale != places:
            msg = f"a Decimal with scale {value.scale} is in field `{name}`, whose schema says {places}"
            raise MessageMistake(msg)
        if not value.value:
            msg = f"a Decimal without a value is in field `{name}`"
            raise MessageMistake(msg)
        number = int.from_bytes(value.value, "big", signed=True)
        if value.precision and len(str(abs(number))) > value.precision:
            msg = f"a Decimal of more than its {value.precision} digits is in field `{name}`"
            raise MessageMistake(msg)
        return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)

    return read


_LOGICAL: dict[str, Read] = {
    "google.type.Date": _date,
    "google.type.TimeOfDay": _time,
    "google.protobuf.Timestamp": _timestamp,
}
