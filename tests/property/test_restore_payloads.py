"""From a file back to what Kafka had: every pair of a converter and a format, values and keys."""

import gzip
import io
import json
import sys
from dataclasses import replace

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from restored import LONGS, RICH, OneSchema, no_ids, written

from laid_out import file_of, pair, records, slices
from penstock.companions import Keys
from penstock.converters import negotiate
from penstock.converters.base import FileSchema
from penstock.converters.projection import raw
from penstock.converters.schemas import file_schema
from penstock.errors import PenstockError
from penstock.formats.avro import AvroFormat
from penstock.formats.damage import DAMAGED
from penstock.registry import Registered
from penstock.restore.payloads import part_reader, unpacked
from penstock.restore.schema_ids import SchemaIds, same

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TEXTS = st.text(max_size=12).map(str.encode)
LINES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
).map(lambda value: json.dumps(value, ensure_ascii=False).encode())
VALUES = {"json": LINES.filter(lambda line: line != b"null"), "string": TEXTS, "bytes": st.binary(max_size=12)}
PAIRS = [("json", "json"), *((c, f) for c in ("string", "bytes") for f in ("avro", "json", "bytes"))]
ROWS = st.recursive(
    st.none() | st.floats(allow_nan=False),
    lambda inner: st.fixed_dictionaries(
        {
            "u": st.none() | st.text(max_size=4) | st.lists(LONGS, max_size=3),
            "m": st.dictionaries(st.text(max_size=2), st.binary(max_size=3), max_size=2),
            "t": LONGS,
            "d": st.integers(-(2**31), 2**31 - 1),
            "f": st.binary(min_size=2, max_size=2),
            "e": st.sampled_from("AB"),
            "x": inner,
        }
    ),
    max_leaves=3,
).filter(lambda value: isinstance(value, dict))


@pytest.mark.parametrize(("converter", "form"), PAIRS)
@settings(max_examples=30)
@given(data=st.data(), separator=st.sampled_from([b"\n", b"::", b"\x00" * 3]))
def test_values_come_back_as_they_were(converter, form, data, separator):
    values = data.draw(st.lists(VALUES[converter], max_size=8))
    if form == "bytes":  # a value that holds the separator is found out by the number of records
        values = [value for value in values if separator not in value + separator[:-1]]
    written = file_of(*pair(converter, form, separator), values)
    read = part_reader(converter, form, "value", separator=separator, ids=no_ids)
    assert list(read(io.BytesIO(written), "t.x", "t")) == values


@pytest.mark.parametrize("form", ["avro", "json", "bytes"])
@pytest.mark.parametrize("converter", ["string", "bytes"])
@pytest.mark.parametrize("values", [[b"k1", b"", b"k2"], [b"k1", None, b"k2"], [None]])
def test_keys_come_back_with_their_nulls(converter, form, values):
    made, file_format = pair(converter, form)
    keys = Keys(made, negotiate(converter, form, file_format.accepts), file_format)
    prepared = keys.prepare(replace(records(values), keys=slices(values)))
    items = keys.items(prepared, slice(0, len(values)), 0)
    nullable = None in values
    file = written(file_format, keys.schema(0, nullable=nullable), [keys.encode(i, nullable=nullable) for i in items])
    read = part_reader(converter, form, "key", separator=b"\n", ids=no_ids)
    expected = [key or None for key in values] if form == "bytes" else values
    assert list(read(io.BytesIO(file), "t.keys.x", "t")) == expected


@settings(max_examples=30)
@given(rows=st.lists(ROWS, max_size=5), codec=st.sampled_from(["null", "deflate", "snappy", "bzip2"]))
def test_avro_data_come_back_byte_for_byte_behind_their_schema_s_id(rows, codec):
    plain, data = fastavro.parse_schema(raw(RICH)), []
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, plain, row)
        data.append(out.getvalue())
    registry = OneSchema("t-value", json.dumps(RICH), 258)
    schema = file_schema(json.dumps(RICH), 3, connect_meta_data=True, named={})
    read = part_reader("avro", "avro", "value", separator=b"", ids=lambda: SchemaIds(registry, {}))
    found = list(read(io.BytesIO(written(AvroFormat(codec), schema, data)), "t.avro", "t"))
    assert found == [b"\x00\x00\x00\x01\x02" + each for each in data]


def test_blocks_of_avro_data_that_a_longer_way_of_writing_made_stay_as_they_are():
    schema = {"type": "array", "items": "int"}
    data = [b"\x02\x02\x02\x04\x00", b"\x03\x04\x02\x04\x00", b"\x00"]  # two blocks; one with its size; none
    registry = OneSchema("t-value", json.dumps(schema), 1)
    read = part_reader("avro", "avro", "value", separator=b"", ids=lambda: SchemaIds(registry, {}))
    file = written(AvroFormat(), FileSchema(json.dumps(schema), "a"), data)
    assert list(read(io.BytesIO(file), "t.avro", "t")) == [b"\x00\x00\x00\x00\x01" + each for each in data]


