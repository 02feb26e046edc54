"""Protobuf as Confluent's ProtobufConverter represents it; the messages are made by the protobuf library."""

import base64
import json

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from laid_out import rows
from penstock.converters.protobuf_files import protobuf_file
from protobuf_orders import LITTLE, MONEY, ORDER, full, types
from wire import batch, build, data, field, lines, plain, projected, reasons, wired


@pytest.fixture(scope="module")
def order(registry):
    """A value with a bit of everything, and its class."""
    references = {"common/money.proto": MONEY}
    message = types(ORDER, references)("shop.Order")
    schema_id = registry.add("t-value", ORDER, "PROTOBUF", references)
    return message, lambda **fields: wired(schema_id, b"\x00" + message(**fields).SerializeToString())


def expected():
    empty = dict.fromkeys(("main", "at", "note", "day", "time", "price", "parent"))
    plain_order = {"pay_0": None, "counts": {}, "id": "", "lines": [], **empty, "by_number": [], "kind": "A", "raw": ""}
    plain_order |= {"big": 0, "small": 0, "f": 0.0}
    line = {"sku": "", "n": 0, "discount": None}
    return plain_order | {
        "pay_0": {"card": "c", "cash": None},
        "counts": {"a": 2, "b": 1},
        "id": "i",
        "lines": [{"sku": "s", "n": 2**32 - 1, "discount": None}],
        "at": -993,
        "note": "",
        "day": 2,
        "time": 3_600_999,
        "price": base64.b64encode((-1234).to_bytes(2, "big", signed=True)).decode(),
        "by_number": [[-1, line], [3, {"sku": "q", "n": 0, "discount": 0}]],
        "kind": "B",
        "raw": "Af8=",
        "parent": plain_order | {"id": "p"},
        "big": -1,
        "small": -56,
        "f": 0.1,
    }


def test_a_message_in_json(registry, order):
    (line,) = rows(build("protobuf", "json", registry.url).convert(batch([order[1](**full())])))
    assert json.loads(line) == expected()
    order_of_keys = ["pay_0", "counts", "id", "lines", "main", "at", "note", "day", "time", "price", "by_number"]
    assert list(json.loads(line)) == [*order_of_keys, "kind", "raw", "parent", "big", "small", "f"]
    assert b'"f":0.1}' in line


def test_decimals_as_numbers(registry, order):
    (value,) = lines(build("protobuf", "json", registry.url, decimals="NUMERIC"), [order[1](**full())])
    assert value["price"] == -12.34


def test_a_message_in_avro(registry, order):
    converter = build("protobuf", "avro", registry.url)
    (value,) = data(converter, converter.convert(batch([order[1](**full())])))
    wanted = expected() | {
        "counts": [{"key": "a", "value": 2}, {"key": "b", "value": 1}],
        "by_number": [{"key": key, "value": value} for key, value in expected()["by_number"]],
        "price": (-1234).to_bytes(2, "big", signed=True),
        "raw": b"\x01\xff",
        "f": pytest.approx(0.1),
    }
    wanted["parent"] = wanted["parent"] | {"counts": [], "raw": b""}
    assert value == wanted


def test_the_avro_schema_is_the_one_that_connect_derives(registry):
    schema_id = registry.add("t-value", LITTLE, "PROTOBUF")
    version = registry.client.get_latest_version("t-value").version
    converter = build("protobuf", "avro", registry.url)
    converter.convert(batch([wired(schema_id, b"\x00")]))

    def tagged(kind, tag, **more):
        tag = {"io.confluent.connect.protobuf.Tag": str(tag)}
        return ["null", {"type": kind, "connect.parameters": {**more, **tag}}]

    inner = tagged("int", 7, **{"io.confluent.connect.protobuf.Type": "sint32"})
    record = {
        "type": "record",
        "name": "N",
        "fields": [{"name": "c", "type": inner, "default": None}],
        "connect.parameters": {"io.confluent.connect.protobuf.Tag": "3"},
        "connect.name": "N",
    }
    assert json.loads(converter.schema(0).text) == {
        "type": "record",
        "name": "M",
        "fields": [
            {"name": "a", "type": tagged("int", 1), "default": None},
            {"name": "b", "type": tagged("string", 2), "default": None},
            {"name": "n", "type": ["null", record], "default": None},
        ],
        "connect.version": version,
        "connect.name": "M",
    }
    assert (converter.schema(0).name, converter.schema(0).version) == ("M", version)


