"""Payloads that are copied are looked at: a broken one is a bad record, not a broken file."""

import io
import json

import fastavro
import numpy as np
import pytest

from avro_cases import encoded
from penstock.converters.avro_check import checker
from penstock.converters.avro_json import python_lines
from penstock.converters.projection import UNREADABLE, projection
from penstock.fields.avro import depth_guard

PLAIN = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}, {"name": "t", "type": "string"}]}
TREE = {
    "type": "record",
    "name": "t",
    "fields": [{"name": "next", "type": ["null", "t"]}, {"name": "n", "type": "long"}],
}


def deep(levels):
    value = None
    for n in range(levels):
        value = {"next": value, "n": n}
    return value


@pytest.mark.parametrize(
    ("schema", "good"), [(PLAIN, {"n": 7, "t": "x"}), (TREE, deep(3)), (TREE, deep(200))], ids=["plain", "tree", "deep"]
)
def test_what_is_cut_short_or_too_long_is_found(schema, good):
    whole = encoded(schema, good)
    data = [whole, whole[:-1], whole + b"\x00", whole, b""]
    offsets = np.zeros(len(data) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in data], out=offsets[1:])
    check = checker(json.dumps(schema))
    raw = np.frombuffer(b"".join(data), dtype=np.uint8)
    assert check(raw, offsets, np.arange(5)).tolist() == [False, True, True, False, True]
    assert check(raw, offsets, np.array([3, 1])).tolist() == [False, True]
    assert fastavro.schemaless_reader(io.BytesIO(whole), fastavro.parse_schema(schema), None) == good


@pytest.mark.parametrize("size", range(1, 20))
@pytest.mark.parametrize("behind", [b"", b"next row", b"\xff" * 8], ids=["nothing", "text", "no text"])
def test_a_wrong_byte_is_found_wherever_it_is_in_a_text_and_never_behind_it(size, behind):
    check = checker('"string"')
    for wrong in range(size + 1):
        text = bytes(0xFF if at == wrong else ord("a") for at in range(size))
        datum = bytes([2 * size]) + text
        raw = np.frombuffer(datum + behind, dtype=np.uint8)
        assert check(raw, np.array([0, len(datum)]), np.array([0])).tolist() == [wrong < size]


BRANCHES = {
    "type": "record",
    "name": "b",
    "fields": [{"name": "below", "type": {"type": "array", "items": "b"}}],
}
CHAIN = "it is a chain of records, each in a field of the last"
SIZED = "the same as arrays whose blocks say how many bytes they have, which is a lie"


def endless(kind, levels):
    """Data of `levels` records, one within the other, of which only the form matters."""
    if kind == CHAIN:
        return TREE, b"\x02" * levels + b"\x00" * (levels + 2)
    return BRANCHES, b"\x01\x02" * levels + b"\x00" * (levels + 1)


@pytest.mark.parametrize("levels", [600, 5_000, 300_000])
@pytest.mark.parametrize("kind", [CHAIN, SIZED])
def test_data_nested_without_end_are_faults_that_end_no_process(kind, levels):
    """A few thousand levels used to be a stack overflow inside fastavro, which no `except` catches."""
    schema, datum = endless(kind, levels)
    text = json.dumps(schema)
    raw = np.frombuffer(datum, dtype=np.uint8)
    assert checker(text)(raw, np.array([0, len(datum)]), np.arange(1)).tolist() == [True]
    readers = {
        "guard": depth_guard(schema),
        "json": python_lines(schema, "BASE64"),
        "value": projection(text, text).value,
        "datum": projection(text, text).datum,
    }
    for reader in readers.values():
        with pytest.raises(ValueError, match="nested more than 512 levels deep"):
            reader(datum)


def test_what_is_not_too_deep_is_read_and_what_is_cut_short_is_not():
    schema, datum = endless(CHAIN, 500)
    text = json.dumps(schema)
    raw = np.frombuffer(datum, dtype=np.uint8)
    assert checker(text)(raw, np.array([0, len(datum)]), np.arange(1)).tolist() == [False]
    for read in (python_lines(schema, "BASE64"), projection(text, text).datum):
        with pytest.raises(UNREADABLE, match="recursion"):
            read(datum)
    schema, datum = endless(CHAIN, 100)
    assert python_lines(schema, "BASE64")(datum).count(b"next") == 101
    assert projection(text, text).datum(datum) == datum
    with pytest.raises(ValueError, match="end too early, or too late"):
        depth_guard(schema)(datum[:-1])
    depth_guard(PLAIN)(b"")  # data of a schema that does not hold itself are as deep as it is
