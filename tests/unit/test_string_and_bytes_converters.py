"""What strings and raw bytes become in every kind."""

import io
import json

import fastavro
import pytest

from laid_out import file_of, pair, records, rows
from penstock.errors import ConfigError

TEXTS = ["", "plain", "é中😀", 'quoted "x" \\ and \t', "two\nlines", "nul\0inside"]
VALUES = [text.encode() for text in TEXTS]


def converted(converter, file_format, values, **options):
    made, _ = pair(converter, file_format, **options)
    return made.convert(records(values, made.gather.separator))


def read_avro(data):
    reader = fastavro.reader(io.BytesIO(data))
    return reader.writer_schema, list(reader)


def test_strings_as_lines_are_json_strings_one_a_line():
    found = rows(converted("string", "json", VALUES))
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in found)
    assert [json.loads(line) for line in found] == TEXTS


def test_strings_as_bytes_are_copied_with_the_separator():
    assert rows(converted("string", "bytes", VALUES)) == [value + b"\n" for value in VALUES]
    assert rows(converted("string", "bytes", VALUES, separator=b"")) == VALUES
    assert rows(converted("string", "bytes", VALUES, separator=b";;")) == [value + b";;" for value in VALUES]


def test_strings_in_avro_are_the_bare_type():
    assert read_avro(file_of(*pair("string", "avro"), VALUES)) == ("string", TEXTS)


@pytest.mark.parametrize("file_format", ["json", "avro", "bytes"])
@pytest.mark.parametrize(
    "values",
    [
        [b"\xff"],
        [b"good", b"bad \xe4\xb8", b"good"],
        [b"\xc3", b"\xa9"],  # halves of one character: together they would be good
        [b"\xed\xa0\x80"],  # a surrogate
        [b"\xf0\x9f", b"\x98\x80"],
    ],
)
def test_malformed_bytes_are_replaced_in_each_value_by_itself(file_format, values):
    expected = [value.decode("utf-8", "replace") for value in values]
    if file_format == "avro":
        assert read_avro(file_of(*pair("string", "avro"), values))[1] == expected
        return
    found = rows(converted("string", file_format, values, separator=b""))
    assert [json.loads(each) if file_format == "json" else each.decode() for each in found] == expected


def test_bytes_as_lines_are_base64_strings_as_connect_writes_them():
    values = [b"", b"\x00\xff", b"hello", bytes(range(256))]
    assert rows(converted("bytes", "json", values))[:3] == [b'""\n', b'"AP8="\n', b'"aGVsbG8="\n']
    assert b"+" in rows(converted("bytes", "json", values))[3]  # the standard alphabet, not the one for URLs


def test_bytes_are_copied_with_the_separator():
    values = [b"", b"\x00\xff", b"a\nb"]
    assert rows(converted("bytes", "bytes", values)) == [value + b"\n" for value in values]
    assert rows(converted("bytes", "bytes", values, separator=b"")) == values


def test_bytes_in_avro_are_the_bare_type():
    values = [b"", b"\x00\xff", bytes(300)]
    assert read_avro(file_of(*pair("bytes", "avro"), values)) == ("bytes", values)


@pytest.mark.parametrize("converter", ["string", "bytes"])
@pytest.mark.parametrize("file_format", ["json", "avro", "bytes"])
def test_nulls_are_told_and_are_no_faults(converter, file_format):
    found = converted(converter, file_format, [b"a", None, b"", None])
    assert found.faults == ()
    assert found.nulls.tolist() == [False, True, False, True]
    assert converted(converter, file_format, [b"a", b""]).nulls is None


@pytest.mark.parametrize(("converter", "file_format"), [("json", "avro"), ("json", "bytes"), ("avro", "bytes")])
def test_a_pair_that_does_not_fit_is_named_with_those_that_do(converter, file_format):
    with pytest.raises(
        ConfigError, match=f"value.converter `{converter}`.* cannot be written with format.class `{file_format}`"
    ):
        pair(converter, file_format)
