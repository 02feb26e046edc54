"""Keys that S3 would refuse are told of the record that makes them, in whatever batches the records come."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_store import MemoryStore
from test_two_instances import AtOnce

from laid_out import TP, records
from penstock import parts
from penstock.keylength import MOST_BYTES
from penstock.loading import load
from penstock.model import PlannedRange
from penstock.rangewriter import Pipeline, RangeWriter
from penstock.rejects import ErrorPolicy
from penstock.store.upload import Owner, Uploads

PROPERTIES = {
    "name": "x",
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "topics": "t",
    "s3.bucket.name": "b",
    "s3.region": "us-east-1",
    "storage.class": "io.confluent.connect.s3.storage.S3Storage",
    "format.class": "json",
    "value.converter": "json",
    "value.converter.schemas.enable": "false",
    "partitioner.class": "field",
    "partition.field.name": "c,d,e,f,g,h",
    "flush.size": "1",
}
# Six fields, since one value is shortened to some 240 bytes already; five of them are always 150 long.
FIELDS = ("c", "d", "e", "f", "g", "h")
FIXED = dict.fromkeys(FIELDS[1:], "x" * 150)
MOST = MOST_BYTES - len("topics/t/c=/d=/e=/f=/g=/h=/t+0+") - 5 * 150 - 19 - len(".json")


def run(values, *, tolerate=False, sizes=(), **changes):
    config, _ = load({**PROPERTIES, **changes}, {"bootstrap.servers": "127.0.0.1:9"})
    store = MemoryStore()
    uploads = Uploads(store, Owner("x", 7), 5 << 20, pool=AtOnce())
    errors = ErrorPolicy(tolerate, lambda _, at: (f"bad/{at}", uploads.open(f"bad/{at}", at)))
    pipeline = Pipeline(
        parts.sieve(config),
        parts.file_format(config),
        parts.layout(config),
        parts.cut_rules(config),
        uploads.open,
        errors=errors,
    )
    writer, at = RangeWriter(PlannedRange(TP, 0, len(values), "flush"), pipeline, 1_700_000_000_000), 0
    for size in (*sizes, len(values)):
        part = [json.dumps({"c": value, **FIXED}).encode() for value in values[at : at + size]]
        if part:
            writer.write(records(part, b"\n", at))
        at += len(part)
    return writer.finish(), store.objects


def test_the_record_is_named_with_the_length_and_what_is_before_it_counts():
    receipt, objects = run(["a", "b" * MOST, "c" * (MOST + 1), "d"])
    assert receipt.commit.position == 2
    assert len(objects) == 2
    assert not receipt.fault.passing
    assert receipt.fault.offset == 2
    assert receipt.fault.message.startswith(
        f"t-0@2: its object key would have {MOST_BYTES + 1} bytes, and S3 takes 1024"
    )
    assert "it begins with `topics/t/c=ccc" in receipt.fault.message


def test_with_tolerance_the_record_goes_to_the_error_objects_and_the_others_are_written():
    receipt, objects = run(["a", "c" * 240, "d"], tolerate=True)
    assert receipt.fault is None
    assert (receipt.commit.position, receipt.commit.skipped) == (3, 1)
    (error,) = [json.loads(body) for key, (body, _) in objects.items() if key.startswith("bad/")]
    assert error["offset"] == 1
    assert "S3 takes 1024" in json.dumps(error)
    assert sum(key.startswith("topics/") for key in objects) == 2


@pytest.mark.parametrize("tolerate", [False, True])
def test_a_key_that_no_record_makes_too_long_is_tolerated_by_nobody(tolerate):
    receipt, objects = run(["a", "b"], tolerate=tolerate, **{"topics.dir": "long/" * 250 + "end"})
    assert receipt.commit.position == 0
    assert receipt.fault.message.startswith("t-0@0: its object key would have 2044 bytes")
    assert objects == {}


def test_bytes_are_counted_not_characters_and_keys_beside_the_object_too():
    receipt, _ = run(["é" * (MOST // 2), "é" * (MOST // 2 + 1)])
    assert (receipt.commit.position, receipt.fault.offset) == (1, 1)
    receipt, _ = run(["\x01" * (MOST // 3), "\x01" * (MOST // 3 + 1)])  # percent-encoded
    assert (receipt.commit.position, receipt.fault.offset) == (1, 1)


@settings(max_examples=30)
@given(st.lists(st.integers(MOST - 2, MOST + 2), max_size=8), st.lists(st.integers(1, 3), max_size=8))
def test_what_is_refused_does_not_depend_on_batches(lengths, sizes):
    values = ["x" * length for length in lengths]
    whole = run(values, tolerate=True)
    assert run(values, tolerate=True, sizes=sizes) == whole
    assert whole[0].commit.skipped == sum(length > MOST for length in lengths)
