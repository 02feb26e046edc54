"""Which schemas may share a file: rows from reference s3-sink-connector 2.3."""

import io
import json

import fastavro
import pytest

from penstock.converters.base import FileSchema
from penstock.converters.compatibility import joins, lacks_version, newer, reads
from penstock.converters.projection import projection


def record(*fields, name="r"):
    return {"type": "record", "name": name, "fields": [*fields]}


def f(name, kind, **more):
    return {"name": name, "type": kind, **more}


def enum(*symbols, name="e"):
    return {"type": "enum", "name": name, "symbols": list(symbols)}


A = f("a", "int")
N = ["null", "int"]
NESTED = record(f("x", "int"), name="n")
TREE = {"type": "record", "name": "t", "fields": [f("next", ["null", "t"], default=None)]}

READS = {
    "the same": (record(A), record(A), True),
    "only a doc differs": (record(A), record(f("a", "int", doc="d")), True),
    "int into long": (record(f("a", "long")), record(A), True),
    "int into double": (record(f("a", "double")), record(A), True),
    "float into double": (record(f("a", "double")), record(f("a", "float")), True),
    "long into int": (record(A), record(f("a", "long")), False),
    "double into float": (record(f("a", "float")), record(f("a", "double")), False),
    "string into bytes": (record(f("a", "bytes")), record(f("a", "string")), False),
    "int into string": (record(f("a", "string")), record(A), False),
    "an extra field is dropped": (record(A), record(A, f("b", "string")), True),
    "a missing field with a default": (record(A, f("b", "int", default=0)), record(A), True),
    "a missing optional field": (record(A, f("b", N)), record(A), True),
    "a missing required field": (record(A, f("b", "int")), record(A), False),
    "required into optional": (record(f("a", N)), record(A), True),
    "optional into required": (record(A), record(f("a", N)), False),
    "optional into required with a default": (record(f("a", "int", default=7)), record(f("a", N)), True),
    "another name": (record(A, name="q"), record(A), False),
    "another namespace": ({**record(A), "namespace": "x"}, record(A), False),
    "a namespace in the name": ({**record(A), "namespace": "x"}, record(A, name="x.r"), True),
    "symbols that are known": (record(f("a", enum("A", "B"))), record(f("a", enum("A"))), True),
    "a symbol that is not known": (record(f("a", enum("A"))), record(f("a", enum("A", "B"))), False),
    "an enum of another name": (record(f("a", enum("A"))), record(f("a", enum("A", name="g"))), False),
    "arrays": (
        record(f("a", {"type": "array", "items": "long"})),
        record(f("a", {"type": "array", "items": "int"})),
        True,
    ),
    "maps that do not fit": (
        record(f("a", {"type": "map", "values": "int"})),
        record(f("a", {"type": "map", "values": "string"})),
        False,
    ),
    "fixed of one size": (
        record(f("a", {"type": "fixed", "name": "x", "size": 2})),
        record(f("a", {"type": "fixed", "name": "x", "size": 2})),
        True,
    ),
    "fixed of another size": (
        record(f("a", {"type": "fixed", "name": "x", "size": 2})),
        record(f("a", {"type": "fixed", "name": "x", "size": 3})),
        False,
    ),
    "nested": (
        record(f("a", record(f("x", "long"), name="n"))),
        record(f("a", NESTED)),
        True,
    ),
    "nested that does not fit": (record(f("a", NESTED)), record(f("a", record(name="n"))), False),
    "a name used again": (record(f("a", NESTED), f("b", "n")), record(f("a", NESTED), f("b", "n")), True),
    "a type within itself": (TREE, {**TREE, "doc": "d"}, True),
    "a date and an int": (record(f("a", {"type": "int", "logicalType": "date"})), record(A), False),
    "decimals of another scale": (
        record(f("a", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})),
        record(f("a", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3})),
        False,
    ),
    "a union that grows": (record(f("a", ["null", "int", "string"])), record(f("a", ["null", "int"])), True),
    "a union that shrinks": (record(f("a", ["null", "int"])), record(f("a", ["null", "int", "string"])), False),
    "bare types": ("long", "int", True),
    "bare types that do not fit": ("int", "string", False),
}


