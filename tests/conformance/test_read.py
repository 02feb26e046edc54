"""`penstock read NAME TOPIC-PARTITION`: records from an offset on, whatever the objects are that hold them."""

import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connecting import Rec
from penstock.cli.main import cli
from penstock.cli.options import Session
from penstock.errors import PenstockError, UsageError

pytestmark = pytest.mark.stack

SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}


@pytest.fixture
def run(capsys):
    """A command of ours in this process: the documents that it prints."""

    def call(*arguments):
        capsys.readouterr()
        cli.main(list(arguments), standalone_mode=False, obj=Session())
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return call


@pytest.fixture
def file(describe, topic, tmp_path):
    """The connector's file."""

    def write(properties, *, avro=False):
        path = tmp_path / "sink.properties"
        given = describe(topic, properties, avro=avro)
        path.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        return str(path)

    return write


STRUCTURED = {
    "json": {},
    "json, gzip": {"s3.compression.type": "gzip"},
    "json, zstd": {"s3.compression.type": "zstd"},
    "avro": {"format.class": "avro"},
    "parquet": {"format.class": "parquet"},
}


@pytest.mark.parametrize("given", STRUCTURED.values(), ids=STRUCTURED)
def test_records_with_their_offsets_across_objects(given, connect, topic, file, run):
    is_avro = given.get("format.class") == "avro"
    records = [Rec({"n": n}, schema=SCHEMA if is_avro else None) for n in range(9)]
    properties = {"flush.size": "3", **given}
    connect(records, properties, topic)
    named = file(properties, avro=is_avro)
    wanted = [{"offset": n, "value": {"n": n}} for n in range(9)]
    assert run("read", named, f"{topic}-0") == wanted
    assert run("read", named, f"{topic}-0", "--from-offset", "4", "--limit", "3") == wanted[4:7]
    assert run("read", named, f"{topic}-0@8", "--limit", "3") == wanted[8:]


RAW = {"value.converter": "bytes", "value.converter.schemas.enable": None, "flush.size": "2"}
SEPARATED = {
    "lines": ({**RAW, "format.class": "bytes"}, {}),
    "another separator, gzip": (
        {**RAW, "format.class": "bytes", "format.bytearray.separator": "||", "s3.compression.type": "gzip"},
        {},
    ),
    "block-GZIP": ({**RAW, "format.class": "block_gzip", "value.converter": "string"}, {}),
    "block-GZIP with keys": (
        {**RAW, "format.class": "block_gzip", "value.converter": "string", "format.key.delimiter": ":"}
        | {"key.converter": "string"},
        {"key": "k"},
    ),
}


@pytest.mark.parametrize(("given", "more"), SEPARATED.values(), ids=SEPARATED)
def test_records_that_are_bytes(given, more, connect, topic, file, run):
    connect([Rec(b"v%d" % n, key=b"k") for n in range(6)], given, topic)
    wanted = [{"offset": n, "value": f"v{n}", **more} for n in range(6)]
    assert run("read", file(given), f"{topic}-0", "--from-offset", "1", "--limit", "4") == wanted[1:5]


def test_an_object_without_every_offset_is_read_whole_and_names_none(connect, topic, file, run):
    given = {"flush.size": "6", "partitioner.class": "field", "partition.field.name": "c"}
    connect([Rec({"n": n, "c": "ab"[n % 2]}) for n in range(6)], given, topic)
    found = run("read", file(given), f"{topic}-0", "--from-offset", "4")
    assert [(each["offset"], each["value"]["n"]) for each in found] == [(None, n) for n in (0, 2, 4, 1, 3, 5)]


def test_what_cannot_be_read_is_said_in_one_sentence(connect, topic, file, run, s3, bucket):
    connect([Rec({"n": n}) for n in range(2)], {"flush.size": "2"}, topic)
    named = file({"flush.size": "2"})
    for arguments, kind, words in (
        ([named, "other-0"], PenstockError, "has committed nothing of other-0"),
        ([named, f"{topic}-0@7"], PenstockError, "nothing from offset 7 on, only up to offset 1"),
        ([named], UsageError, "say of which topic-partition"),
        ([named, "nonsense"], UsageError, "say TOPIC-PARTITION or TOPIC-PARTITION@OFFSET"),
        ([named, f"{topic}-0@1", "--from-offset", "1"], UsageError, "give the offset once"),
        ([f"s3://{bucket}/x.json", f"{topic}-0"], UsageError, "goes with the NAME of a connector"),
        (
            [f"s3://{bucket}/x.parquet", "--connector", named],
            PenstockError,
            f"no object `x.parquet` in bucket `{bucket}",
        ),
        (["s3://no-such-bucket/x.parquet", "--connector", named], PenstockError, "bucket `no-such-bucket`"),
    ):
        with pytest.raises(kind, match=words):
            run("read", *arguments)
    key = f"topics/{topic}/partition=0/{topic}+0+0000000000.json"
    s3.put_object(Bucket=bucket, Key=key, Body=b'{"n":0}\n{"n"')
    with pytest.raises(PenstockError, match=r"is damaged after record 1"):
        run("read", named, f"{topic}-0")
    s3.delete_object(Bucket=bucket, Key=key)
    with pytest.raises(PenstockError, match="is not there any more"):
        run("read", named, f"{topic}-0")


def test_objects_of_many_pieces(s3, bucket, file, run):
    """Larger than what one request fetches; a Parquet file is read from its end."""
    rows = [{"n": n, "s": f"{n:0100}"} for n in range(120_000)]
    table, parquet = pa.Table.from_pylist(rows), io.BytesIO()
    pq.write_table(table, parquet, row_group_size=30_000, compression="none", use_dictionary=False)
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    objects = {"a.parquet": parquet.getvalue(), "a.json": lines, "a.json.gz": gzip.compress(lines, 1)}
    assert len(objects["a.parquet"]) > 8 << 20
    for name, body in objects.items():
        s3.put_object(Bucket=bucket, Key=name, Body=body)
        assert run("cat", f"s3://{bucket}/{name}", "--connector", file({})) == rows
