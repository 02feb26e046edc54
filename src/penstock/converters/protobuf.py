"""Protobuf in Confluent's wire format: a zero byte, the schema's id, which message of the schema it is, the message."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from penstock.converters.connect_schema import SchemaMistake
from penstock.converters.protobuf_files import protobuf_file
from penstock.converters.protobuf_program import program_of
from penstock.converters.protobuf_schema import message_schema
from penstock.converters.protobuf_values import MessageMistake, message_reader
from penstock.converters.structured import Typed, ValueMistake

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from penstock.converters.protobuf_files import ProtobufFile
    from penstock.converters.protobuf_schema import Descriptor, ProtobufOptions
    from penstock.converters.structured import Opened
    from penstock.registry import Registered

_FIRST = (0,)
_DEEPEST = 64
_LONGEST = 5  # bytes of an index


@dataclass(frozen=True, slots=True)
class ProtobufSource:
    """`unique_names`: types are called by their full names, where no file shows what they are called."""

    options: ProtobufOptions
    unique_names: bool
    kind: str = "PROTOBUF"
    word: str = "Protobuf"

    def open(self, registered: Registered) -> Opened:
        """Compile a schema with what it imports."""
        return _File(self, protobuf_file(registered.text, registered.named), registered.version)


@dataclass(frozen=True, slots=True)
class _File:
    """A registered schema: its file, whose messages are counted from 0 on each level."""

    source: ProtobufSource
    compiled: ProtobufFile
    version: int | None

    @property
    def first(self) -> tuple[int, Hashable]:
        """A single 0 byte stands for the first message."""
        return 0, _FIRST

    def split(self, value: bytes) -> tuple[Hashable, bytes]:
        """The indexes that lead to the message's type; a single 0 byte stands for the first one."""
        if value[:1] == b"\x00":
            return _FIRST, value[1:]
        count, at = _index(value, 0)
        if not 0 < count <= _DEEPEST:
            msg = f"has {count} message indexes behind its schema id"
            raise ValueMistake(msg)
        indexes = []
        for _ in range(count):
            index, at = _index(value, at)
            indexes.append(index)
        return tuple(indexes), value[at:]

    def typed(self, which: Hashable) -> Typed:
        """The message at these indexes."""
        message = self._message(which)
        options = self.source.options
        name = message.full_name if options.full_names else message.name
        if self.source.unique_names:
            options = replace(options, full_names=True)
        pool = self.compiled.pool
        schema = message_schema(message, pool, options, self.version)
        read = message_reader(message, pool, options)
        body = _reader(message, read, requires=self.compiled.requires)
        return Typed(schema, name, body, program=program_of(message, schema, pool, options))

    def _message(self, which: Any) -> Descriptor:  # noqa: ANN401 - what `split` gave
        found: Any = None
        level = list(self.compiled.file.message_types_by_name.values())
        if not level:
            msg = "it has no message"
            raise SchemaMistake(msg)
        for index in which:
            if not 0 <= index < len(level):
                msg = f"is of message {list(which)}, which its schema does not have"
                raise ValueMistake(msg)
            found = level[index]
            level = [each for each in found.nested_types if not each.GetOptions().map_entry]
        return found


def _index(value: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint and the place behind it."""
    number = 0
    for place in range(_LONGEST):
        if at + place >= len(value):
            break
        byte = value[at + place]
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:  # noqa: PLR2004 - the last byte
            return (number >> 1) ^ -(number & 1), at + place + 1
    msg = "ends within the message indexes behind its schema id"
    raise ValueMistake(msg)


def _reader(message: Descriptor, read: Callable[[Any], Any], *, requires: bool) -> Callable[[bytes], Any]:
    parse = GetMessageClass(message).FromString

    def body(data: bytes) -> Any:  # noqa: ANN401 - Avro data
        try:
            made = parse(data)
            if requires and not made.IsInitialized():
                msg = f"lacks required fields: {', '.join(made.FindInitializationErrors())}"
                raise ValueMistake(msg)
            return read(made)
        except DecodeError as error:
            msg = f"is no message of the type that it names ({error})"
            raise ValueMistake(msg) from error
        except MessageMistake as mistake:
            msg = f"cannot be represented: {mistake}"
            raise ValueMistake(msg) from mistake
        except RecursionError as error:
            msg = "is nested too deeply"
            raise ValueMistake(msg) from error

    return body
