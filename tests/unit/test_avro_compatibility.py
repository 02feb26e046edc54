from __future__ import annotations

import json

import pytest

from penstock.dev.avro_compatibility import incompatibilities, parse


def record(*fields, name="r", **more):
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name, kind="int", **more):
    return {"name": name, "type": kind, **more}


def enum(*symbols, **more):
    return {"type": "enum", "name": "e", "symbols": list(symbols), **more}


def fixed(size, name="f"):
    return {"type": "fixed", "name": name, "size": size}


A, B = field("a"), field("b")
LINKED = record(field("v"), field("next", ["null", "r"]))
LINKED_LONG = record(field("v", "long"), field("next", ["null", "r"]))
LINKED_TEXT = record(field("v", "string"), field("next", ["null", "r"]))

# (what it is, reader, writer, whether the reader can read what the writer wrote)
CASES = [
    ("the same", record(A, B), record(A, B), True),
    ("fields in another order", record(B, A), record(A, B), True),
    ("the reader drops a field", record(A), record(A, B), True),
    ("the reader adds a field without a default", record(A, B), record(A), False),
    ("the reader adds a field with a default", record(A, field("b", default=0)), record(A), True),
    ("the reader adds a field whose default is null", record(A, field("b", ["null", "int"], default=None)),
     record(A), True),
    ("the reader adds a nullable field without a default", record(A, field("b", ["null", "int"])), record(A), False),
    ("a field has another name", record(field("b")), record(A), False),
    ("a field is known by its alias", record(field("b", aliases=["a"])), record(A), True),
    ("an alias of the writer does not help", record(A), record(field("b", aliases=["a"])), False),
    ("another record name", record(A, name="x"), record(A), False),
    ("another namespace", record(A, name="n.r"), record(A, name="m.r"), True),
    ("a record is known by its alias", record(A, name="x", aliases=["r"]), record(A), True),
    ("an alias in the reader's namespace", record(A, name="n.x", aliases=["r"]), record(A, name="n.r"), True),
    ("an alias in another namespace", record(A, name="n.x", aliases=["r"]), record(A, name="m.r"), False),
    ("docs differ", record(A, doc="one"), record(A, doc="two"), True),
    ("int to long", "long", "int", True),
    ("int to float", "float", "int", True),
    ("int to double", "double", "int", True),
    ("long to float", "float", "long", True),
    ("long to double", "double", "long", True),
    ("float to double", "double", "float", True),
    ("bytes to string", "string", "bytes", True),
    ("string to bytes", "bytes", "string", True),
    ("long to int", "int", "long", False),
    ("double to float", "float", "double", False),
    ("float to long", "long", "float", False),
    ("int to string", "string", "int", False),
    ("boolean to int", "int", "boolean", False),
    ("null to int", "int", "null", False),
    ("the long way to write a primitive", {"type": "string"}, "string", True),
    ("a logical type plays no part", {"type": "int", "logicalType": "date"}, "int", True),
    ("a promotion under a logical type", {"type": "long", "logicalType": "timestamp-millis"}, "int", True),
    ("a branch is added", ["null", "int", "string"], ["null", "int"], True),
    ("a branch is removed", ["null"], ["null", "int"], False),
    ("a value becomes a union", ["null", "int"], "int", True),
    ("a value becomes a union by promotion", ["null", "long"], "int", True),
    ("a union becomes a value that takes every branch", "long", ["int", "long"], True),
    ("a union becomes a value that does not", "int", ["null", "int"], False),
    ("a union without a fitting branch", ["null", "string"], "int", False),
    ("an enum gets a symbol", enum("A", "B"), enum("A"), True),
    ("an enum loses a symbol", enum("A"), enum("A", "B"), False),
    ("an enum loses a symbol but has a default", enum("A", default="A"), enum("A", "B"), True),
    ("enum to string", "string", enum("A"), False),
    ("fixed of the same size", fixed(4), fixed(4), True),
    ("fixed of another size", fixed(4), fixed(8), False),
    ("fixed of another name", fixed(4, "g"), fixed(4), False),
    ("fixed to bytes", "bytes", fixed(4), False),
    ("array items promoted", {"type": "array", "items": "long"}, {"type": "array", "items": "int"}, True),
    ("array items narrowed", {"type": "array", "items": "int"}, {"type": "array", "items": "long"}, False),
    ("map values promoted", {"type": "map", "values": "double"}, {"type": "map", "values": "int"}, True),
    ("map values changed", {"type": "map", "values": "int"}, {"type": "map", "values": "string"}, False),
    ("array to map", {"type": "map", "values": "int"}, {"type": "array", "items": "int"}, False),
    ("a nested record gains a default field", record(field("n", record(A, field("b", default=1), name="i"))),
     record(field("n", record(A, name="i"))), True),
    ("a nested record gains a bare field", record(field("n", record(A, B, name="i"))),
     record(field("n", record(A, name="i"))), False),
    ("a type used twice by name", record(field("x", fixed(2)), field("y", "f")),
     record(field("x", fixed(2)), field("y", "f")), True),
    ("a recursive type", LINKED, LINKED, True),
    ("a recursive type with a promotion", LINKED_LONG, LINKED, True),
    ("a recursive type with a change", LINKED_TEXT, LINKED, False),
    ("a difference that only a deeper union branch has", record(field("u", ["null", record(A, B, name="i")])),
     record(field("u", ["null", record(A, name="i")])), False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reader", "writer", "readable"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_resolution(reader, writer, readable):
    found = incompatibilities(parse(json.dumps(reader)), parse(json.dumps(writer)))
    assert (found == []) == readable, found


def test_a_difference_is_named_by_its_place():
    reader = record(field("n", record(A, B, name="i")), field("m", "int"))
    writer = record(field("n", record(A, name="i")), field("m", "string"))
    places = [each.split(":")[0] for each in incompatibilities(parse(json.dumps(reader)), parse(json.dumps(writer)))]
    assert places == ["/n/b", "/m"]


@pytest.mark.parametrize(
    "text", ["", "{", "7", '"nosuch"', '{"type":"record","name":"r"}', '{"type":"fixed","name":"f"}', "[]{", '{"a":1}']
)
def test_what_is_no_schema_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def test_the_canonical_text_ignores_layout_but_not_docs_and_defaults():
    one = parse('{"type":"record","name":"r","namespace":"n","fields":[{"name":"a","type":{"type":"int"}}]}')
    same = parse('{"fields": [{"type": "int", "name": "a"}], "name": "n.r", "type": "record"}')
    documented = parse('{"type":"record","name":"n.r","doc":"d","fields":[{"name":"a","type":"int"}]}')
    defaulted = parse('{"type":"record","name":"n.r","fields":[{"name":"a","type":"int","default":0}]}')
    assert one.canonical == same.canonical
    assert len({one.canonical, documented.canonical, defaulted.canonical}) == 3
