"""JSON Schema as Confluent's JsonSchemaConverter represents it."""

import base64
import json

import pytest

from laid_out import rows
from penstock.converters.json_schema_nodes import java_order
from wire import batch, build, data, field, lines, projected, reasons, wired

DECIMAL = {
    "type": "number",
    "title": "org.apache.kafka.connect.data.Decimal",
    "connect.type": "bytes",
    "connect.version": 1,
    "connect.parameters": {"scale": "2"},
}
TIMESTAMP = {"type": "integer", "title": "org.apache.kafka.connect.data.Timestamp", "connect.type": "int64"}
MAP = {"type": "object", "connect.type": "map", "additionalProperties": {"type": "integer", "connect.type": "int16"}}
PAIRS = {
    "type": "array",
    "connect.type": "map",
    "items": {
        "type": "object",
        "properties": {"key": {"type": "integer", "connect.type": "int32"}, "value": {"type": "string"}},
    },
}
OPTIONAL = {"use.optional.for.nonrequired": "true"}


def struct(properties, **more):
    indexed = {name: {**each, "connect.index": at} for at, (name, each) in enumerate(properties.items())}
    return {"type": "object", "properties": indexed, **more}


@pytest.fixture
def convert(registry):
    """Values of one schema through a converter: `convert("json", schema, value, ...)`."""

    def call(kind, schema, *values, references=None, **options):
        texts = {name: json.dumps(each) for name, each in (references or {}).items()}
        schema_id = registry.add("t-value", json.dumps(schema), "JSON", texts)
        converter = build("json_schema", kind, registry.url, **options)
        given = [wired(schema_id, each if isinstance(each, bytes) else json.dumps(each).encode()) for each in values]
        return converter, given

    return call