def test_maps_oneofs_and_named_types_in_the_derived_schema(registry, order):
    converter = build("protobuf", "avro", registry.url, connect_meta_data=False)
    converter.convert(batch([order[1]()]))
    fields = {each["name"]: each["type"][1] for each in json.loads(converter.schema(0).text)["fields"]}
    entry = fields["counts"]["items"]
    assert (entry["name"], entry["connect.internal.type"], [each["name"] for each in entry["fields"]]) == (
        "counts", "MapEntry", ["key", "value"],
    )  # fmt: skip
    assert fields["pay_0"]["namespace"] == "io.confluent.connect.protobuf.Union"
    assert (fields["main"], fields["parent"]) == ("Line", "Order")
    assert fields["at"] == {"type": "long", "logicalType": "timestamp-millis"}
    assert fields["price"] == {"type": "bytes", "scale": 2, "precision": 9, "logicalType": "decimal"}


def test_optional_map_keys_make_avro_maps(registry, order):
    converter = build("protobuf", "avro", registry.url, optional_map_keys=True)
    (value,) = data(converter, converter.convert(batch([order[1](counts={"b": 1, "a": 2})])))
    assert value["counts"] == {"a": 2, "b": 1}


@pytest.mark.parametrize(
    ("indexes", "name", "fields"),
    [
        (b"\x00", "shop.Order", {"id": "x"}),
        (b"\x02\x00", "shop.Order", {"id": "x"}),
        (b"\x02\x02", "shop.Other", {"x": 5}),
        (b"\x04\x00\x00", "shop.Order.Line", {"sku": "x"}),
        (b"\x04\x00\x02", "shop.Order.Note", {"text": "x"}),
    ],
)
def test_message_indexes_lead_to_the_type(registry, indexes, name, fields):
    references = {"common/money.proto": MONEY}
    schema_id = registry.add("t-value", ORDER, "PROTOBUF", references)
    body = types(ORDER, references)(name)(**fields).SerializeToString()
    (value,) = lines(build("protobuf", "json", registry.url), [wired(schema_id, indexes + body)])
    assert fields.items() <= value.items()


OPTIONS = """syntax = "proto3"; package o; import "google/protobuf/wrappers.proto";
message M { int32 a = 1; optional int32 b = 2; enum E { X = 0; Y = 1; } E e = 3; oneof u { string s = 4; int32 i = 5; }
  N n = 6; message N { int32 z = 1; } google.protobuf.Int32Value w = 7; }"""
DEFAULT = {"u_0": {"s": None, "i": 3}, "a": 0, "b": None, "e": "Y", "n": None, "w": 7}


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ({}, {}),
        ({"int.for.enums": "true"}, {"e": 1}),
        ({"generate.index.for.unions": "false"}, {"u_0": ..., "u": {"s": None, "i": 3}}),
        ({"flatten.unions": "true"}, {"u_0": ..., "s": None, "i": 3}),
        ({"generate.struct.for.nulls": "true"}, {"n": {"z": 0}, "b": 0}),
        ({"wrapper.for.raw.primitives": "false"}, {"w": {"value": 7}}),
        ({"optional.for.nullables": "true"}, {}),
    ],
)
def test_options(registry, options, changed):
    schema_id = registry.add("t-value", OPTIONS, "PROTOBUF")
    message = types(OPTIONS)("o.M")(e=1, i=3, w={"value": 7})
    value = wired(schema_id, b"\x00" + message.SerializeToString())
    wanted = {name: each for name, each in (DEFAULT | changed).items() if each is not ...}
    for kind in ("json", "avro"):
        converter = build("protobuf", kind, registry.url, **options)
        (found,) = data(converter, converter.convert(batch([value]))) if kind == "avro" else lines(converter, [value])
        assert found == wanted


