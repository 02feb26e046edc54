"""From files that hold whole records, in frames or envelopes, back to the keys and values that Kafka had."""

import gzip
import io
import json
from dataclasses import replace

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from restored import OneSchema, decoded, encoded, written

from laid_out import records, slices
from penstock.converters.base import FileSchema
from penstock.converters.bytes import BytesConverter
from penstock.converters.framed import FramedConverter
from penstock.envelope import _around
from penstock.formats.avro import AvroFormat
from penstock.formats.damage import DAMAGED
from penstock.formats.parquet import ParquetFormat
from penstock.frames import Frames
from penstock.registry import Registered
from penstock.restore.envelopes import EnvelopeRecords
from penstock.restore.frames import FramedRecords
from penstock.restore.schema_ids import SchemaIds


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
    read = FramedRecords(frames)
    assert (read.carried == frozenset({"key"})) == frames.keys
    found = [(each.key, each.value) for each in read.read(io.BytesIO(gzip.compress(body)), "t.gz", "t")]
    assert found == [(key or None if frames.keys else None, value) for key, value in rows]


@pytest.mark.parametrize(
    ("frames", "body"),
    [
        (Frames(lengths=True), b"\x00\x00\x00\x02a"),
        (Frames(keys=True, lengths=True), b"\x00\x00\x00\x01a\x00"),
        (Frames(keys=True, key_delimiter=b":"), b"a\n"),
        (Frames(keys=True, key_delimiter=b":"), b"a:b"),
        (Frames(keys=True, key_delimiter=b":", value_delimiter=b""), b"a:b"),
    ],
)
def test_broken_frames_are_known_as_damaged(frames, body):
    with pytest.raises(DAMAGED):
        list(FramedRecords(frames).read(io.BytesIO(body), "t", "t"))


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
