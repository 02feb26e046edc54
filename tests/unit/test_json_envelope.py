"""JSON with schemas: envelopes of `schema` and `payload` (reference s3-sink-connector 4.2 and 4.3)."""

import io
import json

import fastavro
import numpy as np
import pytest

from enveloped import COLOUR, CONNECT, DECIMAL, converter, envelope, struct
from laid_out import records
from penstock.converters import ConverterOptions, build, negotiate, resolve
from penstock.converters.base import SCHEMALESS
from penstock.errors import ConfigError


def parts(chunk):
    return [chunk.data[s:e].tobytes() for s, e in zip(chunk.offsets, chunk.offsets[1:], strict=False)]


def one(schema, payload, **more):
    """(the row, its file schema) of one envelope."""
    made = converter(**more)
    found = made.convert(records([envelope(schema, payload)]))
    assert found.faults == ()
    return parts(found.chunk)[0], made.schema(int(found.chunk.schemas[0]))


ALL = struct(
    ("i8", {"type": "int8"}),
    ("i64", {"type": "int64"}),
    ("f", {"type": "float"}),
    ("d", {"type": "double"}),
    ("b", {"type": "bytes"}),
    ("dec", DECIMAL),
    ("date", {"type": "int32", "name": f"{CONNECT}.Date"}),
    ("o", {"type": "string", "optional": True}),
    ("z", {"type": "string", "optional": True, "default": "dflt"}),
    ("m", {"type": "map", "keys": {"type": "string"}, "values": {"type": "double"}}),
    ("p", {"type": "map", "keys": {"type": "int32"}, "values": {"type": "string"}}),
    ("l", {"type": "array", "items": {"type": "float", "optional": True}}),
    ("e", COLOUR),
    name="n.All",
    version=1,
)
PAYLOAD = {
    "e": "BLUE", "i8": -3, "i64": 2**53 + 1, "f": 12.2, "d": 1e10, "b": "AP8=", "dec": "AQA=", "date": 19000,
    "o": None, "m": {"k": 1}, "p": [[1, "x"]], "l": [None, 0.1],
}  # fmt: skip


def test_a_payload_is_printed_in_the_order_of_its_schema():
    line, schema = one(ALL, PAYLOAD)
    assert line.decode() == (
        '{"i8":-3,"i64":9007199254740993,"f":12.2,"d":1.0E10,"b":"AP8=","dec":"AQA=","date":19000,"o":null,"z":"dflt",'
        '"m":{"k":1.0},"p":[[1,"x"]],"l":[null,0.1],"e":"BLUE"}\n'
    )
    assert (schema.name, schema.version) == ("n.All", 1)
    assert json.loads(schema.text)["name"] == "All"


def test_a_payload_is_encoded_as_avro():
    datum, schema = one(ALL, PAYLOAD, kind="avro")
    value = fastavro.schemaless_reader(io.BytesIO(datum), fastavro.parse_schema(json.loads(schema.text)), None)
    assert str(value["dec"]) == "2.56"
    assert str(value["date"]) == "2022-01-08"
    assert (value["i8"], value["b"], value["z"], value["p"]) == (-3, b"\x00\xff", "dflt", [{"key": 1, "value": "x"}])


@pytest.mark.parametrize(
    ("payload", "text"), [("AQA=", "2.56"), (2.56, "2.56"), (2.5, "2.50"), (3, "3.00"), (-0.01, "-0.01")]
)
def test_decimals_are_read_in_both_forms_and_printed_as_numbers(payload, text):
    assert one(DECIMAL, payload, decimals="NUMERIC")[0] == f"{text}\n".encode()


@pytest.mark.parametrize("size", [17, 40])
def test_decimals_keep_every_digit(size):
    text = f"{'9' * size}.25"
    value = b'{"schema": %s, "payload": %s}' % (json.dumps(DECIMAL).encode(), text.encode())
    assert parts(converter(decimals="NUMERIC").convert(records([value])).chunk)[0] == f"{text}\n".encode()


