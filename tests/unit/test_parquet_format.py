"""Parquet files, read by pyarrow and polars: columns of Avro schemas, columns found in JSON documents."""

import io
import json

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from avro_cases import encoded
from penstock.converters.base import SCHEMALESS, Chunk, FileSchema
from penstock.formats.inference import Shape
from penstock.formats.parquet import CODECS, ParquetFormat
from penstock.spool import Budget

SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "t", "type": ["null", "string"]},
        {"name": "l", "type": {"type": "array", "items": "int"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
TEXT = json.dumps(SCHEMA)
ROWS = [{"n": n, "t": f"x{n}" * 20 if n % 3 else None, "l": list(range(n % 4)), "at": n} for n in range(500)]
DATA = [encoded(SCHEMA, row) for row in ROWS]


def chunk(data):
    offsets = np.zeros(len(data) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in data], out=offsets[1:])
    return Chunk(np.frombuffer(b"".join(data), dtype=np.uint8), offsets)


def written(made, schema, data, step=0):
    encoder, out = made.encoder(schema, "k"), []
    for start in range(0, len(data), step or len(data) or 1):
        part = data[start : start + (step or len(data))]
        out += [bytes(each) for each in encoder.write(chunk(part), slice(0, len(part)))]
    return b"".join([*out, *(bytes(each) for each in encoder.finish())])


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_read_by_others(codec):
    body = written(ParquetFormat(codec), FileSchema(TEXT, "f"), DATA)
    file = pq.ParquetFile(io.BytesIO(body))
    expected = {"none": "UNCOMPRESSED", "lz4_raw": "LZ4"}.get(codec, codec.upper())
    assert file.metadata.row_group(0).column(0).compression == expected
    assert json.loads(file.metadata.metadata[b"parquet.avro.schema"]) == SCHEMA
    table = file.read()
    assert table["n"].to_pylist() == [row["n"] for row in ROWS]
    assert table["l"].to_pylist() == [row["l"] for row in ROWS]
    assert table.schema.field("at").type == pa.timestamp("ms", "UTC")
    assert pl.read_parquet(body)["t"].to_list() == [row["t"] for row in ROWS]


def test_names_end_as_the_connector_s_do():
    endings = {codec: ParquetFormat(codec).extension for codec in CODECS}
    assert endings == {
        "none": ".parquet",
        "snappy": ".snappy.parquet",
        "gzip": ".gz.parquet",
        "brotli": ".br.parquet",
        "lz4": ".lz4raw.parquet",
        "lz4_raw": ".lz4raw.parquet",
        "zstd": ".zstd.parquet",
    }


@pytest.mark.parametrize("step", [1, 7, 499])
@pytest.mark.parametrize("schema", [FileSchema(TEXT, "f"), SCHEMALESS], ids=["avro", "json"])
def test_row_groups_are_bounded_and_do_not_depend_on_batches(step, schema):
    data = DATA if schema.text else [json.dumps(row).encode() + b"\n" for row in ROWS]
    budget = Budget(1)
    made = ParquetFormat("zstd", budget, group_size=2000)
    whole = written(made, schema, data)
    assert written(made, schema, data, step) == whole
    assert budget.spilled > 0
    assert budget.used == 0
    budget.close()
    file = pq.ParquetFile(io.BytesIO(whole))
    sizes = [file.metadata.row_group(at).num_rows for at in range(file.metadata.num_row_groups)]
    assert len(sizes) > 5
    assert max(sizes) < 100
    assert file.read()["n"].to_pylist() == list(range(500))


@pytest.mark.parametrize("schema", [FileSchema(TEXT, "f"), SCHEMALESS], ids=["avro", "json"])
def test_a_row_group_is_decoded_in_pieces(monkeypatch, schema):
    data = DATA if schema.text else [json.dumps(row).encode() + b"\n" for row in ROWS]
    whole = pq.read_table(io.BytesIO(written(ParquetFormat(), schema, data)))
    monkeypatch.setattr("penstock.formats.parquet._PIECE_SIZE", 1000)
    body = written(ParquetFormat(), schema, data)
    assert pq.ParquetFile(io.BytesIO(body)).metadata.num_row_groups == 1
    assert pq.read_table(io.BytesIO(body)).equals(whole)


def test_a_file_without_a_row_is_a_file():
    for schema in (FileSchema(TEXT, "f"), SCHEMALESS):
        assert pq.read_table(io.BytesIO(written(ParquetFormat(), schema, []))).num_rows == 0


def test_what_columns_cannot_hold_is_told_before_a_file_is_opened():
    tree = {"type": "record", "name": "t", "fields": [{"name": "next", "type": ["null", "t"]}]}
    words = ParquetFormat().refuses(FileSchema(json.dumps(tree), "f"))
    assert words == "contains the record `t` within itself, which columns cannot hold"
    assert ParquetFormat().refuses(FileSchema(TEXT, "f")) is None
    assert ParquetFormat().refuses(SCHEMALESS) is None


def found(*documents):
    """Columns and rows that documents become, whichever way they are handed over."""
    lines = [text.encode() + b"\n" for text in documents]
    body = written(ParquetFormat(), SCHEMALESS, lines)
    assert body == written(ParquetFormat(), SCHEMALESS, lines, 1)
    table = pq.read_table(io.BytesIO(body))
    return {field.name: str(field.type) for field in table.schema}, table.to_pylist()


@pytest.mark.parametrize(
    ("documents", "kind", "values"),
    [
        (["1", "null", "2"], "int64", [1, None, 2]),
        (["1", "2.5"], "double", [1.0, 2.5]),
        (["9223372036854775807"], "int64", [2**63 - 1]),
        (["9223372036854775808", "1"], "double", [2.0**63, 1.0]),
        (["true", "null"], "bool", [True, None]),
        (["true", "1"], "string", ["true", "1"]),
        (['"2020-01-01"', '"2020-01-01T00:00:00Z"'], "string", ["2020-01-01", "2020-01-01T00:00:00Z"]),
        (['"x"', "1", '{"a": [1]}', "[null]"], "string", ["x", "1", '{"a":[1]}', "[null]"]),
        (["null", "[null, 1]", "[]"], "list<element: int64>", [None, [None, 1], []]),
        (["[1]", '["x"]'], "list<element: string>", [["1"], ["x"]]),
        (["{}", "null"], "string", ["{}", None]),
        (["null"], "string", [None]),
        (["[]"], "list<element: string>", [[]]),
        (['{"x": 1}', '{"y": "z"}'], "struct<x: int64, y: string>", [{"x": 1, "y": None}, {"x": None, "y": "z"}]),
    ],
)
def test_types_are_those_that_fit_every_document(documents, kind, values):
    columns, rows = found(*(f'{{"a": {text}}}' for text in documents))
    assert columns == {"a": kind}
    assert [row["a"] for row in rows] == values
    turned, _ = found(*(f'{{"a": {text}}}' for text in reversed(documents)))
    assert "struct" in kind or turned == columns


def test_what_is_no_object_is_the_column_value():
    assert found("5", '{"a": 1}') == (
        {"value": "int64", "a": "int64"},
        [{"value": 5, "a": None}, {"value": None, "a": 1}],
    )
    assert found("{}", "{}") == ({"value": "string"}, [{"value": None}] * 2)


def test_what_is_nested_very_deeply_is_text():
    _, (row,) = found('{"a": ' + "[" * 200 + "1" + "]" * 200 + "}")
    inner = row["a"]
    while isinstance(inner, list):
        (inner,) = inner
    assert inner.startswith("[[")


def test_documents_are_typed_once_and_then_only_checked():
    shape = Shape()
    shape.see(b'{"a": 1}\n')
    before = shape.found
    shape.see(b'{"a": null}\n{"a": 2}\n{}\n')
    assert shape.found is before


def test_the_footer_carries_no_schema_of_arrow_s_own():
    assert b"ARROW:schema" not in written(ParquetFormat("gzip"), FileSchema(TEXT, "f"), DATA[:3])
