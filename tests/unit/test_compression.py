"""Compressed files: read by others, and the same bytes however the rows came."""

import gzip
import io
import itertools
import subprocess

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.converters.base import SCHEMALESS, Chunk
from penstock.errors import PenstockError
from penstock.formats import FORMATS, FormatOptions
from penstock.formats.compression import COMPRESSIONS, PIECE_SIZE
from penstock.formats.read import records

SEPARATED = [b'{"a":%d}\n' % n for n in range(5)]


def chunk(rows):
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    return Chunk(np.frombuffer(b"".join(rows), dtype=np.uint8), offsets)


def encode(made, rows, cuts=()):
    """The file's bytes; `cuts`: where the rows are divided into chunks."""
    encoder = made.encoder(SCHEMALESS, "topics/t/k")
    out, edges = bytearray(), [0, *sorted(cuts), len(rows)]
    for start, end in itertools.pairwise(edges):
        if start < end:
            for data in encoder.write(chunk(rows[start:end]), slice(0, end - start)):
                out += data
    for data in encoder.finish():
        out += data
    return bytes(out)


def made(name, level=-1, kind="json"):
    return FORMATS[kind](FormatOptions(compression=name, compression_level=level))


@pytest.mark.parametrize(
    ("name", "kind", "extension"),
    [
        ("none", "json", ".json"),
        ("gzip", "json", ".json.gz"),
        ("zstd", "json", ".json.zst"),
        ("gzip", "bytes", ".bin.gz"),
        ("zstd", "bytes", ".bin.zst"),
        ("gzip", "avro", ".avro"),
    ],
)
def test_the_extension_says_what_is_inside_and_how_it_is_packed(name, kind, extension):
    assert made(name, kind=kind).extension == extension


@pytest.mark.parametrize("name", COMPRESSIONS)
@pytest.mark.parametrize("level", range(-1, 10))
def test_others_read_every_level(name, level):
    rows = SEPARATED * 20_000
    file = encode(made(name, level), rows)
    codec = "gzip" if name == "gzip" else "zstd"
    assert pa.CompressedInputStream(pa.BufferReader(file), codec).read() == b"".join(rows)
    assert (len(file) < len(b"".join(rows)) / 4) == (level != 0 or name == "zstd")
    command = ["gzip", "-dc"] if name == "gzip" else None
    if command is not None:
        assert subprocess.run(command, input=file, capture_output=True, check=True).stdout == b"".join(rows)


def test_a_gzip_file_carries_neither_time_nor_name():
    file = encode(made("gzip"), SEPARATED)
    assert file[:4] == b"\x1f\x8b\x08\x00"
    assert file[4:8] == bytes(4)


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_a_file_without_a_row_is_a_valid_empty_one(name):
    file = encode(made(name), [])
    codec = "gzip" if name == "gzip" else "zstd"
    assert pa.CompressedInputStream(pa.BufferReader(file), codec).read() == b""


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(sorted(COMPRESSIONS)), st.sampled_from([-1, 0, 1, 6]))
def test_how_the_rows_are_handed_over_never_changes_the_bytes(data, name, level):
    sizes = data.draw(st.lists(st.sampled_from([0, 1, 7, 1000, PIECE_SIZE - 1, PIECE_SIZE, 150_000]), max_size=12))
    random = np.random.default_rng(len(sizes))
    rows = [bytes(random.integers(0, 1 + n % 256, size, dtype=np.uint8)) for n, size in enumerate(sizes)]
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=6))
    assert encode(made(name, level), rows, cuts) == encode(made(name, level), rows)


def test_packed_objects_are_printed_like_others():
    assert list(records(io.BytesIO(encode(made("gzip"), SEPARATED)), "k.json.gz")) == [{"a": n} for n in range(5)]
    assert list(records(io.BytesIO(encode(made("zstd"), [b"x\n", b"y\n"])), "k.bin.zst")) == ["x", "y"]
    for key in ("k.json.gz", "k.json.zst"):
        with pytest.raises(PenstockError, match=f"`{key}` is damaged after record 0"):
            list(records(io.BytesIO(b"no such thing"), key))
    whole = encode(made("gzip"), SEPARATED)
    with pytest.raises(PenstockError, match="damaged"):
        list(records(io.BytesIO(whole[:-3]), "k.json.gz"))
    assert gzip.GzipFile(fileobj=io.BytesIO(whole)).read() == b"".join(SEPARATED)