@pytest.mark.parametrize("name", READS)
def test_what_can_be_projected(name):
    reader, writer, expected = READS[name]
    assert reads(json.dumps(reader), json.dumps(writer)) is expected


def versioned(number, *fields):
    text = json.dumps(record(*fields))
    return FileSchema(text, f"v{number}", "r", number)


V1, V2 = versioned(1, A), versioned(2, A, f("b", "int", default=5))
V3 = versioned(3, A, f("b", "string", default=""))


@pytest.mark.parametrize(
    ("mode", "file", "its", "expected"),
    [
        ("NONE", V1, V1, True),
        ("NONE", V2, V1, False),
        ("BACKWARD", V2, V1, True),
        ("BACKWARD", V1, V2, False),
        ("BACKWARD", V3, V2, False),
        ("FULL", V2, V1, True),
        ("FULL", V1, V2, False),
        ("FORWARD", V1, V2, True),
        ("FORWARD", V2, V1, False),
        ("FORWARD", V2, V3, False),
        ("UNION", V2, V1, True),
        ("UNION", V1, V2, True),
        ("UNION", V3, V2, False),
    ],
)
def test_which_versions_join(mode, file, its, expected):
    assert joins(file, its, mode) is expected


def test_without_a_version_nothing_can_be_said_where_versions_count():
    unversioned = FileSchema(V1.text, "x", "r", None)
    assert lacks_version(V2, unversioned, "BACKWARD")
    assert not lacks_version(V2, unversioned, "NONE")
    assert not lacks_version(V2, unversioned, "UNION")
    assert not lacks_version(unversioned, unversioned, "FULL")
    assert not joins(V2, unversioned, "FULL")


def test_the_newer_one_is_that_of_the_higher_version_or_else_the_one_that_reads_the_other():
    assert newer(V2, V1)
    assert not newer(V1, V2)
    old = FileSchema(json.dumps(record(A)), "a", "r", None)
    new = FileSchema(json.dumps(record(f("a", "long"))), "b", "r", None)
    assert newer(new, old)
    assert not newer(old, new)


def datum(schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


@pytest.mark.parametrize(
    ("writer", "reader", "value", "expected"),
    [
        (record(A), record(A, f("b", "int", default=5)), {"a": 1}, {"a": 1, "b": 5}),
        (record(A, f("b", "int")), record(A), {"a": 1, "b": 2}, {"a": 1}),
        (record(A), record(f("a", "double")), {"a": 1}, {"a": 1.0}),
        (record(A), record(A, f("b", N)), {"a": 1}, {"a": 1, "b": None}),
        (record(A), record(A, f("b", ["int", "null"])), {"a": 1}, {"a": 1, "b": None}),
        (record(f("a", N)), record(f("a", "int", default=7)), {"a": None}, {"a": 7}),
        (record(f("a", N)), record(f("a", "int", default=7)), {"a": 3}, {"a": 3}),
        (
            record(f("a", {"type": "long", "logicalType": "timestamp-micros"})),
            record(f("a", {"type": "long", "logicalType": "timestamp-micros"}), f("b", N)),
            {"a": 123456789},
            {"a": 123456789, "b": None},
        ),
        (record(f("l", {"type": "array", "items": record(A, name="i")})),
         record(f("l", {"type": "array", "items": record(A, f("b", "int", default=1), name="i")})),
         {"l": [{"a": 1}, {"a": 2}]}, {"l": [{"a": 1, "b": 1}, {"a": 2, "b": 1}]}),
    ],
)  # fmt: skip
def test_data_under_another_schema(writer, reader, value, expected):
    writer, reader = json.dumps(writer), json.dumps(reader)
    raw_writer, raw_reader = (
        json.loads(text.replace('"logicalType": "timestamp-micros"', '"x": 1')) for text in (writer, reader)
    )
    made = projection(writer, reader).datum(datum(raw_writer, value))
    assert fastavro.schemaless_reader(io.BytesIO(made), fastavro.parse_schema(raw_reader), None) == expected