def key_file(schema, data):
    text = json.dumps(schema, separators=(",", ":"))
    return io.BytesIO(written(AvroFormat(), FileSchema(text, "k"), data))


def test_avro_keys_with_a_null_among_them_are_of_the_key_s_own_schema():
    registry = OneSchema("t-key", '"long"', 9)
    read = part_reader("avro", "avro", "key", separator=b"", ids=lambda: SchemaIds(registry, {}))
    assert list(read(key_file(["null", "long"], [b"\x02\x04", b"\x00"]), "t", "t")) == [
        b"\x00\x00\x00\x00\x09\x04",
        None,
    ]
    assert list(read(key_file("long", [b"\x04"]), "t", "t")) == [b"\x00\x00\x00\x00\x09\x04"]


def test_avro_keys_that_are_a_union_themselves_stay_one():
    registry = OneSchema("t-key", '["null","long"]', 9)
    read = part_reader("avro", "avro", "key", separator=b"", ids=lambda: SchemaIds(registry, {}))
    found = list(read(key_file(["null", "long"], [b"\x02\x04", b"\x00"]), "t", "t"))
    assert found == [b"\x00\x00\x00\x00\x09\x02\x04", b"\x00\x00\x00\x00\x09\x00"]


SIMPLE = '{"type":"record","name":"r","doc":"x","fields":[{"name":"a","type":"int"}]}'


def test_a_schema_is_found_under_the_topic_or_its_new_name_and_looked_up_once():
    held = json.loads(file_schema(SIMPLE, 3, connect_meta_data=True, named={}).text)
    for subject, asked in (("t-value", ["t-value"]), ("u-value", ["t-value", "u-value"])):
        registry = OneSchema(subject, SIMPLE, 5)
        ids = SchemaIds(registry, {"t": "u"})
        assert [ids.require(held, "t", "value", "key") for _ in range(3)] == [5, 5, 5]
        assert registry.asked == asked


def test_a_schema_that_is_nowhere_is_registered_only_if_that_is_wanted():
    registry = OneSchema("other", SIMPLE, 5)
    with pytest.raises(PenstockError, match=r"`some/key` under neither `t-value` nor `u-value`; --register-schemas"):
        SchemaIds(registry, {"t": "u"}).require(json.loads(SIMPLE), "t", "value", "some/key")
    ids = SchemaIds(registry, {"t": "u"}, may_register=True)
    assert [ids.require(json.loads(SIMPLE), "t", "value", "key") for _ in range(2)] == [77, 77]
    assert registry.held["u-value"][0][1].text == SIMPLE


def test_of_versions_with_the_same_data_the_file_s_own_is_chosen_else_the_newest():
    texts = [SIMPLE.replace("x", letter) for letter in "cba"]
    versions = [(10 + n, Registered(text, "AVRO", n)) for n, text in zip((3, 2, 1), texts, strict=True)]
    for meta in (True, False):
        assert same(file_schema(texts[1], 2, connect_meta_data=meta, named={}).text, versions) == 12
    assert same(SIMPLE.replace("x", "of another registry"), versions) == 13
    assert same(SIMPLE.replace("int", "long"), versions) is None
    assert same(SIMPLE, [(4, Registered(SIMPLE, "JSON", 1))]) is None


@pytest.mark.parametrize(
    ("converter", "form", "body"),
    [
        ("string", "json", b'"a"\n7\n'),
        ("bytes", "json", b'"a!"\n'),
        ("bytes", "bytes", b"a\nb"),
        ("string", "avro", b"Obj\x01"),
        ("string", "avro", b"nothing"),
    ],
)
def test_what_is_no_such_file_is_known_as_damaged(converter, form, body):
    read = part_reader(converter, form, "value", separator=b"\n", ids=no_ids)
    with pytest.raises(DAMAGED):
        list(read(io.BytesIO(body), "t", "t"))


@pytest.mark.parametrize(("converter", "form"), [("avro", "bytes"), ("json", "avro"), ("string", "nothing")])
def test_a_pair_that_cannot_be_taken_back_is_named(converter, form):
    with pytest.raises(PenstockError, match=rf"values of value\.converter `{converter}` cannot .* `{form}`"):
        part_reader(converter, form, "value", separator=b"", ids=no_ids)


def test_values_without_a_separator_between_them_are_refused():
    read = part_reader("bytes", "bytes", "value", separator=b"", ids=no_ids)
    with pytest.raises(PenstockError, match=r"`o\.bin` has no separator"):
        list(read(io.BytesIO(b"ab"), "o.bin", "t"))


@pytest.mark.parametrize(("end", "pack"), [("", bytes), (".gz", gzip.compress), (".zst", zstd.compress)])
def test_compressed_files_are_unpacked_by_their_name(end, pack):
    read = part_reader("bytes", "bytes", "value", separator=b"\n", ids=no_ids)
    assert list(read(io.BytesIO(pack(b"a\nb\n" * 1000)), f"t.bin{end}", "t")) == [b"a", b"b"] * 1000
    assert unpacked(io.BytesIO(pack(b"x")), f"t.bin{end}").read() == b"x"
