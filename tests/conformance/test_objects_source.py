"""spark.read.format("penstock"): what a connector committed comes back as rows; Spark itself is not needed here."""

import json
import re

import pytest
from pyspark.sql.datasource import (
    CaseInsensitiveDict,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    StringStartsWith,
)

from connecting import Rec
from penstock.errors import ConfigError, PenstockError, StateError
from penstock.sources.objects import ObjectSource

pytestmark = pytest.mark.stack

OLD = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}, {"name": "city", "type": "string"}]}
NEW = {**OLD, "fields": [*OLD["fields"], {"name": "price", "type": ["null", "double"], "default": None}]}
ABOUT = ("_topic", "_partition", "_object")


@pytest.fixture
def read(stack, bucket):
    """Rows of the connector's objects: `read(filters, asOfEntry="3")`, as dicts, with a list of the tasks' sizes."""
    given = stack.as_json()
    reach = {name: given[name] for name in given if name.startswith("aws.") or name in ("s3.region", "store.url")}

    def rows(filters=(), **options):
        options = {"path": f"s3://{bucket}/_penstock/{bucket}", **reach, **options}
        source = ObjectSource(CaseInsensitiveDict({name: text for name, text in options.items() if text is not None}))
        reader = source.reader(source.schema())
        assert list(reader.pushFilters(list(filters))) == []
        return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]

    return rows


def fields(rows):
    return [{name: value for name, value in row.items() if not name.startswith("_")} for row in rows]


def test_avro_comes_back_whatever_schema_each_object_has(connect, read):
    records = [Rec({"id": n, "city": "ab"[n % 2]}, schema=OLD, partition=n % 2) for n in range(6)]
    records += [Rec({"id": n, "city": "c", "price": n / 2}, schema=NEW, partition=n % 2) for n in range(6, 10)]
    outcome = connect(
        records, {"flush.size": "2", "partitioner.class": "FieldPartitioner", "partition.field.name": "city"}
    )
    rows = read()
    written = [{"price": None, **record} for held in outcome.objects.values() for record in held]
    assert len(written) == len(records) - outcome.open >= 8
    assert sorted(fields(rows), key=lambda row: row["id"]) == sorted(written, key=lambda row: row["id"])
    assert {row["_object"].rpartition("/")[0].rpartition("/")[2] for row in rows} == {"city=a", "city=b", "city=c"}
    assert {(row["_partition"], row["id"] % 2) for row in rows} == {(0, 0), (1, 1)}
    assert [name for name in rows[0] if name.startswith("_")] == list(ABOUT)


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
def test_json_comes_back_from_plain_and_compressed_files(connect, read, compression):
    values = [{"a": 1, "b": ["x"]}, {"a": None, "c": {"d": 2.5}}, {"a": 3, "b": []}]
    connect([Rec(value) for value in values], {"flush.size": "3", "s3.compression.type": compression})
    assert fields(read()) == [
        {"a": 1, "b": ["x"], "c": None},
        {"a": None, "b": None, "c": {"d": 2.5}},
        {"a": 3, "b": [], "c": None},
    ]


def test_documents_that_are_no_objects_are_one_column(connect, read):
    connect([Rec(value) for value in (1, 2, 3)], {"flush.size": "3"})
    assert fields(read()) == [{"value": 1}, {"value": 2}, {"value": 3}]


def test_raw_values_come_back_as_binary(connect, read):
    raw = {"value.converter": "bytes", "format.class": "bytes", "format.bytearray.separator": r"\u0000"}
    connect([Rec(b"one\n"), Rec(b""), Rec(b"\xff")], {**raw, "value.converter.schemas.enable": None, "flush.size": "3"})
    assert [row["value"] for row in read()] == [b"one\n", b"", b"\xff"]


@pytest.mark.parametrize(
    ("properties", "wanted"),
    [
        ({}, [{"value": b"one"}, {"value": b"two"}]),
        ({"format.key.delimiter": ":"}, [{"key": b"k0", "value": b"one"}, {"key": b"k1", "value": b"two"}]),
        ({"format": "binary"}, [{"value": b"one"}, {"value": b"two"}]),
        (
            {"format": "binary", "format.include.keys": "true"},
            [{"key": b"k0", "value": b"one"}, {"key": b"k1", "value": b"two"}],
        ),
    ],
)
def test_block_gzip_comes_back_in_each_of_its_forms(connect, read, properties, wanted):
    plain = {"value.converter": "bytes", "format.class": "block_gzip", "value.converter.schemas.enable": None}
    records = [Rec(value, key=f"k{n}".encode()) for n, value in enumerate((b"one", b"two"))]
    connect(records, {**plain, "flush.size": "2", "compressed_block_size": "3", **properties})
    assert fields(read()) == wanted


def test_parquet_comes_back(connect, read):
    records = [Rec({"id": n, "city": "ab"[n % 2]}, schema=OLD) for n in range(2)]
    records += [Rec({"id": n, "city": "c", "price": n / 2}, schema=NEW) for n in range(2, 4)]
    connect(records, {"flush.size": "2", "format.class": "parquet"})
    assert fields(read()) == [{"price": None, **rec.value} for rec in records]


