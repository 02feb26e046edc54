"""Avro's converter to JSON lines, as the pipeline builds it, before a registry: mixed batches, faults, decimals."""

import json
from itertools import pairwise

import numpy as np
import pytest

from penstock.converters import ConverterOptions, build
from penstock.model import Records, Slices, TopicPartition

ONE = {"type": "record", "name": "a.One", "fields": [{"name": "id", "type": "long"}, {"name": "x", "type": "double"}]}
TWO = {"type": "record", "name": "a.Two", "fields": [{"name": "name", "type": ["null", "string"], "default": None}]}
EVENT = ["null", ONE, TWO]
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}


def converter(url, **options):
    return build("avro", "json", {"schema.registry.url": url}, ConverterOptions(**options))


def records(rows):
    """Of (schema id, datum): as the reader lays out values with `strip=5`; -1 and -2 as ids stand for what has none."""
    data = [datum or b"" for _, datum in rows]
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(datum) for datum in data], out=offsets[1:])
    valid = np.array([datum is not None for _, datum in rows])
    numbers = np.arange(len(rows), dtype=np.int64)
    values = Slices(np.frombuffer(b"".join(data), dtype=np.uint8), offsets, valid)
    ids = np.array([schema_id for schema_id, _ in rows], dtype=np.int32)
    return Records(TopicPartition("t", 0), numbers, numbers, values, len(rows), ids)


def lines(converted):
    return [converted.chunk.data[a:b].tobytes().decode() for a, b in pairwise(converted.chunk.offsets.tolist())]


def test_a_batch_of_everything(registry):
    one, two = registry.add("t-one", json.dumps(ONE), "AVRO"), registry.add("t-two", json.dumps(TWO), "AVRO")
    half = b"\x00\x00\x00\x00\x00\x00\xe0\x3f"
    made = converter(registry.url)
    converted = made.convert(
        records(
            [
                (one, b"\x02" + half),
                (-2, None),
                (two, b'\x02\x06a"b'),
                (-1, b"hello"),
                (one, b"\x04" + half[:7]),
                (999_999, b""),
                (two, b"\x00"),
                (one, b"\x06" + half),
            ]
        )
    )
    found = lines(converted)
    assert [found[row] for row in (0, 2, 6, 7)] == [
        '{"id":1,"x":0.5}\n',
        '{"name":"a\\"b"}\n',
        '{"name":null}\n',
        '{"id":3,"x":0.5}\n',
    ]
    assert np.flatnonzero(converted.nulls).tolist() == [1]
    assert [fault.row for fault in converted.faults] == [3, 4, 5]
    reasons = [fault.reason for fault in converted.faults]
    assert "not Avro in Confluent's wire format" in reasons[0]
    assert reasons[1].startswith("its value does not fit the schema it names (")
    assert "BytesIO" not in reasons[1]
    assert "schema id 999999" in reasons[2]
    assert [json.loads(made.schema(code).text)["name"] for code in converted.chunk.schemas[[0, 2]]] == [
        "a.One",
        "a.Two",
    ]


def test_of_several_records_the_one_that_is_there_is_printed(registry):
    event = registry.add("t-event", json.dumps(EVENT), "AVRO")
    converted = converter(registry.url).convert(records([(event, b"\x04\x02\x02x"), (event, b"\x02\x02" + bytes(8))]))
    assert converted.faults == ()
    assert lines(converted) == [
        '{"a.One":null,"a.Two":{"name":"x"}}\n',
        '{"a.One":{"id":1,"x":0.0},"a.Two":null}\n',
    ]


@pytest.mark.parametrize(("decimals", "text"), [("BASE64", '"MDk="'), ("NUMERIC", "123.45")])
def test_decimals_as_json_decimal_format_says(registry, decimals, text):
    price = registry.add("t-price", json.dumps(PRICE), "AVRO")
    converted = converter(registry.url, decimals=decimals).convert(records([(price, b"\x04\x30\x39")]))
    assert lines(converted) == [text + "\n"]
