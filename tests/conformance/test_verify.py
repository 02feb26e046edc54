"""An audit of a real connector: silent where all is well, and each planted fault is found, by kind and place."""

from __future__ import annotations

import gzip
import json
from contextlib import contextmanager

import google_crc32c
import pytest
from confluent_kafka import Producer

from connecting import Rec
from penstock.audit import auditing
from penstock.audit.auditing import audit
from penstock.loading import load
from penstock.spark import context

pytestmark = pytest.mark.stack

JSON = {"flush.size": "3"}
HOUR = 3_600_000
SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "int"}]}


def no_session():
    pytest.fail("so little is read in this process")


@pytest.fixture
def verify(describe, stack):
    def run(topic, properties, *, avro=False, **options):
        config, kafka = load(
            describe(topic, properties, avro=avro), {"bootstrap.servers": stack.bootstrap_servers}, None
        )
        return audit(config, kafka, no_session, **options)

    return run


def kinds(report):
    return {(each.kind, each.where) for each in report.findings}


SOUND = {
    "JSON lines": {"flush.size": "3"},
    "gzip": {"flush.size": "3", "s3.compression.type": "gzip"},
    "bytes": {"flush.size": "4", "value.converter": "bytes", "format.class": "bytes"},
    "hours and late records": {
        "flush.size": "4",
        "partitioner.class": "hourly",
        "locale": "en",
        "timezone": "UTC",
        "timestamp.extractor": "Record",
    },
    "the clock": {"flush.size": "4", "partitioner.class": "hourly", "locale": "en", "timezone": "UTC"},
    "keys, headers, tombstones": {
        "flush.size": "4",
        "store.kafka.keys": "true",
        "keys.format.class": "json",
        "store.kafka.headers": "true",
        "headers.format.class": "avro",
        "behavior.on.null.values": "write",
    },
    "tolerated errors": {
        "flush.size": "3",
        "errors.tolerance": "all",
        "errors.dir": "bad",
        "behavior.on.null.values": "ignore",
    },
}


def mixed(properties):
    """Records with late times, keys and headers, and what the properties allow of nulls and broken values."""
    records = [
        Rec({"n": n}, 1_717_171_717_171 + (n % 5) * HOUR, key=b"k%d" % n, headers=(("h", b"v"),)) for n in range(14)
    ]
    if "behavior.on.null.values" in properties:
        records[3:3] = [Rec(None, key=b"gone")]
    if "errors.dir" in properties:
        records[6:6] = [Rec(b"{broken"), Rec(b"nor this")]
    return records


@pytest.mark.parametrize("properties", SOUND.values(), ids=SOUND)
def test_what_was_written_is_sound_and_agrees_with_kafka(connect, verify, topic, properties):
    connect(mixed(properties), properties, topic)
    report = verify(topic, properties, against_kafka=True)
    assert (report.findings, report.notes) == ((), ())
    assert report.facts["objects"] == report.facts["objects_read"] > 2
    assert report.facts["offsets_compared_with_kafka"] >= 12


def test_transactions_and_changed_settings_are_sound(connect, verify, topic, stack):
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers, "transactional.id": topic, "log_level": 0})
    producer.init_transactions()
    for round_ in range(4):
        producer.begin_transaction()
        for n in range(3):
            producer.produce(topic, json.dumps({"n": 10 * round_ + n}).encode())
        producer.flush()
        producer.abort_transaction() if round_ == 1 else producer.commit_transaction()
    connect([], {"flush.size": "2"}, topic)
    connect([Rec({"n": n}, schema=None) for n in range(5)], {"flush.size": "4", "topics.dir": "elsewhere"}, topic)
    report = verify(topic, {"flush.size": "4", "topics.dir": "elsewhere"}, against_kafka=True)
    assert report.findings == ()
    assert report.facts["records"] == 9 - 9 % 2 + (9 % 2 + 5) // 4 * 4


@pytest.mark.parametrize(
    "properties",
    [
        {"avro.codec": "deflate"},
        {"format.class": "parquet"},
        {"format.class": "block_gzip", "compressed_block_size": "10"},
        {"store.envelope": "true"},
    ],
)
def test_objects_of_every_format_are_counted_and_compared(connect, verify, topic, properties):
    connect([Rec({"n": n}, schema=SCHEMA) for n in range(7)], {"flush.size": "3", **properties}, topic)
    report = verify(topic, {"flush.size": "3", **properties}, avro=True, against_kafka=True)
    assert (report.findings, report.facts["records"]) == ((), 6)