def test_a_null_schema_is_a_value_without_one():
    made = converter()
    found = made.convert(records([b'{"schema": null, "payload": {"b": 1,\n "a": [1.50]}}']))
    assert parts(found.chunk) == [b'{"b":1,"a":[1.50]}\n']
    assert made.schema(0) is SCHEMALESS
    refused = converter("avro").convert(records([envelope(None, {"a": 1})])).faults[0].reason
    assert refused.startswith("its schema is null")


@pytest.mark.parametrize("value", [b'{"a": 1}', b'{"schema": {"type": "int32"}}', b"[1]", b"5", b"x", b"", b"\xff"])
def test_a_value_that_is_no_envelope_is_refused_in_connect_s_words(value):
    found = converter().convert(records([envelope({"type": "int32"}, 1), value, envelope({"type": "int32"}, 2)]))
    assert parts(found.chunk)[0] == b"1\n"
    assert [fault.row for fault in found.faults] == [1]
    assert found.faults[0].reason.startswith('JsonConverter with schemas.enable requires "schema" and "payload" fields')


def test_a_further_member_is_refused():
    value = b'{"schema": {"type": "int32"}, "payload": 1, "x": 2}'
    assert "may not contain additional fields" in converter().convert(records([value])).faults[0].reason


OPTIONAL = {"type": "int32", "optional": True}


@pytest.mark.parametrize("value", [None, b"null", envelope(None, None), envelope(OPTIONAL, None)])
def test_null_values_are_known(value):
    found = converter().convert(records([value, envelope({"type": "int32"}, 1)]))
    assert (found.faults, found.nulls.tolist()) == ((), [True, False])


@pytest.mark.parametrize(
    ("schema", "payload", "words"),
    [
        ({"type": "int32"}, "5", "payload must be a whole number of 32 bits, got `5`"),
        ({"type": "int8"}, 128, "a whole number of 8 bits"),
        ({"type": "int64"}, 1.5, "a whole number of 64 bits"),
        ({"type": "int64"}, True, "a whole number"),
        ({"type": "string"}, 5, "payload must be a text"),
        ({"type": "boolean"}, 1, "true or false"),
        ({"type": "double"}, "x", "a number"),
        ({"type": "bytes"}, "*", "bytes in base64"),
        (DECIMAL, 0.005, "a decimal of 2 places"),
        (struct(("a", {"type": "int32"})), {}, "payload.a is null or missing, and the int32 is required"),
        (struct(("a", {"type": "int32"})), [1], "payload must be an object"),
        ({"type": "array", "items": {"type": "int32"}}, {"a": 1}, "payload must be an array"),
        ({"type": "array", "items": {"type": "int32"}}, ["x"], "payload[] must be a whole number"),
        ({"type": "map", "keys": {"type": "int32"}, "values": {"type": "int32"}}, [[1]], "an array of pairs"),
        ({"type": "nosuch"}, 1, "`nosuch` is not a type"),
        ({"type": "struct"}, {}, "a struct needs `fields`"),
        ({"type": "map", "keys": {"type": "int32"}}, {}, "a schema must be an object"),
        (7, 1, "a schema must be an object with a `type`"),
        ({"type": "int32", "default": "x"}, 1, "its schema cannot be used (payload must be a whole number"),
    ],
)
def test_what_does_not_fit_is_named(schema, payload, words):
    assert words in converter().convert(records([envelope(schema, payload)])).faults[0].reason


def test_a_default_stands_in_for_a_null():
    assert one({"type": "int32", "default": 7}, None)[0] == b"7\n"


def test_names_that_avro_does_not_allow_are_only_json():
    schema = struct(("$oid", {"type": "string"}), name="server-1.R")
    assert one(schema, {"$oid": "x"})[0] == b'{"$oid":"x"}\n'
    assert (
        "schema cannot be used"
        in converter("avro").convert(records([envelope(schema, {"$oid": "x"})])).faults[0].reason
    )


