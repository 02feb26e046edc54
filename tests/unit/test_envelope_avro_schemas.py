"""The Avro schema that a Connect schema becomes (reference s3-sink-connector 4.2 and 4.3)."""

import json

import pytest

from enveloped import COLOUR, CONNECT, DECIMAL, converter, envelope, struct
from laid_out import records

AVRO_DECIMAL = {
    "type": "bytes",
    "scale": 2,
    "precision": 64,
    "connect.version": 1,
    "connect.parameters": {"scale": "2"},
    "connect.name": f"{CONNECT}.Decimal",
    "logicalType": "decimal",
}
ENTRY = {"type": "record", "name": "MapEntry", "namespace": "io.confluent.connect.avro"}


def avro_of(schema, **more):
    """The Avro schema that a Connect schema becomes."""
    made = converter("avro", **more)
    faults = made.convert(records([envelope(schema, None)])).faults
    assert not any("schema cannot be used" in fault.reason for fault in faults), faults
    return json.loads(made.schema(0).text)


@pytest.mark.parametrize(
    ("schema", "avro"),
    [
        ({"type": "int32"}, "int"),
        ({"type": "boolean"}, "boolean"),
        ({"type": "float"}, "float"),
        ({"type": "double"}, "double"),
        ({"type": "string"}, "string"),
        ({"type": "bytes"}, "bytes"),
        ({"type": "int8"}, {"type": "int", "connect.type": "int8"}),
        ({"type": "int16"}, {"type": "int", "connect.type": "int16"}),
        ({"type": "int64", "optional": True}, ["null", "long"]),
        ({"type": "int64", "optional": True, "default": 4}, [{"type": "long", "connect.default": 4}, "null"]),
        ({"type": "string", "doc": "d", "version": 2}, {"type": "string", "connect.doc": "d", "connect.version": 2}),
        (DECIMAL, AVRO_DECIMAL),
        (
            {"type": "int32", "name": f"{CONNECT}.Date", "version": 1},
            {"type": "int", "connect.version": 1, "connect.name": f"{CONNECT}.Date", "logicalType": "date"},
        ),
        (
            {"type": "int32", "name": f"{CONNECT}.Time", "version": 1},
            {"type": "int", "connect.version": 1, "connect.name": f"{CONNECT}.Time", "logicalType": "time-millis"},
        ),
        (
            {"type": "int64", "name": f"{CONNECT}.Timestamp", "version": 1},
            {
                "type": "long",
                "connect.version": 1,
                "connect.name": f"{CONNECT}.Timestamp",
                "logicalType": "timestamp-millis",
            },
        ),
        ({"type": "array", "items": {"type": "int32"}}, {"type": "array", "items": "int"}),
        (
            {"type": "map", "keys": {"type": "string"}, "values": {"type": "int32"}},
            {"type": "map", "values": "int"},
        ),
        (
            {"type": "map", "keys": {"type": "int32"}, "values": {"type": "string", "optional": True}},
            {
                "type": "array",
                "items": {
                    **ENTRY,
                    "fields": [
                        {"name": "key", "type": "int"},
                        {"name": "value", "type": ["null", "string"], "default": None},
                    ],
                },
            },
        ),
        (
            {"type": "map", "keys": {"type": "string", "optional": True}, "values": {"type": "int32"}},
            {
                "type": "array",
                "items": {
                    **ENTRY,
                    "fields": [
                        {"name": "key", "type": ["null", "string"], "default": None},
                        {"name": "value", "type": "int"},
                    ],
                },
            },
        ),
        (
            COLOUR,
            {
                "type": "enum",
                "name": "Colour",
                "namespace": "n",
                "symbols": ["RED", "BLUE"],
                "connect.parameters": COLOUR["parameters"],
                "connect.name": "n.Colour",
            },
        ),
        (
            struct(("boolean", {"type": "boolean"}), ("int", {"type": "int32"}), name="record", version=1),
            {
                "type": "record",
                "name": "record",
                "fields": [{"name": "boolean", "type": "boolean"}, {"name": "int", "type": "int"}],
                "connect.version": 1,
                "connect.name": "record",
            },
        ),
        (
            struct(("a", struct(("x", {"type": "int32"}))), ("b", struct(("y", {"type": "int32"}), optional=True))),
            {
                "type": "record",
                "name": "ConnectDefault",
                "namespace": "io.confluent.connect.avro",
                "fields": [
                    {
                        "name": "a",
                        "type": {"type": "record", "name": "ConnectDefault2", "fields": [{"name": "x", "type": "int"}]},
                    },
                    {
                        "name": "b",
                        "type": [
                            "null",
                            {"type": "record", "name": "ConnectDefault3", "fields": [{"name": "y", "type": "int"}]},
                        ],
                        "default": None,
                    },
                ],
            },
        ),
        (
            struct(
                ("a", struct(("x", {"type": "int32"}), name="Bare")),
                ("b", struct(("x", {"type": "int32"}), name="n.In")),
                ("b2", struct(("x", {"type": "int32"}), name="n.In", optional=True)),
                ("c", {"type": "string", "optional": True, "default": "z"}),
                name="n.R",
            ),
            {
                "type": "record",
                "name": "R",
                "namespace": "n",
                "fields": [
                    {
                        "name": "a",
                        "type": {
                            "type": "record",
                            "name": "Bare",
                            "namespace": "",
                            "fields": [{"name": "x", "type": "int"}],
                            "connect.name": "Bare",
                        },
                    },
                    {
                        "name": "b",
                        "type": {
                            "type": "record",
                            "name": "In",
                            "fields": [{"name": "x", "type": "int"}],
                            "connect.name": "n.In",
                        },
                    },
                    {"name": "b2", "type": ["null", "In"], "default": None},
                    {"name": "c", "type": [{"type": "string", "connect.default": "z"}, "null"], "default": "z"},
                ],
                "connect.name": "n.R",
            },
        ),
    ],
)
def test_the_avro_schema_is_the_one_that_confluent_derives(schema, avro):
    found = avro_of(schema)
    assert found == avro
    assert json.dumps(found) == json.dumps(avro)


def test_without_meta_data_only_the_logical_types_stay():
    assert avro_of(DECIMAL, meta=False) == {"type": "bytes", "scale": 2, "precision": 64, "logicalType": "decimal"}
    assert avro_of({"type": "int8"}, meta=False) == "int"


def test_optional_keys_may_make_an_avro_map():
    schema = {"type": "map", "keys": {"type": "string", "optional": True}, "values": {"type": "int32"}}
    assert avro_of(schema, optional_map_keys=True) == {"type": "map", "values": "int"}
    assert avro_of(schema)["type"] == "array"