@pytest.mark.parametrize(
    ("options", "nullable"),
    [
        ({}, {"u_0", "a", "b", "e", "n", "w"}),
        ({"optional.for.nullables": "true"}, {"u_0", "b", "e", "n", "w"}),
        ({"wrapper.for.nullables": "true"}, {"u_0", "e", "n", "w"}),
    ],
)
def test_options_say_which_fields_may_be_null(registry, options, nullable):
    text = OPTIONS.replace("optional int32 b", "int32 b") if "wrapper.for.nullables" in options else OPTIONS
    schema_id = registry.add("t-value", text, "PROTOBUF")
    converter = build("protobuf", "avro", registry.url, **options)
    assert not converter.convert(batch([wired(schema_id, b"\x00")])).faults
    fields = json.loads(converter.schema(0).text)["fields"]
    assert {each["name"] for each in fields if isinstance(each["type"], list)} == nullable


def test_full_names(registry, order):
    converter = build("protobuf", "avro", registry.url, **{"enhanced.protobuf.schema.support": "true"})
    converter.convert(batch([order[1]()]))
    schema = json.loads(converter.schema(0).text)
    assert (schema["name"], schema["namespace"], schema["connect.name"]) == ("Order", "shop", "shop.Order")
    fields = {each["name"]: each["type"][1] for each in schema["fields"]}
    assert fields["by_number"]["connect.name"] == "shop.Order.by_number"
    assert fields["pay_0"]["connect.name"] == "io.confluent.connect.protobuf.Union.shop.Order.pay"


def test_a_wrapper_alone_is_its_value(registry):
    text = 'syntax = "proto3"; package google.protobuf; message UInt64Value { uint64 value = 1; }'
    schema_id = registry.add("t-value", text, "PROTOBUF")
    value = wired(schema_id, b"\x00\x08\x05")
    assert lines(build("protobuf", "json", registry.url), [value]) == [5]
    converter = build("protobuf", "avro", registry.url, connect_meta_data=False)
    assert (data(converter, converter.convert(batch([value]))), converter.schema(0).text) == ([5], '"long"')


PROTO2 = """package two; message M { required int32 r = 1; optional int32 d = 2 [default = 9]; optional string s = 3;
  enum E { X = 1; } optional E e = 4; repeated Pair pair = 5; message PairEntry { optional string key = 1; optional int32 value = 2; }
  repeated PairEntry pairs = 6; message Pair { optional int32 key = 1; } }"""  # noqa: E501


def test_proto2(registry):
    schema_id = registry.add("t-value", PROTO2, "PROTOBUF")
    body = b"\x00\x08\x01\x1a\x02\xff\xfe\x20\x07" + b"\x32\x05\x0a\x01b\x10\x01" + b"\x32\x05\x0a\x01b\x10\x02"
    (value,) = lines(build("protobuf", "json", registry.url), [wired(schema_id, body)])
    # An enum's unknown number is an unknown field; what looks like the entries of a map is one.
    assert value == {"r": 1, "d": None, "s": "\ufffd\ufffd", "e": None, "pair": [], "pairs": {"b": 2}}
    converter = build("protobuf", "json", registry.url, **{"optional.for.proto2": "false"})
    (value,) = lines(converter, [wired(schema_id, b"\x00\x08\x01")])
    assert value == {"r": 1, "d": 9, "s": "", "e": "X", "pair": [], "pairs": {}}
    (reason,) = reasons(converter, [wired(schema_id, b"\x00")])
    assert reason.startswith("its value lacks required fields: r; ")


def test_an_enum_without_that_number(registry, order):
    values = lines(build("protobuf", "json", registry.url), [order[1](kind=7), order[1](kind=1)])
    assert [each["kind"] for each in values] == ["UNKNOWN_ENUM_VALUE_Kind_7", "B"]