class Planter:
    """A connector with two runs of six records behind it, and hands to spoil what it wrote."""

    def __init__(self, s3, bucket, topic):
        self.s3, self.bucket, self.topic = s3, bucket, topic

    def key(self, start):
        return f"topics/{self.topic}/partition=0/{self.topic}+0+{start:010d}.json"

    def entry_key(self, seq):
        return f"_penstock/{self.bucket}/log/{seq:020d}.json"

    def body(self, key):
        return self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()

    def put(self, key, body, like=None):
        metadata = {} if like is None else self.s3.head_object(Bucket=self.bucket, Key=like)["Metadata"]
        return self.s3.put_object(Bucket=self.bucket, Key=key, Body=body, Metadata=metadata)["ETag"]

    def delete(self, key):
        self.s3.delete_object(Bucket=self.bucket, Key=key)

    def everything(self):
        keys = [each["Key"] for each in self.s3.list_objects_v2(Bucket=self.bucket)["Contents"]]
        heads = {key: self.s3.head_object(Bucket=self.bucket, Key=key) for key in keys}
        return {key: (self.body(key), head["Metadata"]) for key, head in heads.items()}

    @contextmanager
    def restored(self):
        """Whatever is done within is undone."""
        before = self.everything()
        yield
        after = self.everything()
        for key in after.keys() - before.keys():
            self.delete(key)
        for key, (body, metadata) in before.items():
            if after.get(key) != (body, metadata):
                self.s3.put_object(Bucket=self.bucket, Key=key, Body=body, Metadata=metadata)

    def commits(self):
        """The seqs of the entries that commit objects."""
        listed = self.s3.list_objects_v2(Bucket=self.bucket, Prefix=f"_penstock/{self.bucket}/log/")["Contents"]
        entries = [json.loads(self.body(each["Key"])) for each in listed]
        return [each["seq"] for each in entries if any(commit["objects"] for commit in each.get("commits", ()))]

    def edit(self, seq, change):
        entry = json.loads(self.body(self.entry_key(seq)))
        change(entry["commits"][0])
        self.put(self.entry_key(seq), json.dumps(entry).encode())


@pytest.fixture
def planter(connect, s3, bucket, topic):
    for run in range(2):
        connect([Rec({"n": 6 * run + n}) for n in range(6)], JSON, topic)
    return Planter(s3, bucket, topic)


def swap(planter):
    first, second = planter.body(planter.key(0)), planter.body(planter.key(3))
    planter.put(planter.key(0), second, planter.key(0))
    planter.put(planter.key(3), first, planter.key(3))
    return {("object.checksum", planter.key(0)), ("object.checksum", planter.key(3))}


def delete(planter):
    planter.delete(planter.key(6))
    return {("object.missing", planter.key(6))}


def truncate(planter):
    planter.put(planter.key(6), planter.body(planter.key(6))[:-1], planter.key(6))
    return {("object.size", planter.key(6))}


def edit_object(planter):
    planter.put(planter.key(6), planter.body(planter.key(6)).replace(b"6", b"9"), planter.key(6))
    return {("object.checksum", planter.key(6))}


def duplicate(planter):
    copy = planter.key(1)
    planter.put(copy, planter.body(planter.key(0)), planter.key(0))
    return {("object.orphaned", copy)}


def put_foreign(planter):
    planter.put(f"topics/{planter.topic}/partition=0/notes.txt", b"hello")
    return {("object.foreign", f"topics/{planter.topic}/partition=0/notes.txt")}


def edit_entry(planter):
    seq = planter.commits()[0]
    planter.edit(seq, lambda commit: commit["objects"][0].update(encoded_partition="partition=1"))
    return {("entry.changed", f"entry {seq}")}


def remove_entry(planter):
    seq = planter.commits()[0]
    planter.delete(planter.entry_key(seq))
    return {
        ("entry.missing", f"entry {seq}"),
        ("range.gap", f"{planter.topic}-0@0"),
        ("object.orphaned", planter.key(0)),
        ("object.orphaned", planter.key(3)),
    }


