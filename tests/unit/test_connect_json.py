"""Avro values as Connect's JsonConverter prints them (reference s3-sink-connector 4.3)."""

import struct

import msgspec
import pytest

from penstock.converters.connect_json import rendering
from penstock.converters.java_numbers import double_text, float_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (12.2, "12.2"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (1e10, "1.0E10"),
        (12345678.9, "1.23456789E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (5e-324, "4.9E-324"),
        (-1.5e-7, "-1.5E-7"),
        (0.1, "0.1"),
        (123456.789, "123456.789"),
        (float("nan"), '"NaN"'),
        (float("inf"), '"Infinity"'),
        (float("-inf"), '"-Infinity"'),
    ],
)
def test_doubles_as_java_prints_them(value, text):
    assert double_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(12.2, "12.2"), (0.1, "0.1"), (1e10, "1.0E10"), (16777216.0, "1.6777216E7"), (1e-45, "1.4E-45")]
)
def test_floats_have_the_digits_of_their_32_bits(value, text):
    (stored,) = struct.unpack("<f", struct.pack("<f", value))
    assert float_text(stored) == text


def record(*fields):
    return {"type": "record", "name": "r", "fields": [{"name": name, **rest} for name, rest in fields]}


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
UNION = [
    "null",
    "int",
    "string",
    {"type": "record", "name": "n", "namespace": "s", "fields": [{"name": "x", "type": "float"}]},
]

ROWS = {
    "order and nulls": (
        record(("b", {"type": ["null", "int"]}), ("a", {"type": "string"})),
        {"b": None, "a": "x"},
        '{"b":null,"a":"x"}',
    ),
    "bytes": (record(("a", {"type": "bytes"})), {"a": b"\x00\xff"}, '{"a":"AP8="}'),
    "float": (record(("a", {"type": "float"})), {"a": struct.unpack("<f", struct.pack("<f", 12.2))[0]}, '{"a":12.2}'),
    "optional double": (record(("a", {"type": ["null", "double"]})), {"a": 1e10}, '{"a":1.0E10}'),
    "array of doubles": (
        record(("a", {"type": {"type": "array", "items": "double"}})),
        {"a": [1.0, 0.5]},
        '{"a":[1.0,0.5]}',
    ),
    "map of doubles": (
        record(("a", {"type": {"type": "map", "values": "double"}})),
        {"a": {"k": 2.0}},
        '{"a":{"k":2.0}}',
    ),
    "decimal": (record(("a", {"type": DECIMAL})), {"a": (12345).to_bytes(2, "big")}, '{"a":"MDk="}'),
    "null takes the default": (record(("a", {"type": ["int", "null"], "default": 4})), {"a": None}, '{"a":4}'),
    "a value stays": (record(("a", {"type": ["int", "null"], "default": 4})), {"a": 5}, '{"a":5}'),
    "union: int": (record(("a", {"type": UNION})), {"a": 3}, '{"a":{"int":3,"string":null,"s.n":null}}'),
    "union: record": (
        record(("a", {"type": UNION})),
        {"a": {"x": 1.0}},
        '{"a":{"int":null,"string":null,"s.n":{"x":1.0}}}',
    ),
    "union: null": (record(("a", {"type": UNION})), {"a": None}, '{"a":null}'),
}


def printed(schema, value, decimals="BASE64"):
    change = rendering(schema, decimals)
    return msgspec.json.encode(value if change is None else change(value)).decode()


@pytest.mark.parametrize("name", ROWS)
def test_values(name):
    schema, value, text = ROWS[name]
    assert printed(schema, value) == text


@pytest.mark.parametrize(("unscaled", "text"), [(12345, "123.45"), (-5, "-0.05"), (0, "0.00"), (100, "1.00")])
def test_decimals_as_numbers(unscaled, text):
    raw = unscaled.to_bytes(4, "big", signed=True)
    assert printed(record(("a", {"type": DECIMAL})), {"a": raw}, "NUMERIC") == f'{{"a":{text}}}'


def test_a_type_within_itself():
    tree = record(("v", {"type": "double"}), ("next", {"type": ["null", "r"]}))
    assert printed(tree, {"v": 1.0, "next": {"v": 2.0, "next": None}}) == '{"v":1.0,"next":{"v":2.0,"next":null}}'


def test_what_needs_no_change_is_left_alone():
    assert rendering(record(("a", {"type": ["null", "long"]}), ("b", {"type": "string"})), "BASE64") is None
