"""From Parquet files back to what Kafka had, values and keys."""

import io
import json

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from restored import LONGS, RICH, OneSchema, decoded, encoded, no_ids, written

from laid_out import file_of, pair
from penstock.converters.base import FileSchema
from penstock.converters.projection import raw
from penstock.converters.schemas import file_schema
from penstock.formats.parquet import ParquetFormat
from penstock.restore.payloads import part_reader
from penstock.restore.schema_ids import SchemaIds

FLAT = {
    "type": "record",
    "name": "flat",
    "namespace": "n.s",
    "fields": [
        *(field for field in RICH["fields"] if field["name"] in "utdfe"),
        {"name": "i", "type": {"type": "record", "name": "inner", "fields": [{"name": "a", "type": ["int", "null"]}]}},
        {"name": "b", "type": ["null", "n.s.inner", "e", {"type": "map", "values": "inner"}, "boolean"]},
        {"name": "p", "type": {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 2}},
        {"name": "q", "type": {"type": "fixed", "name": "q", "size": 3, "logicalType": "decimal", "precision": 5}},
        {"name": "w", "type": {"type": "array", "items": ["null", {"type": "int", "logicalType": "time-millis"}]}},
    ],
}
INNER = st.fixed_dictionaries({"a": st.none() | st.integers(-(2**31), 2**31 - 1)})
FLAT_ROWS = st.fixed_dictionaries(
    {
        "u": st.none() | st.text(max_size=4) | st.lists(LONGS, max_size=3),
        "t": LONGS,
        "d": st.integers(-(2**31), 2**31 - 1),
        "f": st.binary(min_size=2, max_size=2),
        "e": st.sampled_from("AB"),
        "i": INNER,
        "b": st.none()
        | st.booleans()
        | INNER.map(lambda value: ("n.s.inner", value))
        | st.sampled_from("AB").map(lambda value: ("n.s.e", value))
        | st.dictionaries(st.text(max_size=2), INNER, max_size=2).map(lambda value: ("map", value)),
        "p": st.integers(-(10**40) + 1, 10**40 - 1).map(lambda n: n.to_bytes(17, "big", signed=True)),
        "q": st.integers(-99_999, 99_999).map(lambda n: n.to_bytes(3, "big", signed=True)),
        "w": st.lists(st.none() | st.integers(0, 86_399_999), max_size=3),
    }
)


@settings(max_examples=30)
@given(rows=st.lists(FLAT_ROWS, max_size=5))
def test_avro_data_come_back_from_parquet_as_equal_data(rows):
    plain = fastavro.parse_schema(raw(FLAT))
    data, registry = encoded(plain, rows), OneSchema("t-value", json.dumps(FLAT), 258)
    schema = file_schema(json.dumps(FLAT), 3, connect_meta_data=True, named={})
    file = written(ParquetFormat(), schema, data)
    read = part_reader("avro", "parquet", "value", separator=b"", ids=lambda: SchemaIds(registry, {}))
    found = list(read(io.BytesIO(file), "t.parquet", "t"))
    assert [each[:5] for each in found] == [b"\x00\x00\x00\x01\x02"] * len(rows)
    real = fastavro.parse_schema({**FLAT, "fields": [f if f["name"] in "pq" else raw(f) for f in FLAT["fields"]]})
    assert [decoded(real, each[5:]) for each in found] == [decoded(real, each) for each in data]


@pytest.mark.parametrize("converter", ["string", "bytes"])
def test_texts_and_bytes_come_back_from_parquet(converter):
    values = [b"a", b"", "é".encode()]
    read = part_reader(converter, "parquet", "value", separator=b"", ids=no_ids)
    assert list(read(io.BytesIO(file_of(*pair(converter, "parquet"), values)), "t.parquet", "t")) == values


def test_documents_come_back_from_parquet_with_the_members_that_their_columns_hold():
    values = [b'{"a":1,"b":{"c":[1,2]}}', b'{"a":null,"b":{}}', b'{"d":"x"}']
    read = part_reader("json", "parquet", "value", separator=b"", ids=no_ids)
    found = [json.loads(each) for each in read(io.BytesIO(file_of(*pair("json", "parquet"), values)), "t.parquet", "t")]
    assert found == [{"a": 1, "b": {"c": [1, 2]}}, {"b": {"c": None}}, {"d": "x"}]


@pytest.mark.parametrize(
    ("own", "rows"),
    [("long", [4, None]), (FLAT["fields"][5]["type"], [{"a": 1}, {"a": None}]), ("string", ["k", None])],
)
def test_keys_come_back_from_parquet(own, rows):
    nullable = None in rows
    schema = ["null", own] if nullable else own
    wrapped = {"type": "record", "name": "RecordKey", "fields": [{"name": "key", "type": schema}]}
    text = json.dumps(wrapped, separators=(",", ":"))
    data, registry = encoded(fastavro.parse_schema(schema), rows), OneSchema("t-key", json.dumps(own), 9)
    converter = "string" if own == "string" else "avro"
    read = part_reader(converter, "parquet", "key", separator=b"", ids=lambda: SchemaIds(registry, {}))
    found = list(read(io.BytesIO(written(ParquetFormat(), FileSchema(text, "k"), data)), "t.keys.parquet", "t"))
    if own == "string":
        assert found == [b"k", None]
    else:
        plain = fastavro.parse_schema(own)
        assert [each and decoded(plain, each[5:]) for each in found] == rows
