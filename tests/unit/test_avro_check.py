"""Payloads that are copied are looked at: a broken one is a bad record, not a broken file."""

import io
import json

import fastavro
import numpy as np
import pytest

from avro_cases import encoded
from penstock.converters.avro_check import checker

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
