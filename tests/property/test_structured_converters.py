"""Protobuf messages of random types against the protobuf library's own JSON; Avro data against fastavro's."""

import base64
import contextlib
import io
import json

import fastavro
import numpy as np
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.converters.avro_writer import writer
from penstock.converters.connect_schema import avro_schema
from penstock.converters.protobuf import ProtobufSource
from penstock.converters.protobuf_files import protobuf_file
from penstock.converters.protobuf_schema import ProtobufOptions
from penstock.converters.structured import ValueMistake, _line_writer
from penstock.registry import Registered
from wire import plain

F = FieldDescriptorProto
INT32, UINT32 = st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**32 - 1)
INT64, UINT64 = st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**64 - 1)
SCALARS = {
    F.TYPE_INT32: INT32, F.TYPE_SINT32: INT32, F.TYPE_SFIXED32: INT32, F.TYPE_UINT32: UINT32, F.TYPE_FIXED32: UINT32,
    F.TYPE_INT64: INT64, F.TYPE_SINT64: INT64, F.TYPE_SFIXED64: INT64, F.TYPE_UINT64: UINT64, F.TYPE_FIXED64: UINT64,
    F.TYPE_BOOL: st.booleans(), F.TYPE_STRING: st.text(max_size=5), F.TYPE_BYTES: st.binary(max_size=5),
    F.TYPE_FLOAT: st.floats(width=32), F.TYPE_DOUBLE: st.floats(),
}  # fmt: skip
KEYS = [kind for kind in SCALARS if kind not in (F.TYPE_FLOAT, F.TYPE_DOUBLE, F.TYPE_BYTES)]
SYMBOLS = {"ZERO": 0, "ONE": 1, "MINUS": -1, "ALSO_ONE": 1}
SCALARS[F.TYPE_ENUM] = st.sampled_from([0, 1, -1, 7])
LONGS = (F.TYPE_INT64, F.TYPE_SINT64, F.TYPE_SFIXED64, F.TYPE_UINT64, F.TYPE_FIXED64)


@st.composite
def message_types(draw, depth=0):
    """A message type, its fields called f1, f2 and so on."""
    made = DescriptorProto(name=f"M{depth}")
    for number in range(1, draw(st.integers(1, 4)) + 1):
        shapes = ["plain", "repeated", "optional", "map", "oneof", *(["message", "self"] if depth < 2 else ["self"])]
        add_field(draw, made, number, draw(st.sampled_from(shapes)), depth)
    for at, each in enumerate(field for field in made.field if field.proto3_optional):
        each.oneof_index = len(made.oneof_decl)
        made.oneof_decl.add(name=f"_{each.name}{at}")
    return made


