"""From a file back to what Kafka had: every pair of a converter and a format, values and keys."""

import gzip
import io
import json
import sys
from dataclasses import replace

import fastavro
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laid_out import file_of, pair, records, slices
from penstock.companions import Keys
from penstock.converters import negotiate
from penstock.converters.base import Chunk, FileSchema
from penstock.converters.bytes import BytesConverter
from penstock.converters.framed import FramedConverter, Frames
from penstock.converters.projection import raw
from penstock.converters.schemas import file_schema
from penstock.envelope import _around
from penstock.errors import PenstockError
from penstock.formats.avro import AvroFormat
from penstock.formats.damage import DAMAGED
from penstock.formats.parquet import ParquetFormat
from penstock.registry import Registered
from penstock.restore.envelopes import EnvelopeRecords
from penstock.restore.frames import DelimitedRecords, LengthRecords
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
RICH = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "u", "type": ["null", "string", {"type": "array", "items": "long"}]},
        {"name": "m", "type": {"type": "map", "values": {"type": "bytes", "logicalType": "decimal", "precision": 4}}},
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "d", "type": {"type": "int", "logicalType": "date"}},
        {"name": "f", "type": {"type": "fixed", "name": "f", "size": 2}},
        {"name": "e", "type": {"type": "enum", "name": "e", "symbols": ["A", "B"]}},
        {"name": "x", "type": ["null", "double", "r"]},
    ],
}
LONGS = st.integers(-(2**63), 2**63 - 1)
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


def no_ids():
    raise AssertionError


class OneSchema:
    """A registry with one version of a subject."""

    def __init__(self, subject, text, schema_id):
        self.held, self.asked = {subject: [(schema_id, Registered(text, "AVRO", 3))]}, []

    def versions(self, subject):
        self.asked.append(subject)
        return self.held.get(subject, [])

    def register(self, subject, text):
        self.held[subject] = [(77, Registered(text, "AVRO", 1))]
        return 77


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


def written(file_format, schema, data):
    """A file of encoded data."""
    offsets = np.zeros(len(data) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in data], out=offsets[1:])
    encoder = file_format.encoder(schema, "topics/t/key")
    chunk = Chunk(np.frombuffer(b"".join(data), dtype=np.uint8), offsets)
    return b"".join(map(bytes, [*encoder.write(chunk, slice(0, len(data))), *encoder.finish()]))


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


def encoded(schema, rows):
    data = []
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, row)
        data.append(out.getvalue())
    return data


def decoded(schema, datum):
    return fastavro.schemaless_reader(io.BytesIO(datum), schema, None, return_named_type=True)


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


@settings(max_examples=60)
@given(
    rows=st.lists(st.tuples(st.none() | st.binary(max_size=4), st.binary(max_size=6)), max_size=6),
    frames=st.sampled_from(
        [
            Frames(keys=True, lengths=True),
            Frames(lengths=True),
            Frames(keys=True, key_delimiter=b"::", value_delimiter=b"\n"),
        ]
    ),
)
def test_records_in_frames_come_back_with_their_keys(rows, frames):
    if not frames.lengths:
        clean = bytes.maketrans(b":\n", b"xx")
        rows = [(key and key.translate(clean), value.translate(clean)) for key, value in rows]
    made = FramedConverter(BytesConverter("bytes"), frames)
    laid = replace(records([value for _, value in rows]), keys=slices([key for key, _ in rows]))
    body = made.convert(laid).chunk.data.tobytes() if rows else b""
    read = LengthRecords(frames.keys) if frames.lengths else DelimitedRecords(b"::", b"\n")
    assert (read.carried == frozenset({"key"})) == frames.keys
    found = [(each.key, each.value) for each in read.read(io.BytesIO(gzip.compress(body)), "t.gz", "t")]
    assert found == [(key or None if frames.keys else None, value) for key, value in rows]


@pytest.mark.parametrize(
    ("read", "body"),
    [
        (LengthRecords(has_keys=False), b"\x00\x00\x00\x02a"),
        (LengthRecords(has_keys=True), b"\x00\x00\x00\x01a\x00"),
        (DelimitedRecords(b":", b"\n"), b"a\n"),
        (DelimitedRecords(b":", b"\n"), b"a:b"),
    ],
)
def test_broken_frames_are_known_as_damaged(read, body):
    with pytest.raises(DAMAGED):
        list(read.read(io.BytesIO(body), "t", "t"))


USER = {"type": "record", "name": "User", "namespace": "n", "fields": [{"name": "id", "type": "long"}]}
ORDER = {"type": "record", "name": "Order", "namespace": "m", "fields": [{"name": "by", "type": USER}]}


class TwoSchemas(OneSchema):
    """A registry with a version of the keys' subject and one of the values'."""

    def __init__(self, key, value):
        super().__init__("t-key", json.dumps(key), 1)
        self.held["t-value"] = [(2, Registered(json.dumps(value), "AVRO", 1))]


@pytest.mark.parametrize("form", ["avro", "parquet"])
@pytest.mark.parametrize(
    ("key", "value", "rows"),
    [
        (USER, ORDER, [({"id": 1}, {"by": {"id": 2}}), (None, {"by": {"id": 3}})]),
        (USER, USER, [({"id": 1}, {"id": 2}), ({"id": 5}, None)]),
        (["null", "long"], ["int", "string"], [(7, "x"), (8, 9)]),
    ],
)
def test_keys_and_values_come_out_of_envelopes_under_schemas_of_their_own(form, key, value, rows):
    schema = _around(FileSchema(json.dumps(key), "k"), FileSchema(json.dumps(value), "v"))
    keys, values = (fastavro.parse_schema(each) for each in (key, value))
    data = []
    for number, (one, other) in enumerate(rows):
        parts = [(keys, one), (values, other)]
        body = b"".join(b"\x00" if held is None else b"\x02" + encoded(kind, [held])[0] for kind, held in parts)
        data.append(body + b"\x00" + b"\x14" + b"\x02t" + b"\x00" + bytes([2 * number]))
    file = written(AvroFormat() if form == "avro" else ParquetFormat(), schema, data)
    read = EnvelopeRecords(form, "avro", "avro", lambda: SchemaIds(TwoSchemas(key, value), {}))
    found = list(read.read(io.BytesIO(file), f"t.{form}", "t"))
    assert [
        (each.key and decoded(keys, each.key[5:]), each.value and decoded(values, each.value[5:])) for each in found
    ] == rows
    assert [each.key and each.key[:5] for each in found] == [one and b"\x00\x00\x00\x00\x01" for one, _ in rows]
    assert [(each.timestamp, each.offset) for each in found] == [(10, number) for number in range(len(rows))]
