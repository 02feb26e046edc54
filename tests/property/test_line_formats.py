"""Every pair of a converter without schemas and a format: what goes in comes out, however it is handed over."""

import gzip
import io
import json
import random
import string

import fastavro
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from laid_out import file_of, pair, records, rows
from penstock.converters import KINDS
from penstock.errors import ConfigError
from penstock.formats import FORMATS


def fits(converter, file_format):
    try:
        pair(converter, file_format)
    except ConfigError:
        return False
    return True


WITH_SCHEMAS = ("avro", "json_envelope")
PAIRS = [(c, f) for c in KINDS if c not in WITH_SCHEMAS for f in FORMATS if fits(c, f)]
SIZES = st.lists(st.integers(0, 4), max_size=6)
BLANKS = st.text(" \t\r\n", max_size=2)
NUMBERS = st.one_of(
    st.integers(-(10**40), 10**40).map(str),
    st.sampled_from(["0", "-0", "1e400", "-1.5E-7", "0.1", "123456789012345678901234567890.5", "9007199254740993"]),
)
STRINGS = st.one_of(
    st.text(max_size=8).map(json.dumps),
    st.text(string.ascii_letters + "é中😀\u2028\u0085", max_size=8).map(
        lambda text: json.dumps(text, ensure_ascii=False)
    ),
    st.sampled_from([r'"\ud83d\ude00"', r'"\u0000"', r'"\/"', '""']),
)
LEAVES = st.one_of(NUMBERS, STRINGS, st.sampled_from(["null", "true", "false"]))


@st.composite
def spaced(draw, parts, opening, closing):
    """Members with white space wherever JSON allows it."""
    inside = f"{draw(BLANKS)},{draw(BLANKS)}".join(parts)
    return f"{opening}{draw(BLANKS)}{inside}{draw(BLANKS)}{closing}"


def containers(inner):
    member = st.builds(lambda name, blank, value: f"{name}:{blank}{value}", STRINGS, BLANKS, inner)
    return st.one_of(
        st.lists(inner, max_size=3).flatmap(lambda parts: spaced(parts, "[", "]")),
        st.lists(member, max_size=3).flatmap(lambda parts: spaced(parts, "{", "}")),
    )


DOCUMENTS = st.builds(
    lambda before, text, behind: f"{before}{text}{behind}".encode(), BLANKS, st.recursive(LEAVES, containers), BLANKS
)
RAW = st.one_of(st.binary(max_size=12), st.sampled_from([b"\xc3", b"\xa9", b"\n", b"\r\n"]))
VALUES = {"json": DOCUMENTS, "string": st.one_of(st.text(max_size=8).map(str.encode), RAW), "bytes": RAW}
SEPARATORS = st.sampled_from([b"\n", b"", b"::"])


def numbers_kept(text):
    """A document with its numbers as they are written."""
    return json.loads(text, parse_int=str, parse_float=str)


def meant(converter, values):
    """What a reader of the file should find."""
    if converter == "json":
        return [found for value in values if value is not None for found in [numbers_kept(value)] if found is not None]
    good = [value for value in values if value is not None]
    return [value.decode("utf-8", "replace") for value in good] if converter == "string" else good


@pytest.mark.parametrize(("converter", "file_format"), PAIRS)
@settings(max_examples=80, deadline=None)
@given(data=st.data(), sizes=SIZES, separator=SEPARATORS, codec=st.sampled_from(["null", "deflate", "snappy", "bzip2"]))
def test_the_bytes_of_a_file_do_not_depend_on_the_batches(converter, file_format, data, sizes, separator, codec):
    values = data.draw(st.lists(st.none() | VALUES[converter], max_size=12))
    made = pair(converter, file_format, separator, codec)
    assert file_of(*made, values, sizes) == file_of(*made, values) == file_of(*made, values, [1] * len(values))


@pytest.mark.parametrize(("converter", "file_format"), PAIRS)
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_reading_a_file_gives_what_went_in(converter, file_format, data):
    values = data.draw(st.lists(st.none() | VALUES[converter], max_size=8))
    written, expected = file_of(*pair(converter, file_format), values), meant(converter, values)
    if file_format == "block_gzip":
        written = gzip.decompress(written) if written else b""
    if file_format == "parquet":
        found = pq.read_table(io.BytesIO(written))
        assert len(found) == len(expected)
        if converter != "json":
            assert found["value"].to_pylist() == expected
        return
    if file_format == "avro":
        assert list(fastavro.reader(io.BytesIO(written))) == expected
    elif file_format == "bytes" or (file_format == "block_gzip" and converter != "json"):
        assert written == b"".join((e.encode() if converter == "string" else e) + b"\n" for e in expected)
    else:
        lines = written.split(b"\n")
        assert lines.pop() == b""
        if converter == "bytes":
            expected = [json.loads(rows(pair("bytes", "json")[0].convert(records([each])))[0]) for each in expected]
        assert [numbers_kept(line) for line in lines] == expected


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "bzip2"])
def test_blocks_of_avro_files_do_not_depend_on_the_batches_either(codec):
    pick = random.Random(codec)
    values = [pick.randbytes(pick.choice([0, 3, 500, 20_000, 65_530, 200_000])) for _ in range(60)]
    made = pair("bytes", "avro", codec=codec)
    whole = file_of(*made, values)
    for sizes in ([1] * 60, [7] * 9, [59], [0, 30]):
        assert file_of(*made, values, sizes) == whole
    assert list(fastavro.reader(io.BytesIO(whole))) == values


BAD = [b"", b"{", b'{"a":1}}', b"1 2", b"nul", b"{'a':1}", b'"\xff"', b"[1,]", b"01", b"1\n2", b"\xef\xbb\xbf1", b"NaN"]


@settings(max_examples=200, deadline=None)
@given(good=st.lists(DOCUMENTS, max_size=6), at=st.integers(0, 6), bad=st.sampled_from(BAD))
@example(good=[b"1", b"2"], at=0, bad=b"1 2")
@example(good=[b"1", b"2"], at=1, bad=b"[" * 1_000_000)
def test_a_value_that_is_no_document_is_found_at_its_row(good, at, bad):
    values = [*good[:at], bad, *good[at:]]
    made, _ = pair("json", "json")
    found = made.convert(records(values, made.gather.separator))
    assert [fault.row for fault in found.faults] == [min(at, len(good))]
    alone = [rows(made.convert(records([value], made.gather.separator)))[0] for value in values]
    assert rows(found) == alone


@settings(max_examples=50, deadline=None)
@given(values=st.lists(st.sampled_from([b"1", *BAD]), min_size=1, max_size=8))
def test_every_value_at_fault_is_told_in_row_order(values):
    made, _ = pair("json", "json")
    found = made.convert(records(values, made.gather.separator))
    assert [fault.row for fault in found.faults] == [row for row, value in enumerate(values) if value != b"1"]


def test_deep_documents_are_copied():
    document = b'{"a":[' * 100 + b"1" + b"]}" * 100
    made, _ = pair("json", "json")
    assert rows(made.convert(records([document], made.gather.separator))) == [document + b"\n"]
    spread = document.replace(b":", b":\n")
    (line,) = rows(made.convert(records([spread], made.gather.separator)))
    assert line.replace(b" ", b"") == document + b"\n"