def test_keys_have_a_view_of_their_own(connect, read):
    keys = {"store.kafka.keys": "true", "keys.format.class": "json", "key.converter": "string"}
    connect([Rec({"a": n}, key=f"k{n}".encode()) for n in range(2)], {**keys, "flush.size": "2"})
    assert fields(read()) == [{"a": 0}, {"a": 1}]
    assert fields(read(view="keys")) == [{"value": "k0"}, {"value": "k1"}]


def test_only_what_is_committed_counts(connect, read, s3, bucket):
    outcome = connect([Rec({"a": n}) for n in range(4)], {"flush.size": "2"})
    topic = read()[0]["_topic"]
    s3.put_object(Bucket=bucket, Key=f"topics/{topic}/partition=0/{topic}+0+0000000099.json", Body=b'{"a": 99}\n')
    assert fields(read()) == [{"a": n} for n in range(4)]
    assert len(outcome.objects) == 2


def test_an_object_that_a_filter_leaves_out_is_never_opened(connect, read, s3, bucket):
    records = [Rec({"a": n}, ts=1_700_000_000_000 + 1000 * n, partition=n % 2) for n in range(8)]
    connect(records, {"flush.size": "2"})
    rows = read(details="true")
    gone = rows[0]
    assert (gone["_start_offset"], gone["_end_offset"], gone["_partition"]) == (0, 2, 0)
    s3.delete_object(Bucket=bucket, Key=gone["_object"])
    rest = [row for row in rows if row["_object"] != gone["_object"]]
    with pytest.raises(
        PenstockError, match=re.escape(f"`{gone['_object']}` was committed by entry 4 and is not there any more")
    ):
        read()
    later = GreaterThan(("_min_timestamp",), gone["_max_timestamp"])
    for filters, wanted in (
        ([EqualTo(("_partition",), 1)], lambda row: row["_partition"] == 1),
        ([EqualTo(("_encoded_partition",), "partition=1")], lambda row: row["_partition"] == 1),
        ([GreaterThanOrEqual(("_start_offset",), 2)], lambda row: row["_start_offset"] >= 2),
        (
            [later],
            lambda row: row["_min_timestamp"] > gone["_max_timestamp"],
        ),
        ([EqualTo(("_object",), rows[-1]["_object"])], lambda row: row["_object"] == rows[-1]["_object"]),
    ):
        assert read(filters, details="true") == [row for row in rest if wanted(row)]
    assert read([LessThan(("_partition",), 0)], details="true") == []
    assert read([StringStartsWith(("_topic",), "nothing")], details="true") == []


def test_the_past_is_what_was_committed_up_to_an_entry(connect, read, bucket):
    connect([Rec({"a": n}) for n in range(2)], {"flush.size": "2"})
    first = read(details="true")
    topic, entry = first[0]["_topic"], first[0]["_entry"]
    connect([Rec({"a": n}) for n in range(2, 4)], {"flush.size": "2"}, topic=topic)
    assert fields(read()) == [{"a": n} for n in range(4)]
    assert read(asOfEntry=str(entry), details="true") == first
    with pytest.raises(ConfigError, match=f"nothing is committed yet at s3://{bucket}/_penstock/"):
        read(asOfEntry="1")
    with pytest.raises(StateError, match=r"asOfEntry is 999, but the state log at .* ends at entry \d+"):
        read(asOfEntry="999")


def test_bytes_that_were_not_committed_are_never_rows(connect, read, s3, bucket):
    connect([Rec({"a": n}) for n in range(2)], {"flush.size": "2"})
    key = read()[0]["_object"]
    s3.put_object(Bucket=bucket, Key=key, Body=b'{"a":7}\n{"a":8}\n')
    with pytest.raises(PenstockError, match=re.escape(f"`{key}` is damaged (its 16 bytes are not those that entry 4")):
        read()


def test_a_connectors_file_says_where_its_objects_are(connect, read, describe, tmp_path):
    connect([Rec({"a": n}) for n in range(2)], {"flush.size": "2"})
    file = tmp_path / "sink.json"
    file.write_text(json.dumps(describe("any", {})))
    assert fields(read(path=None, connector=str(file))) == [{"a": 0}, {"a": 1}]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"path": None}, "give either a path"),
        ({"path": None, "name": "x"}, "s3.bucket.name must be set"),
        ({"path": "http://x"}, "path must be s3://BUCKET"),
        ({"path": "s3://bucket"}, "path must be s3://BUCKET/_penstock/NAME"),
        (
            {"pathh": "x", "details": "9"},
            "unknown option `pathh`; did you mean `path`?\npenstock: details must be true",
        ),
        ({"s3.regio": "x"}, "unknown property `s3.regio`; did you mean `s3.region`?"),
        ({"connector": "/nowhere.properties", "path": None}, "/nowhere.properties"),
    ],
)
def test_options_that_cannot_be(read, options, words):
    with pytest.raises(ConfigError) as caught:
        read(**options)
    assert words in str(caught.value)


def test_a_path_without_a_log_says_so(read, bucket):
    with pytest.raises(StateError, match=f"there is no state log at s3://{bucket}/_penstock/nobody/"):
        read(path=f"s3://{bucket}/_penstock/nobody")
