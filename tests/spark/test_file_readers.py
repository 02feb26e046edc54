"""Spark's own readers open the files that our formats write."""

import decimal
import json

import numpy as np
import pytest

from avro_cases import encoded
from penstock.converters.base import SCHEMALESS, Chunk, FileSchema
from penstock.formats import FORMATS, FormatOptions

pytestmark = pytest.mark.spark

SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "t", "type": ["null", "string"]},
        {"name": "l", "type": {"type": "array", "items": {"type": "map", "values": "int"}}},
        {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "e", "type": {"type": "enum", "name": "e", "symbols": ["A", "B"]}},
    ],
}
ROWS = [
    {
        "n": n,
        "t": None if n % 2 else f"x{n}",
        "l": [{"k": n}],
        "d": decimal.Decimal(f"{n}.25"),
        "at": n,
        "e": "AB"[n % 2],
    }
    for n in range(5)
]


def file_of(made, schema, data):
    offsets = np.zeros(len(data) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in data], out=offsets[1:])
    chunk = Chunk(np.frombuffer(b"".join(data), dtype=np.uint8), offsets, positions=np.arange(len(data)))
    encoder = made.encoder(schema, "k")
    return b"".join(bytes(each) for each in (*encoder.write(chunk, slice(0, len(data))), *encoder.finish()))


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4"])
def test_parquet_of_avro_data(spark, tmp_path, codec):
    made = FORMATS["parquet"](FormatOptions(parquet_codec=codec))
    body = file_of(made, FileSchema(json.dumps(SCHEMA), "f"), [encoded(SCHEMA, row) for row in ROWS])
    (tmp_path / f"f{made.extension}").write_bytes(body)
    found = spark.read.parquet(str(tmp_path)).orderBy("n")
    assert dict(found.dtypes) == {
        "n": "bigint",
        "t": "string",
        "l": "array<map<string,int>>",
        "d": "decimal(12,2)",
        "at": "timestamp",
        "e": "string",
    }
    rows = [(row.n, row.t, row.l, row.d, row.at.timestamp(), row.e) for row in found.collect()]
    assert rows == [(row["n"], row["t"], row["l"], row["d"], row["at"] / 1000, row["e"]) for row in ROWS]


def test_parquet_of_json_documents(spark, tmp_path):
    made = FORMATS["parquet"](FormatOptions())
    documents = [b'{"a":1,"b":{"c":[1,null]}}\n', b'{"a":2.5,"z":"x"}\n']
    (tmp_path / f"f{made.extension}").write_bytes(file_of(made, SCHEMALESS, documents))
    rows = [row.asDict(recursive=True) for row in spark.read.parquet(str(tmp_path)).orderBy("a").collect()]
    assert rows == [{"a": 1.0, "b": {"c": [1, None]}, "z": None}, {"a": 2.5, "b": None, "z": "x"}]


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_json_lines_and_block_gzip(spark, tmp_path, compression):
    lines = [json.dumps({"n": n}).encode() + b"\n" for n in range(5)]
    for name in ("json", "block_gzip"):
        made = FORMATS[name](FormatOptions(compression=compression, block_size=20))
        (tmp_path / f"{name}{made.extension}").write_bytes(file_of(made, SCHEMALESS, lines))
        found = spark.read.json(str(tmp_path / f"{name}{made.extension}"))
        assert [row.n for row in found.orderBy("n").collect()] == list(range(5))