def test_schemas_have_codes_and_white_space_makes_no_other():
    made = converter()
    schema, other = struct(("a", {"type": "int32"}), version=1), struct(("a", {"type": "int64"}), version=2)
    spaced = json.dumps({"schema": schema, "payload": {"a": 1}}, indent=1).encode()
    found = made.convert(records([envelope(schema, {"a": 1}), spaced, envelope(other, {"a": 1})]))
    assert found.chunk.schemas.tolist() == [0, 0, 1]
    assert [made.schema(code).version for code in (0, 1)] == [1, 2]


@pytest.mark.parametrize("kind", ["json", "avro"])
def test_rows_are_projected_to_another_schema(kind):
    made = converter(kind)
    old = struct(("a", {"type": "int32"}), ("gone", {"type": "string"}), version=1)
    new = struct(("a", {"type": "int64"}), ("b", {"type": "string", "default": "d"}), version=2)
    batch = records(
        [envelope(new, {"a": 0, "b": "x"}), envelope(old, {"a": 1, "gone": ""}), envelope(old, {"a": 2, "gone": ""})]
    )
    made.convert(batch)
    found = made.project(batch, np.array([1, 2]), 0)
    assert found.faults == ()
    assert found.chunk.schemas.tolist() == [0, 0]
    wanted = {"json": [b'{"a":1,"b":"d"}\n', b'{"a":2,"b":"d"}\n'], "avro": [b"\x02\x02d", b"\x04\x02d"]}
    assert parts(found.chunk) == wanted[kind]


def test_json_has_schemas_unless_told_otherwise():
    assert resolve("json", {}) == "json_envelope"
    assert resolve("json", {"schemas.enable": "False"}) == "json"
    assert resolve("avro", {}) == "avro"
    assert negotiate("json_envelope", "avro", ("avro",)) == "avro"
    with pytest.raises(ConfigError, match=r"`json` with schemas\.enable=false cannot be written"):
        negotiate("json", "avro", ("avro",))


def texts(field):
    return {part.type: part.rows.tolist() for part in field}


def test_fields_have_the_type_of_their_schema():
    schema = struct(("n", {"type": "int32"}), ("s", struct(("d", {"type": "int32", "name": f"{CONNECT}.Date"}))))
    batch = records([envelope(schema, {"n": 7, "s": {"d": 19000}}), None, envelope(schema, {"n": 8, "s": {"d": 1}})])
    for kind in ("json", "avro"):
        made = converter(kind)
        (nulls, found) = made.field(batch, "s.d")
        assert (nulls.type, nulls.rows.tolist()) == ("null", [1])
        assert (found.type, found.rows.tolist(), found.numbers.tolist()) == ("date", [0, 2], [19000, 1])
        assert texts(made.field(batch, "nosuch")) == {"null": [1], "absent": [0, 2]}


def test_fields_are_found_where_avro_could_not_hold_the_schema():
    schema = struct(("$oid", {"type": "string"}), ("n", {"type": "int64"}))
    (found,) = converter().field(records([envelope(schema, {"$oid": "x", "n": 7})]), "n")
    assert (found.type, found.rows.tolist(), found.numbers.tolist()) == ("long", [0], [7])


SCHEMA = '{"type":"struct","fields":[{"field":"n","type":"int32"},{"field":"t","type":"string","optional":true}]}'


def test_the_schema_may_stand_in_the_configuration():
    made = build("json_envelope", "avro", {"schema.content": SCHEMA}, ConverterOptions())
    found = made.convert(records([b'{"t":"x","n":1}', None, b'{"n":"1"}', b"{"]))
    assert parts(found.chunk)[0] == b"\x02\x02\x02x"
    assert found.nulls.tolist() == [False, True, False, False]
    assert [fault.row for fault in found.faults] == [2, 3]
    assert "payload.n must be a whole number of 32 bits, got `1`" in found.faults[0].reason
    assert [each["name"] for each in json.loads(made.schema(0).text)["fields"]] == ["n", "t"]


@pytest.mark.parametrize("content", ["{", '{"type":"nosuch"}'])
def test_a_schema_in_the_configuration_that_cannot_be_used_is_told(content):
    with pytest.raises(ConfigError, match=r"value.converter.schema.content cannot be used"):
        build("json_envelope", "json", {"schema.content": content}, ConverterOptions())
