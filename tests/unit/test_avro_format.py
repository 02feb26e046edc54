"""Avro files: read by fastavro in every codec, blocks of 64 KiB, the same bytes however the rows came."""

import io
import itertools
import json

import fastavro
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.converters.base import Chunk, FileSchema
from penstock.formats.avro import BLOCK_SIZE, CODECS, AvroFormat
from penstock.formats.read import records

SCHEMA = FileSchema(json.dumps({"type": "record", "name": "R", "fields": [{"name": "b", "type": "bytes"}]}))
PARSED = json.loads(SCHEMA.text)


def datum(value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, PARSED, {"b": value})
    return out.getvalue()


def chunk(rows):
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    return Chunk(np.frombuffer(b"".join(rows), dtype=np.uint8), offsets)


def encode(codec, rows, cuts=(), key="topics/t/k.avro"):
    encoder = AvroFormat(codec).encoder(SCHEMA, key)
    out, edges = bytearray(), [0, *sorted(cuts), len(rows)]
    for start, end in itertools.pairwise(edges):
        if start < end:
            for data in encoder.write(chunk(rows[start:end]), slice(0, end - start)):
                out += data
    for data in encoder.finish():
        out += data
    return bytes(out)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("sizes", [[], [0], [10] * 30_000, [BLOCK_SIZE * 3, 1, BLOCK_SIZE - 3, 5]])
def test_another_reader_gets_every_record_in_every_codec(codec, sizes):
    values = [bytes([n % 251]) * size for n, size in enumerate(sizes)]
    file = encode(codec, [datum(value) for value in values])
    reader = fastavro.reader(io.BytesIO(file))
    assert reader.metadata["avro.codec"] == codec
    assert [record["b"] for record in reader] == values
    assert sum(1 for _ in records(io.BytesIO(file), "k.avro")) == len(values)


@pytest.mark.parametrize("codec", CODECS)
def test_a_block_ends_with_the_record_that_fills_it(codec):
    rows = [datum(bytes(size)) for size in (BLOCK_SIZE - 4, 1, BLOCK_SIZE, 3, 2)]
    file = encode(codec, rows)
    blocks = [block.num_records for block in fastavro.block_reader(io.BytesIO(file))]
    expected, held, count = [], 0, 0
    for row in rows:
        held, count = held + len(row), count + 1
        if held >= BLOCK_SIZE:
            expected.append(count)
            held = count = 0
    assert blocks == [*expected, *([count] if count else [])]


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(sorted(CODECS)))
def test_how_the_rows_are_handed_over_never_changes_the_bytes(data, codec):
    sizes = st.sampled_from([0, 1, 60, 5000, BLOCK_SIZE - 4, BLOCK_SIZE - 3, BLOCK_SIZE, 100_000])
    rows = [datum(bytes([n]) * size) for n, size in enumerate(data.draw(st.lists(sizes, max_size=15)))]
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=6))
    assert encode(codec, rows, cuts) == encode(codec, rows)


def test_the_sync_marker_comes_from_the_key():
    rows = [datum(b"x")]
    assert encode("null", rows, key="a") != encode("null", rows, key="b")
    assert encode("null", rows, key="a") == encode("null", rows, key="a")