def test_serialized_descriptors_do_as_well(registry):
    def serialized(text, name):
        file = protobuf_file(text, {"common/money.proto": MONEY} if "money" in text else {}).file
        made = FileDescriptorProto()
        file.CopyToProto(made)
        made.name = name
        return base64.b64encode(made.SerializeToString()).decode()

    references = {"common/money.proto": serialized(MONEY, "money.proto")}
    schema_id = registry.add("t-value", serialized(ORDER, "order.proto"), "PROTOBUF", references)
    message = types(ORDER, {"common/money.proto": MONEY})("shop.Order")(
        **full() | {"card": ""},
    )
    message.cash.units = 3
    (value,) = lines(build("protobuf", "json", registry.url), [wired(schema_id, b"\x00" + message.SerializeToString())])
    assert value == expected() | {"pay_0": {"card": None, "cash": {"currency": "", "units": 3}}}


@pytest.mark.parametrize("kind", ["json", "avro"])
def test_fields_have_the_types_of_the_schema(registry, order, kind):
    converter = build("protobuf", kind, registry.url)
    values = [order[1](**full()), None, b"\x00\x00", order[1]()]

    def of(path):
        return field(converter, values, path)

    nothing = [("null", None), ("malformed", None)]
    assert of("id") == [("string", b"i"), *nothing, ("string", b"")]
    assert of("kind") == [("string", b"B"), *nothing, ("string", b"A")]
    assert of("at") == [("timestamp-millis", -993), *nothing, ("null", None)]
    assert of("day") == [("date", 2), *nothing, ("null", None)]
    assert of("big") == [("long", -1), *nothing, ("long", 0)]
    assert of("pay_0.card") == [("string", b"c"), *nothing, ("null", None)]
    assert of("parent.id") == [("string", b"p"), *nothing, ("null", None)]
    assert of("none") == [("absent", None), *nothing, ("absent", None)]


@pytest.mark.parametrize("kind", ["json", "avro"])
def test_projection_to_another_version(registry, kind):
    newer = LITTLE.replace("int32 a = 1;", "int32 a = 1; map<string, int64> m = 9;")
    ids = [registry.add("t-value", text, "PROTOBUF") for text in (LITTLE, newer)]
    old = wired(ids[0], b"\x00" + types(LITTLE)("p.M")(a=1, b="x").SerializeToString())
    new = wired(ids[1], b"\x00" + types(newer)("p.M")(a=2, m={"k": 3}).SerializeToString())
    converter = build("protobuf", kind, registry.url)
    made = projected(converter, [old, new], onto=1)
    assert not made.faults
    found = [json.loads(row) for row in rows(made)] if kind == "json" else data(converter, made)
    entries = {"k": 3} if kind == "json" else [{"key": "k", "value": 3}]
    assert found == [{"a": 1, "m": None, "b": "x", "n": None}, {"a": 2, "m": entries, "b": None, "n": None}]


def test_plain_schema_of_this_file_is_the_schema_without_logical_types():
    assert plain({"type": ["null", {"type": "int", "logicalType": "date"}]}) == {"type": ["null", {"type": "int"}]}


@pytest.mark.parametrize("kind", ["json", "avro"])
def test_what_came_last_counts_and_messages_are_merged(registry, kind):
    text = """syntax = "proto3"; package w;
    message M { oneof u { string s = 1; int32 i = 2; N n = 3; } N m = 4; int32 a = 5; }
    message N { int32 x = 1; repeated int32 y = 2; }"""
    schema_id = registry.add("t-value", text, "PROTOBUF")
    bodies = [
        b"\x0a\x01s\x10\x07",
        b"\x10\x07\x0a\x01s",
        b"\x1a\x02\x08\x01\x10\x07",
        b"\x22\x02\x08\x01\x22\x02\x10\x02\x28\x01\x28\x02",
    ]
    values = [wired(schema_id, b"\x00" + body) for body in bodies]
    converter = build("protobuf", kind, registry.url)
    found = lines(converter, values) if kind == "json" else data(converter, converter.convert(batch(values)))
    none = {"s": None, "i": None, "n": None}
    rest = {"m": None, "a": 0}
    assert found == [
        {"u_0": none | {"i": 7}} | rest,
        {"u_0": none | {"s": "s"}} | rest,
        {"u_0": none | {"i": 7}} | rest,
        {"u_0": None, "m": {"x": 1, "y": [2]}, "a": 2},
    ]
