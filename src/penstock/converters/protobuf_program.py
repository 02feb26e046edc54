"""A Protobuf type as the tables by which the compiled walk writes its messages as Avro data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from penstock.converters import protobuf_walk as walk
from penstock.converters import protobuf_wire as wire
from penstock.converters.protobuf_schema import (
    DECIMAL_MESSAGE,
    LOGICAL,
    WRAPPERS,
    is_map,
    is_repeated,
    plain_fields,
    real_oneofs,
    small_type,
)

if TYPE_CHECKING:
    from google.protobuf.descriptor_pool import DescriptorPool
    from numpy.typing import NDArray

    from penstock.converters.connect_schema import ConnectSchema
    from penstock.converters.protobuf_schema import Descriptor, ProtobufOptions

    Bytes = NDArray[np.uint8]
    Longs = NDArray[np.int64]

_CONVERSIONS = {
    FieldDescriptor.TYPE_INT32: wire.INT32,
    FieldDescriptor.TYPE_UINT32: wire.UINT32,
    FieldDescriptor.TYPE_INT64: wire.INT64,
    FieldDescriptor.TYPE_UINT64: wire.INT64,
    FieldDescriptor.TYPE_SINT32: wire.SINT32,
    FieldDescriptor.TYPE_SINT64: wire.SINT64,
    FieldDescriptor.TYPE_BOOL: wire.BOOL,
    FieldDescriptor.TYPE_ENUM: wire.ENUM,
    FieldDescriptor.TYPE_FIXED32: wire.FIXED32,
    FieldDescriptor.TYPE_SFIXED32: wire.SFIXED32,
    FieldDescriptor.TYPE_FIXED64: wire.FIXED64,
    FieldDescriptor.TYPE_SFIXED64: wire.FIXED64,
    FieldDescriptor.TYPE_FLOAT: wire.FLOAT,
    FieldDescriptor.TYPE_DOUBLE: wire.DOUBLE,
    FieldDescriptor.TYPE_STRING: wire.TEXT,
    FieldDescriptor.TYPE_BYTES: wire.BYTES,
}
_TIMESTAMP = "google.protobuf.Timestamp"
_BYTES_PER_ROW = 64


@dataclass(frozen=True, slots=True)
class Program:
    """The tables of one type."""

    tables: tuple[Longs, Longs, Longs]
    symbols: tuple[Longs, Bytes]

    def run(self, data: Bytes, spans: Longs) -> tuple[Bytes, Longs, Longs]:
        """(Avro data, where each row's end, its state) of the messages `data[spans[i, 0]:spans[i, 1]]`."""
        ends, states = np.zeros(len(spans), dtype=np.int64), np.zeros(len(spans), dtype=np.int64)
        # An array that must not be written is another type to numba, compiled anew.
        data = data if data.flags.writeable else data.copy()
        work = walk.room()
        size = int((spans[:, 1] - spans[:, 0]).sum()) * 2 + len(spans) * _BYTES_PER_ROW
        out, row = np.empty(size, dtype=np.uint8), 0
        while True:
            row = walk.transcode(data, spans, self.tables, self.symbols, work, (out, ends, states, row))
            if row == len(spans):
                return out[: int(ends[-1]) if row else 0], ends, states
            larger = np.empty(2 * len(out) + _BYTES_PER_ROW, dtype=np.uint8)
            larger[: len(out)] = out
            out = larger


def program_of(
    message: Descriptor, schema: ConnectSchema, pool: DescriptorPool, options: ProtobufOptions
) -> Program | None:
    """The program for messages of a type, whose Connect schema is `schema`; None where the walk does not take them."""
    if schema.type != "struct" or options.flatten_unions or options.struct_for_nulls or not _takes(message):
        return None
    made = _Programs(pool, options)
    made.struct(message, schema)
    return made.tables()


def _takes(message: Descriptor) -> bool:
    """Whether a message is of proto3 and of a size that the walk's tables hold."""
    file = FileDescriptorProto()
    message.file.CopyToProto(file)
    numbers = [each.number for each in message.fields]
    return file.syntax == "proto3" and len(numbers) <= walk.MOST_FIELDS and max(numbers, default=0) < walk.MOST_NUMBER


@dataclass(slots=True)
class _Programs:
    """`ops`: a list for each type; `known`: full name -> type; `names`, `texts`: of enums."""

    pool: DescriptorPool
    options: ProtobufOptions
    ops: list[list[list[int]]] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)
    names: list[tuple[int, int, int]] = field(default_factory=list)
    texts: bytearray = field(default_factory=bytearray)

    def struct(self, message: Descriptor, schema: ConnectSchema) -> int:
        """The number of a type; its ops stand in the order of the schema's fields."""
        if message.full_name in self.known:
            return self.known[message.full_name]
        kind = self.known[message.full_name] = len(self.ops)
        ops: list[list[int]] = []
        self.ops.append(ops)
        slots = {each.number: at for at, each in enumerate(message.fields)}
        unions = real_oneofs(message)
        for oneof, (_, union) in zip(unions, schema.fields, strict=False):
            ops.append(_row(OP=walk.UNION, CHILD=len(union.fields)))
            for each, (_, member) in zip(oneof.fields, union.fields, strict=True):
                ops.append(self._op(each, member, slots[each.number], nulls=True))
        for each, (_, member) in zip(plain_fields(message), schema.fields[len(unions) :], strict=True):
            singular_message = each.type == FieldDescriptor.TYPE_MESSAGE and not is_repeated(each)
            nulls = singular_message or (each.has_presence and not is_repeated(each))
            ops.append(self._op(each, member, slots[each.number], nulls=nulls))
        return kind

    def _op(self, each: Descriptor, schema: ConnectSchema, slot: int, *, nulls: bool) -> list[int]:
        common = {"FIELD": each.number, "SLOT": slot, "BRANCH": int(schema.optional), "NULLS": int(nulls)}
        inner = each.message_type
        if (
            is_map(each)
            or small_type(each, self.pool)
            or each.type not in (*_CONVERSIONS, FieldDescriptor.TYPE_MESSAGE)
        ):
            return _row(OP=walk.OTHER, **common)
        item = schema.values if is_repeated(each) else None
        if item is not None:
            common["ITEM"] = int(item.optional)
        if inner is None:
            common |= self._conversion(each)
            return _row(OP=walk.VALUE if item is None else walk.ITEMS, **common)
        if inner.full_name == _TIMESTAMP and item is None:
            return _row(OP=walk.TIME, **common)
        if inner.full_name in WRAPPERS and self.options.unwraps and item is None:
            return _row(OP=walk.WRAPPED, **common, CONV=_CONVERSIONS[inner.fields_by_name["value"].type])
        special = inner.full_name in (*LOGICAL, *(WRAPPERS if self.options.unwraps else ()), DECIMAL_MESSAGE)
        if special or not _takes(inner):
            return _row(OP=walk.OTHER, **common)
        child = self.struct(inner, schema if item is None else item)
        return _row(OP=walk.STRUCT if item is None else walk.STRUCTS, **common, CHILD=child)

    def _conversion(self, each: Descriptor) -> dict[str, int]:
        if each.type != FieldDescriptor.TYPE_ENUM:
            return {"CONV": _CONVERSIONS[each.type]}
        if self.options.int_enums:
            return {"CONV": wire.INT32}
        first, seen = len(self.names), set()
        for value in each.enum_type.values:
            if value.number not in seen:
                seen.add(value.number)
                self.names.append((value.number, len(self.texts), len(self.texts) + len(value.name)))
                self.texts += value.name.encode()
        return {"CONV": wire.ENUM, "SYMBOLS": first, "SYMBOLS_END": len(self.names)}

    def tables(self) -> Program:
        """All types behind one another."""
        types = np.zeros((len(self.ops), walk.TYPE_COLUMNS), dtype=np.int64)
        numbers = np.full((len(self.ops), walk.MOST_NUMBER), -1, dtype=np.int64)
        flat: list[list[int]] = []
        for kind, ops in enumerate(self.ops):
            types[kind, walk.FIRST] = len(flat)
            for op in ops:
                if op[walk.OP] != walk.UNION:
                    numbers[kind, op[walk.FIELD]] = len(flat)
                flat.append(op)
            types[kind, walk.LAST] = len(flat)
            types[kind, walk.SLOTS] = max((op[walk.SLOT] + 1 for op in ops), default=0)
        table = np.array(flat, dtype=np.int64).reshape(-1, walk.OP_COLUMNS)
        names = np.array(self.names, dtype=np.int64).reshape(-1, 3)
        return Program((table, types, numbers), (names, np.array(list(self.texts or b"\x00"), dtype=np.uint8)))


def _row(**columns: int) -> list[int]:
    row = [0] * walk.OP_COLUMNS
    for name, value in columns.items():
        row[getattr(walk, name)] = value
    return row


def warm() -> None:
    """Compile, or load from numba's cache, what `Program.run` calls."""
    tables = (
        np.zeros((1, walk.OP_COLUMNS), np.int64),
        np.zeros((1, walk.TYPE_COLUMNS), np.int64),
        np.zeros((1, 1), np.int64),
    )
    symbols = (np.zeros((0, 3), dtype=np.int64), np.zeros(1, dtype=np.uint8))
    Program(tables, symbols).run(np.zeros(1, dtype=np.uint8), np.zeros((0, 2), dtype=np.int64))