def add_field(draw, made, number, shape, depth):
    field = made.field.add(name=f"f{number}", number=number, label=F.LABEL_OPTIONAL, json_name=f"f{number}")
    field.type = draw(st.sampled_from(list(SCALARS)))
    if field.type == F.TYPE_ENUM:
        field.type_name = ".r.E"
    if shape == "message":
        if not any(each.name == f"M{depth + 1}" for each in made.nested_type):
            made.nested_type.append(draw(message_types(depth + 1)))
        field.type, field.type_name = F.TYPE_MESSAGE, f"M{depth + 1}"
        field.label = draw(st.sampled_from([F.LABEL_OPTIONAL, F.LABEL_REPEATED]))
    elif shape == "self":
        field.type, field.type_name = F.TYPE_MESSAGE, made.name
    elif shape == "repeated":
        field.label = F.LABEL_REPEATED
    elif shape == "optional":
        field.proto3_optional = True
    elif shape == "oneof":
        if not made.oneof_decl:
            made.oneof_decl.add(name="one")
        field.oneof_index = 0
    elif shape == "map":
        entry = made.nested_type.add(name=f"F{number}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=F.LABEL_OPTIONAL, type=draw(st.sampled_from(KEYS)))
        entry.field.add(
            name="value", number=2, label=F.LABEL_OPTIONAL, type=field.type, type_name=field.type_name or None
        )
        field.type, field.type_name, field.label = F.TYPE_MESSAGE, entry.name, F.LABEL_REPEATED


def fill(draw, message, depth=0):
    """Set some fields of a message."""
    for each in message.DESCRIPTOR.fields:
        if not draw(st.booleans()):
            continue
        held = getattr(message, each.name)
        if each.message_type is None:
            values = SCALARS[each.type]
            if each.is_repeated:
                held.extend(draw(st.lists(values, max_size=3)))
            else:
                setattr(message, each.name, draw(values))
        elif each.message_type.GetOptions().map_entry:
            key, value = (SCALARS[part.type] for part in each.message_type.fields)
            for name, item in draw(st.dictionaries(key, value, max_size=3)).items():
                held[name] = item
        elif depth < 3:
            fill(draw, held.add() if each.is_repeated else held, depth + 1)
            if not each.is_repeated:
                held.SetInParent()
    return message


def shown(message):
    """What Connect prints, from the library's JSON."""
    said = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )  # the library's words: longs are texts, NaN is "NaN", maps are objects
    found = {}
    for oneof in message.DESCRIPTOR.oneofs:
        if oneof.name == "one":
            members = {each.name: value_of(each, said, message) for each in oneof.fields}
            found["one_0"] = members if message.WhichOneof("one") else None
    for each in message.DESCRIPTOR.fields:
        if each.containing_oneof is None or each.containing_oneof.name != "one":
            found[each.name] = value_of(each, said, message)
    return found


def value_of(each, said, message):
    if each.message_type is not None and each.message_type.GetOptions().map_entry:
        key, value = each.message_type.fields
        held = getattr(message, each.name)
        pairs = [[key_shown(key, name), said_value(value, said[each.name][key_text(name)])] for name in sorted(held)]
        return dict(pairs) if key.type == F.TYPE_STRING else pairs
    if each.message_type is not None:
        held = getattr(message, each.name)
        if each.is_repeated:
            return [shown(one) for one in held]
        return shown(held) if message.HasField(each.name) else None
    if each.is_repeated:
        return [said_value(each, one) for one in said[each.name]]
    return said_value(each, said[each.name]) if each.name in said else None


def key_text(name):
    return str(name).lower() if isinstance(name, bool) else str(name)


def key_shown(key, name):
    return name if key.type not in (F.TYPE_UINT64, F.TYPE_FIXED64) or name < 2**63 else name - 2**64


def said_value(each, value):
    if each.type in LONGS:
        number = int(value)
        return number if number < 2**63 else number - 2**64
    if each.type == F.TYPE_ENUM and isinstance(value, int):
        return f"UNKNOWN_ENUM_VALUE_E_{value}"
    return value


