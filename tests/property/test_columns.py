"""Avro data as Arrow columns against fastavro's decoded values; broken data never make the walk read elsewhere."""

import datetime as dt
import io
import json
import os
from decimal import Decimal

import fastavro
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from avro_cases import encoded, record
from penstock.columnar.arrays import batch, faulty, warm
from penstock.columnar.schema import Columns, NoColumnsError

warm()
EXAMPLES = 30 if "NUMBA_BOUNDSCHECK" in os.environ else 150


def laid(data):
    offsets = np.zeros(len(data) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in data], out=offsets[1:])
    return np.frombuffer(b"".join(data) + b"\xff", dtype=np.uint8), offsets


def columns(schema, data, rows=None):
    made = batch(Columns.compile(json.dumps(schema)), *laid(data), np.arange(len(data)) if rows is None else rows)
    made.validate(full=True)
    return made.to_pylist()


def plain(value):
    """As Arrow gives it: maps are lists of pairs."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def mapped(schema, value):
    """The value with maps as lists of pairs."""
    if isinstance(schema, list):
        return None if value is None else mapped(next(each for each in schema if each != "null"), value)
    if not isinstance(schema, dict) or value is None:
        return value
    if schema["type"] == "record":
        return {each["name"]: mapped(each["type"], value[each["name"]]) for each in schema["fields"]}
    if schema["type"] == "array":
        return [mapped(schema["items"], item) for item in value]
    if schema["type"] == "map":
        return [(name, mapped(schema["values"], item)) for name, item in value.items()]
    return value


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(record(), st.data())
def test_columns_hold_what_fastavro_decodes(case, data):
    schema, values = case
    rows = data.draw(st.lists(values, min_size=1, max_size=6))
    chosen = data.draw(st.lists(st.sampled_from(range(len(rows))), max_size=6))
    raw = [encoded(schema, row) for row in rows]
    parsed = fastavro.parse_schema(schema)
    decoded = [mapped(schema, fastavro.schemaless_reader(io.BytesIO(each), parsed, None)) for each in raw]
    assert columns(schema, raw) == decoded
    assert columns(schema, raw, np.array(chosen, dtype=np.int64)) == [decoded[row] for row in chosen]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(record(), st.data())
def test_broken_data_are_told_and_hide_no_others(case, data):
    schema, values = case
    good = encoded(schema, data.draw(values))
    broken = bytearray(good)
    for _ in range(data.draw(st.integers(0, 3))):
        if broken:
            broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(broken)[: data.draw(st.integers(0, len(broken)))]
    compiled = Columns.compile(json.dumps(schema))
    rows = [good, cut, good]
    bad = faulty(compiled, *laid(rows), np.arange(3))
    assert not bad[0]
    assert not bad[2]
    try:
        out = io.BytesIO(cut)
        fastavro.schemaless_reader(out, fastavro.parse_schema(schema), None)
        readable = out.tell() == len(cut)
    except (ValueError, EOFError, IndexError, StopIteration, TypeError, OverflowError, MemoryError):
        readable = False
    if not readable:
        # fastavro is kinder: it takes numbers beyond 32 bits, any byte for a boolean, blocks of any size.
        assert bad[1]
    assert len(columns(schema, rows, np.flatnonzero(~bad))) == 3 - int(bad.sum())


def of(schema, *values):
    wrapped = {"type": "record", "name": "r", "fields": [{"name": "f", "type": schema}]}
    return [row["f"] for row in columns(wrapped, [encoded(wrapped, {"f": value}) for value in values])]


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
WIDE = {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 3}
NARROW = {"type": "fixed", "name": "x", "size": 5, "logicalType": "decimal", "precision": 9, "scale": 0}
DAY = dt.date(2022, 1, 8)


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (DECIMAL, [Decimal("-9999999.99"), Decimal("0.01"), Decimal("9999999.99"), Decimal("0.00")]),
        (WIDE, [Decimal("123456789012345678901234567890123456789.125"), Decimal("-1.000")]),
        (NARROW, [Decimal(-5), Decimal(999_999_999)]),
        (["null", DECIMAL], [None, Decimal("1.00")]),
        ({"type": "int", "logicalType": "date"}, [DAY]),
        ({"type": "int", "logicalType": "time-millis"}, [dt.time(1, 2, 3, 4000)]),
        ({"type": "long", "logicalType": "time-micros"}, [dt.time(1, 2, 3, 4)]),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            [dt.datetime(2022, 1, 8, tzinfo=dt.timezone.utc)],
        ),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, [dt.datetime(2022, 1, 8, 1, 1, 1, 7)]),  # noqa: DTZ001
        ({"type": "string", "logicalType": "uuid"}, ["53a0ce2c-6a8f-4a0e-9c1d-0a3d1f1b2c3d"]),
    ],
)
def test_logical_types(schema, values):
    assert of(schema, *values) == values


def test_a_decimal_beyond_its_precision_is_bad():
    wrapped = {"type": "record", "name": "r", "fields": [{"name": "f", "type": DECIMAL}]}
    raw = [b"\x08" + (number).to_bytes(4, "big", signed=True) for number in (10**9, 10**9 - 1, -(10**9), 1 - 10**9)]
    long = [b"\x14" + (number).to_bytes(10, "big", signed=True) for number in (5, -5)]
    data, offsets = laid([*raw, *long])
    made = Columns.compile(json.dumps(wrapped))
    assert faulty(made, data, offsets, np.arange(6)).tolist() == [True, False, True, False, False, False]
    assert [row["f"] for row in columns(wrapped, [raw[1], *long])] == [
        Decimal("9999999.99"),
        Decimal("0.05"),
        Decimal("-0.05"),
    ]


def test_a_union_of_several_is_a_struct_with_a_member_for_each():
    assert of(["null", "int", "string"], 5, "x", None) == [
        {"member0": 5, "member1": None},
        {"member0": None, "member1": "x"},
        None,
    ]


def test_what_is_no_record_is_the_column_value():
    assert columns("string", [encoded("string", "x")]) == [{"value": "x"}]
    assert columns(["null", "long"], [b"\x00", b"\x02\x02"]) == [{"value": None}, {"value": 1}]


def test_null_beside_a_record_leaves_its_columns_null():
    inner = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}
    assert columns(["null", inner], [b"\x02\x02", b"\x00"]) == [{"a": 1}, {"a": None}]


def test_a_type_is_found_by_its_name_in_every_place():
    inner = {"type": "record", "name": "n.i", "fields": [{"name": "a", "type": "int"}]}
    schema = {
        "type": "record",
        "name": "n.r",
        "fields": [{"name": "one", "type": inner}, {"name": "more", "type": {"type": "array", "items": "i"}}],
    }
    value = {"one": {"a": 1}, "more": [{"a": 2}, {"a": 3}]}
    assert columns(schema, [encoded(schema, value)]) == [value]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (
            {"type": "record", "name": "t", "fields": [{"name": "n", "type": ["null", "t"]}]},
            "contains the record `t` within itself",
        ),
        ({"type": "record", "name": "t", "fields": []}, "has the record `t` without a field"),
        (["null"], "a union of nothing but null"),
    ],
)
def test_what_columns_cannot_hold_is_told(schema, words):
    with pytest.raises(NoColumnsError, match=words):
        Columns.compile(json.dumps(schema))
