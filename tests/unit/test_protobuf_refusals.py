"""Protobuf messages and schemas that cannot be used: each is one sentence, and the other rows stay as they are."""

import pytest

from protobuf_orders import LITTLE, MONEY, ORDER, types
from wire import batch, build, data, lines, reasons, wired


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (b"", "ends within the message indexes"),
        (b"\x04\x00", "ends within the message indexes"),
        (b"\x80\x80\x80\x80\x80\x80", "ends within the message indexes"),
        (b"\x01", "has -1 message indexes"),
        (b"\xfe\xff\x03", "has 32767 message indexes"),
        (b"\x02\x06", "is of message [3], which its schema does not have"),
        (b"\x02\x01", "is of message [-1], which its schema does not have"),
        (b"\x00\x0a\x05a", "is no message of the type that it names"),
        (b"\x00\x0a\x01\xff", "is no message of the type that it names"),
        (b"\x00\x42\x0c\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "is no message of the type that it names"),
        (b"\x00\x42\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "is no time from year 1 to 9999"),
        (b"\x00\x52\x00", "a Date of year 0, month 0, day 0 is no day"),
        (b"\x00\xc2\x01\x02\x08\x18", "a TimeOfDay of 24:0:0 and 0 ns is no time of a day"),
        (b"\x00\x5a\x03\x0a\x01\x01", "a Decimal with scale 0 is in field `shop.Order.price`, whose schema says 2"),
        (b"\x00\x5a\x02\x18\x02", "a Decimal without a value is in field `shop.Order.price`"),
        (b"\x00\x5a\x07\x0a\x01\x64\x10\x02\x18\x02", "a Decimal of more than its 2 digits is in field"),
    ],
)
@pytest.mark.parametrize("kind", ["json", "avro"])
def test_what_is_wrong_with_a_message_is_said(registry, kind, body, part):
    schema_id = registry.add("t-value", ORDER, "PROTOBUF", {"common/money.proto": MONEY})
    (reason,) = reasons(build("protobuf", kind, registry.url), [wired(schema_id, body)])
    assert part in reason
    assert reason.startswith("its value ")


def test_what_is_no_protobuf_is_said(registry):
    json_id = registry.add("other", "{}", "JSON")
    converter = build("protobuf", "json", registry.url)
    no_wire, unknown, other = reasons(converter, [b"\x01abcdefg", wired(99_999, b"\x00"), wired(json_id, b"\x00")])
    assert "its value is not Protobuf in Confluent's wire format" in no_wire
    assert f"schema id 99999, which the registry at {registry.url} does not have as a Protobuf schema" in unknown
    assert f"schema id {json_id}, which the registry" in other


def test_a_bad_row_does_not_touch_the_others_and_nulls_are_nulls(registry):
    schema_id = registry.add("t-value", LITTLE, "PROTOBUF")
    a, b = (wired(schema_id, b"\x00" + types(LITTLE)("p.M")(b=text).SerializeToString()) for text in "ab")
    converter = build("protobuf", "avro", registry.url)
    made = converter.convert(batch([a, b"\x00", None, b]))
    assert [fault.row for fault in made.faults] == [1]
    assert made.nulls.tolist() == [False, False, True, False]
    assert [each and each["b"] for each in data(converter, made)] == ["a", None, None, "b"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (
            'syntax = "proto3"; message M { Missing m = 1; }',
            "it is no Protobuf schema that protoc compiles (schema.proto",
        ),
        ('syntax = "proto3"; import "gone.proto"; message M { }', "gone.proto"),
        ('syntax = "proto3"; import "../../../../etc/passwd"; message M { }', "passwd"),
        ("message M { optional group G = 1 { optional int32 a = 1; } }", "field `M.g` is a group"),
        ('syntax = "proto3"; option java_package = "a";', "it has no message"),
    ],
)
def test_a_schema_that_cannot_be_used_is_named(registry, text, part):
    schema_id = registry.add("t-value", text, "PROTOBUF")
    (reason,) = reasons(build("protobuf", "json", registry.url), [wired(schema_id, b"\x00")])
    assert reason.startswith(f"its value says schema id {schema_id}, which cannot be used: ")
    assert part in reason


def test_a_reference_cannot_be_written_outside_of_its_folder(registry, tmp_path):
    schema_id = registry.add("t-value", LITTLE, "PROTOBUF", {f"../../..{tmp_path}/out.proto": MONEY})
    (reason,) = reasons(build("protobuf", "json", registry.url), [wired(schema_id, b"\x00")])
    assert "which is no path of an import" in reason
    assert list(tmp_path.iterdir()) == []


TWINS = """syntax = "proto3"; message M { A a = 1; B b = 2; message A { message I { int32 x = 1; } I i = 1; }
  message B { message I { string y = 1; } I i = 1; } }"""


def test_two_types_of_one_name_need_their_full_names_in_avro_only(registry):
    schema_id = registry.add("t-value", TWINS, "PROTOBUF")
    value = wired(schema_id, b"\x00" + types(TWINS)("M")(b={"i": {"y": "z"}}).SerializeToString())
    wanted = {"a": None, "b": {"i": {"y": "z"}}}
    assert lines(build("protobuf", "json", registry.url), [value]) == [wanted]
    (reason,) = reasons(build("protobuf", "avro", registry.url), [value])
    assert "two different types with the name `I`" in reason
    converter = build("protobuf", "avro", registry.url, **{"enhanced.protobuf.schema.support": "true"})
    assert data(converter, converter.convert(batch([value]))) == [wanted]