def same(a, b):
    """Equal, floats to the library's digits."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) or isinstance(b, float):
        return a == b or a == pytest.approx(b, rel=1e-6)
    return a == b and type(a) is type(b)


@settings(max_examples=60)
@given(st.data())
def test_messages_of_any_type_become_what_the_library_says_of_them(drawn):
    file = FileDescriptorProto(name="random.proto", package="r", syntax="proto3")
    file.message_type.append(drawn.draw(message_types()))
    enum = file.enum_type.add(name="E")
    enum.options.allow_alias = True
    for name, number in SYMBOLS.items():
        enum.value.add(name=name, number=number)
    text = base64.b64encode(file.SerializeToString()).decode()
    message = GetMessageClass(protobuf_file(text, {}).pool.FindMessageTypeByName("r.M0"))()
    fill(drawn.draw, message)
    body = message.SerializeToString()
    as_json, as_data = typed(text, unique_names=True), typed(text, unique_names=False)
    schema = avro_schema(as_json.schema, connect_meta_data=True)
    line = _line_writer(schema, as_json.read, "BASE64")
    assert same(json.loads(line(body)), shown(message))
    parsed = fastavro.parse_schema(plain(json.loads(avro_schema(as_data.schema, connect_meta_data=True))))
    datum = writer(parsed)(as_data.read(body))
    found = fastavro.schemaless_reader(io.BytesIO(datum), parsed, None)
    assert list(found) == list(shown(message))
    # Cut anywhere, a message is refused or another message, never anything else.
    broken = [body[:at] for at in range(len(body))]
    for each in broken:
        with contextlib.suppress(ValueMistake):
            line(each)
    twice = body + fill(drawn.draw, type(message)()).SerializeToString()
    flipped = [spoilt(drawn.draw, body + b"\x00") for _ in range(20)]
    taken = walked(as_data, writer(parsed), [body, twice, *broken, *flipped])
    # Only maps, which are sorted, and unknown symbols are left to the library.
    assert taken[0] or "map_entry: true" in str(file) or "UNKNOWN" in str(shown(message))


def walked(as_data, write, bodies):
    """Run the compiled walk: what it takes are the data that the library's messages give. Which it took."""
    ends = np.cumsum([0, *(len(each) for each in bodies)])
    spans = np.stack((ends[:-1], ends[1:]), axis=1)
    data, stops, states = as_data.program.run(np.frombuffer(b"".join(bodies), dtype=np.uint8), spans)
    start = 0
    for body, stop, state in zip(bodies, stops.tolist(), states.tolist(), strict=True):
        if state:
            assert data[start:stop].tobytes() == write(as_data.read(body))
        else:
            assert stop == start
        start = stop
    return states.astype(bool)


def spoilt(draw, body):
    """With one byte changed."""
    at = draw(st.integers(0, len(body) - 1))
    return body[:at] + bytes([draw(st.integers(0, 255))]) + body[at + 1 :]


def typed(text, *, unique_names):
    source = ProtobufSource(ProtobufOptions(full_names=True), unique_names)
    return source.open(Registered(text, "PROTOBUF", 1)).typed((0,))


NAMES = st.from_regex(r"[a-z]{1,4}", fullmatch=True)
VALUES = {
    "boolean": st.booleans(),
    "int": INT32,
    "long": INT64,
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "string": st.text(max_size=6),
    "bytes": st.binary(max_size=6),
}


@st.composite
def avro_types(draw, depth=0, names=None):
    """A schema with a strategy for its values."""
    names = [] if names is None else names
    kind = draw(st.sampled_from([*VALUES, *(["array", "map", "record", "optional"] if depth < 3 else [])]))
    if kind in VALUES:
        return draw(st.sampled_from([kind, {"type": kind, "connect.name": "x"}])), VALUES[kind]
    if kind == "record":
        names.append("r")
        own = f"n.r{len(names)}"
        fields = {name: draw(avro_types(depth + 1, names)) for name in draw(st.lists(NAMES, max_size=3, unique=True))}
        declared = [{"name": name, "type": schema} for name, (schema, _) in fields.items()]
        return {"type": "record", "name": own, "fields": declared}, st.fixed_dictionaries(
            {name: values for name, (_, values) in fields.items()}
        )
    schema, values = draw(avro_types(depth + 1, names))
    if kind == "array":
        return {"type": "array", "items": schema}, st.lists(values, max_size=3)
    if kind == "map":
        return {"type": "map", "values": schema}, st.dictionaries(NAMES, values, max_size=3)
    if isinstance(schema, list):
        return schema, values
    return draw(st.sampled_from([["null", schema], [schema, "null"]])), st.none() | values


@settings(max_examples=100)
@given(st.data())
def test_data_are_those_that_fastavro_writes(drawn):
    schema, values = drawn.draw(avro_types())
    value, out = drawn.draw(values), io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    assert writer(schema)(value) == out.getvalue()