ROUND_TRIPS = [
    ({"type": "boolean"}, True, True, "boolean"),
    ({"type": "integer"}, -(2**63), -(2**63), "long"),
    ({"type": "integer", "connect.type": "int8"}, -128, -128, {"type": "int", "connect.type": "int8"}),
    ({"type": "integer", "connect.type": "int32"}, 5.0, 5, "int"),
    ({"type": "number"}, 5, 5.0, "double"),
    ({"type": "number", "connect.type": "float32"}, 0.1, 0.1, "float"),
    ({"type": "string"}, "é\n", "é\n", "string"),
    ({"type": "string", "connect.type": "bytes"}, "AP8=", "AP8=", "bytes"),
    ({"type": "array", "items": {"type": "string"}}, ["a"], ["a"], {"type": "array", "items": "string"}),
    ({"type": "array", "items": {"type": ["string", "null"]}}, ["a", None], ["a", None],
     {"type": "array", "items": ["null", "string"]}),
    ({"oneOf": [{"type": "null"}, {"type": "integer", "connect.type": "int16"}]}, 7, 7,
     ["null", {"type": "int", "connect.type": "int16"}]),
    (MAP, {"b": 1, "a": 2}, {"b": 1, "a": 2}, {"type": "map", "values": {"type": "int", "connect.type": "int16"}}),
    (PAIRS, [{"key": 1, "value": "x"}], [[1, "x"]],
     {"type": "array", "items": {"type": "record", "name": "MapEntry", "namespace": "io.confluent.connect.avro",
      "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "string"}]}}),
    ({"type": "string", "enum": ["A", "B"]}, "A", "A",
     {"type": "string", "connect.parameters": {"io.confluent.connect.json.Enum": "",
      "io.confluent.connect.json.Enum.A": "A", "io.confluent.connect.json.Enum.B": "B"}}),
    ({"type": "integer", "enum": [1, 2]}, 2, 2, "long"),
    ({"type": "string", "const": "x"}, "x", "x", "string"),
    ({"allOf": [{"type": "string", "format": "uuid"}, {"maxLength": 9}]}, "x", "x", "string"),
    ({"anyOf": [{"type": "string"}]}, "x", "x", "string"),
    ({"minimum": 3}, 4, 4.0, "double"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "given", "shown", "avro"), ROUND_TRIPS, ids=str)
def test_what_each_type_becomes(registry, convert, schema, given, shown, avro):
    whole = struct({"f": schema}, title="R")
    converter, values = convert("json", whole, {"f": given})
    assert lines(converter, values) == [{"f": shown}]
    converter, values = convert("avro", whole, {"f": given})
    assert not converter.convert(batch(values)).faults
    text = json.loads(converter.schema(0).text)
    assert (text["name"], text["fields"][0]["type"]) == ("R", avro)
    assert text["connect.version"] == registry.client.get_versions("t-value")[-1]


LOGICAL = struct({"at": TIMESTAMP, "price": DECIMAL, "d": {"type": "integer", "default": 5}}, title="a.b.Order")


@pytest.mark.parametrize("price", [-12.34, base64.b64encode((-1234).to_bytes(2, "big", signed=True)).decode()])
def test_logical_types_and_defaults(convert, price):
    value = {"at": 1, "price": price, "d": None}
    converter, values = convert("json", LOGICAL, value)
    assert lines(converter, values) == [{"at": 1, "price": "+y4=", "d": 5}]
    converter, values = convert("json", LOGICAL, value, decimals="NUMERIC")
    assert rows(converter.convert(batch(values))) == [b'{"at":1,"price":-12.34,"d":5}\n']
    converter, values = convert("avro", LOGICAL, value, connect_meta_data=False)
    assert data(converter, converter.convert(batch(values))) == [{"at": 1, "price": b"\xfb.", "d": 5}]
    schema = json.loads(converter.schema(0).text)
    assert (schema["name"], schema["namespace"], converter.schema(0).name) == ("Order", "a.b", "a.b.Order")
    assert [each["type"] for each in schema["fields"]] == [
        {"type": "long", "logicalType": "timestamp-millis"},
        {"type": "bytes", "scale": 2, "precision": 64, "logicalType": "decimal"},
        "long",
    ]
    assert schema["fields"][2]["default"] == 5


def test_properties_stand_in_the_order_of_their_index_or_of_java(convert):
    names = ["id", "name", "street", "amount", "zip", "country", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "customerId"]
    plain = {"type": "object", "properties": {name: {"type": "integer"} for name in names}}
    converter, values = convert("json", plain, dict.fromkeys(names, 1))
    (line,) = lines(converter, values)
    assert list(line) == java_order(names) != names
    converter, values = convert("json", struct(plain["properties"]), dict.fromkeys(names, 1))
    (line,) = lines(converter, values)
    assert list(line) == names


@pytest.mark.parametrize(
    "printed",  # keys in the order in which they were put into a HashMap, and as Java 17 printed its keys
    [
        ("one two three four five six", "six four one two three five"),
        ("Aa BB b a", "Aa BB a b"),
        ("BB Aa", "BB Aa"),
        (
            "id name street amount zip country x1 x2 x3 x4 x5 x6 x7 customerId",
            "zip country amount street name customerId x1 x2 id x3 x4 x5 x6 x7",
        ),
        ("é first-name 2nd zürich 😀", "2nd 😀 é zürich first-name"),
    ],
)
def test_java_s_order(printed):
    put, kept = (each.split() for each in printed)
    assert java_order(put) == kept


def test_undeclared_properties_are_left_out_and_missing_ones_are_errors_unless_optional(convert):
    schema = struct({"a": {"type": "integer"}, "b": {"type": "string"}}, required=["a"])
    converter, values = convert("json", schema, {"a": 1, "b": "x", "c": 9})
    assert lines(converter, values) == [{"a": 1, "b": "x"}]
    converter, values = convert("json", schema, {"a": 1}, {"a": 1, "b": None})
    missing, null = reasons(converter, values)
    assert "`b` is null or missing, and the string is required; see use.optional.for.nonrequired" in missing
    assert "`b` is null" in null
    converter, values = convert("avro", schema, {"a": 1}, **OPTIONAL)
    assert data(converter, converter.convert(batch(values))) == [{"a": 1, "b": None}]
    converter, values = convert("json", schema, {"b": "x"}, **OPTIONAL)
    (reason,) = reasons(converter, values)
    assert "`a` is null or missing" in reason


ONE, TWO = struct({"x": {"type": "integer"}}), struct({"x": {"type": "integer"}, "y": {"type": "integer"}})
UNION = {"oneOf": [{"type": "null"}, {"type": "integer"}, {"type": "string"}, ONE, TWO]}


@pytest.mark.parametrize(
    ("given", "at", "shown"),
    [(1, 0, 1), ("s", 1, "s"), ({"x": 1}, 2, {"x": 1}), ({"x": 1, "y": 2}, 3, {"x": 1, "y": 2})],
)
@pytest.mark.parametrize("kind", ["json", "avro"])
def test_unions(convert, kind, given, at, shown):
    converter, values = convert(
        kind, struct({"u": UNION, "v": UNION}), {"u": given, "v": None}, {"u": None, "v": given}
    )
    prefix = "io.confluent.connect.json.OneOf.field." if kind == "json" else "io_confluent_connect_json_OneOf_field_"
    whole = {f"{prefix}{n}": shown if n == at else None for n in range(4)}
    found = lines(converter, values) if kind == "json" else data(converter, converter.convert(batch(values)))
    assert found == [{"u": whole, "v": None}, {"u": None, "v": whole}]


def test_a_value_of_no_type_of_its_union_is_refused(convert):
    converter, values = convert("json", struct({"u": UNION}), {"u": {"z": 1}}, {"u": 1.5}, {"u": True})
    assert all("`u` must be of one of the types of its union" in reason for reason in reasons(converter, values))


ADDRESS = {"$id": "address.json", "type": "object", "title": "Address", "properties": {"street": {"type": "string"}}}
PERSON = {"type": "object", "title": "Person",
          "properties": {"home": {"$ref": "address.json"}, "work": {"$ref": "address.json"}}}  # fmt: skip
TREE = {
    "type": "object",
    "title": "Tree",
    "properties": {"n": {"$ref": "#/definitions/N"}, "l": {"$ref": "#"}, "p": {"$ref": "common/person.json"}},
    "definitions": {"N": {"type": "integer", "connect.type": "int32"}},
}


@pytest.mark.parametrize("kind", ["json", "avro"])
@pytest.mark.parametrize("pointer", ["#/definitions/N", "#/$defs/N"])
def test_references_and_types_within_themselves(convert, kind, pointer):
    tree = {**TREE, "properties": {**TREE["properties"], "n": {"$ref": pointer}}}
    references = {"common/address.json": ADDRESS, "common/person.json": PERSON}
    home = {"home": {"street": "s"}, "work": None}
    given = {"n": 1, "l": {"n": 2, "l": None, "p": home}, "p": None}
    for validates in ({}, {"json.fail.invalid.schema": "true"} if kind == "json" and "definitions" in pointer else {}):
        valid = {"n": 1, "l": {"n": 2, "p": {"home": {"street": "s"}}}} if validates else given
        converter, values = convert(kind, tree, valid, references=references, **OPTIONAL, **validates)
        found = lines(converter, values) if kind == "json" else data(converter, converter.convert(batch(values)))
        assert found == [given]


def test_two_types_with_one_title_cannot_be_in_one_avro_file(convert):
    schema = struct(
        {"a": struct({"x": {"type": "string"}}, title="T"), "b": struct({"y": {"type": "string"}}, title="T")}
    )
    value = {"a": {"x": "1"}, "b": {"y": "2"}}
    converter, values = convert("json", schema, value)
    assert lines(converter, values) == [value]
    converter, values = convert("avro", schema, value)
    (reason,) = reasons(converter, values)
    assert "two different types with the name `T`" in reason


def test_names_that_avro_does_not_allow(convert):
    schema = struct({"first-name": {"type": "string"}, "2nd": {"type": "string"}, "é": {"type": "string"}}, title="a b")
    value = {"first-name": "f", "2nd": "s", "é": "e"}
    converter, values = convert("json", schema, value)
    assert lines(converter, values) == [value]
    assert field(converter, values, "first-name") == [("string", b"f")]
    converter, values = convert("avro", schema, value)
    assert data(converter, converter.convert(batch(values))) == [{"first_name": "f", "x2nd": "s", "_C3_A9": "e"}]
    assert json.loads(converter.schema(0).text)["name"] == "a_b"
    assert field(converter, values, "first-name") == [("string", b"f")]
    converter, values = convert("avro", struct({"a-b": {"type": "string"}, "a_b": {"type": "string"}}), {})
    assert "two of its properties have the same name in Avro" in reasons(converter, values)[0]


@pytest.mark.parametrize(
    ("schema", "value", "part"),
    [
        ({"type": "integer"}, "1", "`f` must be a whole number of 64 bits, got `1`"),
        ({"type": "integer"}, 1.5, "`f` must be a whole number of 64 bits"),
        ({"type": "integer"}, 2**63, "`f` must be a whole number of 64 bits"),
        ({"type": "integer", "connect.type": "int8"}, 128, "`f` must be a whole number of 8 bits"),
        ({"type": "integer"}, True, "`f` must be a whole number of 64 bits"),
        ({"type": "number"}, "x", "`f` must be a number"),
        ({"type": "number"}, True, "`f` must be a number"),
        ({"type": "string"}, 1, "`f` must be a text"),
        ({"type": "boolean"}, 1, "`f` must be true or false"),
        ({"type": "string", "connect.type": "bytes"}, "?", "`f` must be bytes in base64"),
        ({"type": "string", "connect.type": "bytes"}, 1, "`f` must be bytes in base64"),
        ({"type": "array", "items": {"type": "string"}}, {}, "`f` must be an array"),
        ({"type": "object"}, [], "`f` must be an object"),
        (MAP, [], "`f` must be an object"),
        (PAIRS, [[1, 2]], "`f` must be an array of objects with `key` and `value`"),
        (DECIMAL, 0.123, "`f` must be a decimal of 2 places"),
        (DECIMAL, True, "`f` must be a decimal"),
        (struct({"g": {"type": "string"}}), {"g": 7}, "`f.g` must be a text"),
    ],
)
def test_a_value_of_another_type_is_refused(convert, schema, value, part):
    converter, values = convert("json", struct({"f": schema}), {"f": value})
    (reason,) = reasons(converter, values)
    assert part in reason


@pytest.mark.parametrize("body", [b"", b"{", b"{}x", b'{"f": "\xff"}', b"[" * 100_000])
def test_what_is_no_json_is_refused(convert, body):
    converter, values = convert("json", struct({"f": {"type": "string"}}), body)
    (reason,) = reasons(converter, values)
    assert reason.startswith("its value is not JSON")


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        ({}, "a part of it can hold anything; give it a type"),
        ({"type": "null"}, "a part of it can hold what Connect has no type for"),
        ({"not": {"type": "string"}}, "a part of it can hold what Connect has no type for"),
        ({"type": "text"}, "`text` is no type of JSON Schema"),
        ({"type": "integer", "connect.type": "int9"}, "`int9` is no connect.type of a number"),
        ({"type": "array"}, "does not say the one type of its items"),
        ({"type": "array", "items": [{"type": "string"}]}, "does not say the one type of its items"),
        ({"type": "object", "connect.type": "map"}, "does not say the type of its values"),
        ({"$ref": "gone.json"}, "it refers to `gone.json`, which is neither in it nor among its references"),
        ({"$ref": "#/properties/f"}, "it refers to itself without end"),
        ({"type": "integer", "default": "x"}, "its default does not fit"),
    ],
)
def test_a_schema_that_cannot_be_used_is_named(convert, schema, part):
    converter, values = convert("json", {"type": "object", "properties": {"f": schema}}, {"f": 1})
    (reason,) = reasons(converter, values)
    assert "which cannot be used: " in reason
    assert part in reason


def test_a_type_within_itself_needs_a_title_in_avro(convert):
    converter, values = convert("avro", {"type": "object", "properties": {"f": {"$ref": "#"}}}, {}, **OPTIONAL)
    assert "holds itself and has no name; give it one" in reasons(converter, values)[0]


def test_validation_is_confluent_s_option(convert):
    schema = struct({"f": {"type": "string", "maxLength": 2}}, additionalProperties=False)
    given = ({"f": "abc"}, {"f": "ab", "g": 1}, {"f": "ab"})
    converter, values = convert("json", schema, *given)
    assert lines(converter, values) == [{"f": "abc"}, {"f": "ab"}, {"f": "ab"}]
    converter, values = convert("json", schema, *given, **{"json.fail.invalid.schema": "true"})
    made = converter.convert(batch(values))
    assert ["its value does not fit the schema it names: `f`: " in fault.reason for fault in made.faults] == [
        True,
        False,
    ]
    assert "additional" in made.faults[1].reason.lower()


def test_nulls_and_bad_rows(convert):
    converter, values = convert("avro", struct({"f": {"type": "string"}}), {"f": "a"}, {"f": 1}, b" null ", {"f": "b"})
    made = converter.convert(batch([*values, None]))
    assert [fault.row for fault in made.faults] == [1]
    assert made.nulls.tolist() == [False, False, True, False, True]
    assert [each and each["f"] for each in data(converter, made)] == ["a", None, None, "b", None]


def test_fields(convert):
    schema = struct({"n": {"type": "integer"}, "at": TIMESTAMP, "s": struct({"t": {"type": "string"}})})
    converter, values = convert("json", schema, {"n": 1, "at": 2, "s": {"t": "x"}}, b"x", b"null", **OPTIONAL)
    nothing = [("malformed", None), ("null", None)]
    assert field(converter, values, "n") == [("long", 1), *nothing]
    assert field(converter, values, "at") == [("timestamp-millis", 2), *nothing]
    assert field(converter, values, "s.t") == [("string", b"x"), *nothing]
    assert field(converter, values, "gone") == [("absent", None), *nothing]


@pytest.mark.parametrize("kind", ["json", "avro"])
def test_projection_to_another_version(registry, kind):
    old, new = struct({"a": {"type": "integer"}}, title="R"), struct({"b": MAP, "a": {"type": "number"}}, title="R")
    ids = [registry.add("t-value", json.dumps(each), "JSON") for each in (old, new)]
    converter = build("json_schema", kind, registry.url, **OPTIONAL)
    values = [wired(ids[0], b'{"a": 1}'), wired(ids[1], b'{"a": 2.5, "b": {"k": 1}}')]
    made = projected(converter, values, onto=1)
    assert not made.faults
    found = [json.loads(row) for row in rows(made)] if kind == "json" else data(converter, made)
    assert found == [{"b": None, "a": 1.0}, {"b": {"k": 1}, "a": 2.5}]