def damage_entry(planter):
    seq = planter.commits()[0]
    planter.put(planter.entry_key(seq), b"{")
    return {("entry.damaged", f"entry {seq}"), ("range.gap", f"{planter.topic}-0@0")}


def leave_a_gap(planter):
    planter.edit(planter.commits()[-1], lambda commit: commit["objects"].pop(0))
    return {("range.gap", f"{planter.topic}-0@6"), ("object.orphaned", planter.key(6))}


def overlap(planter):
    planter.edit(planter.commits()[-1], lambda commit: commit["objects"][1].update(start=8))
    return {("range.overlap", planter.key(9))}


def name_twice(planter):
    planter.edit(planter.commits()[-1], lambda commit: commit["objects"].append(commit["objects"][0]))
    return {("object.twice", planter.key(6)), ("range.overlap", f"{planter.topic}-0@6")}


def count_wrong(planter):
    planter.edit(planter.commits()[-1], lambda commit: commit["objects"][0].update(records=2))
    return {("object.records", planter.key(6)), ("range.gap", f"{planter.topic}-0@6")}


def plan_elsewhere(planter):
    planter.edit(planter.commits()[0], lambda commit: commit.update(position=5))
    return {("entry.contradicts", f"entry {planter.commits()[0]}")}


FAULTS = [
    delete,
    truncate,
    swap,
    duplicate,
    edit_object,
    put_foreign,
    edit_entry,
    remove_entry,
    damage_entry,
    leave_a_gap,
    overlap,
    name_twice,
    count_wrong,
    plan_elsewhere,
]


def test_each_planted_fault_is_found_by_kind_and_place(planter, verify, topic):
    for plant in FAULTS:
        with planter.restored():
            expected = plant(planter)
            found = kinds(verify(topic, JSON))
            assert expected <= found, (plant.__name__, found)
    assert kinds(verify(topic, JSON, against_kafka=True)) == set()


def forge(planter, key, body):
    """The first object of the newest commit with another body, and the entry made to agree with it."""
    etag = planter.put(key, body, key)
    crc = f"{google_crc32c.value(body):08x}"
    seen = {"size": len(body), "etag": etag, "crc32c": crc}
    planter.edit(planter.commits()[-1], lambda commit: commit["objects"][0].update(seen))


def test_what_only_etags_or_only_kafka_can_tell(planter, verify, topic):
    with planter.restored():
        edit_object(planter)
        assert kinds(verify(topic, JSON, read_contents=False)) == {("object.etag", planter.key(6))}
    assert kinds(verify(topic, JSON, read_contents=False)) == set()
    forge(planter, planter.key(6), planter.body(planter.key(6)).replace(b"6", b"9"))
    assert kinds(verify(topic, JSON)) == set()
    assert kinds(verify(topic, JSON, against_kafka=True)) == {("kafka.differs", planter.key(6))}


def test_another_compression_of_the_same_records_is_the_same(connect, verify, s3, bucket, topic):
    packed = {**JSON, "s3.compression.type": "gzip"}
    connect([Rec({"n": n}) for n in range(9)], packed, topic)
    planter = Planter(s3, bucket, topic)
    key = f"{planter.key(0)}.gz"
    forge(planter, key, gzip.compress(gzip.decompress(planter.body(key)), compresslevel=0, mtime=0))
    assert kinds(verify(topic, packed, against_kafka=True)) == set()


@pytest.fixture
def spark():
    opened = context(1, {})
    yield opened
    opened.stop()


@pytest.mark.spark
def test_a_large_audit_runs_on_spark_and_finds_the_same(planter, verify, topic, describe, stack, spark, monkeypatch):
    swap(planter)
    here = verify(topic, JSON, against_kafka=True)
    monkeypatch.setattr(auditing, "_FEW_OBJECTS", 0)
    monkeypatch.setattr(auditing, "_FEW_OFFSETS", 0)
    config, kafka = load(describe(topic, JSON), {"bootstrap.servers": stack.bootstrap_servers}, None)
    asked = []
    there = audit(config, kafka, lambda: asked.append(1) or spark, against_kafka=True)
    assert there == here
    assert {each.kind for each in there.findings} == {"object.checksum"}
    assert len(asked) == 2
