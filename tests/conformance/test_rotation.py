"""Where files end: rows from reference s3-sink-connector 2.2 to 2.4, played through a real broker and S3 server.

A row: properties, records, the files as "<encoded partition>@<start offset>: numbers of its records", what stays open.
"""

from __future__ import annotations

import json

import pytest
import requests

from connecting import Rec

pytestmark = pytest.mark.stack

MINUTE = 60_000
T = 1_717_171_200_000  # 2024-05-31 16:00:00 UTC
BY_HOUR = {"partitioner.class": "hourly", "locale": "en-US", "timezone": "UTC", "timestamp.extractor": "Record"}
FIELD = {"partitioner.class": "field", "partition.field.name": "c"}
EVERY_HOUR = {"rotate.interval.ms": "3600000"}
TOGETHER = {"rotate.file.on.partition.change": "false"}


def at(*minutes):
    """Records {"n": 0}, {"n": 1}, ... at so many minutes after T."""
    return [Rec({"n": n}, T + int(each * MINUTE)) for n, each in enumerate(minutes)]


def of(letters):
    """Records {"n": 0, "c": "a"}, ..."""
    return [Rec({"n": n, "c": c}) for n, c in enumerate(letters)]


def avro(versions):
    """Records {"n": 0}, ... written under the schemas of those versions: each adds a field with a default."""
    return [
        Rec({"n": n, **{f"f{k}": k for k in range(2, int(v) + 1)}}, schema=schema(int(v)))
        for n, v in enumerate(versions)
    ]


def schema(version):
    fields = [{"name": "n", "type": "int"}]
    fields += [{"name": f"f{k}", "type": "int", "default": 0} for k in range(2, version + 1)]
    return {"type": "record", "name": "r", "fields": fields}


def lettered(wide):
    fields = [{"name": "n", "type": "int"}, {"name": "c", "type": "string"}]
    return {"type": "record", "name": "x", "fields": fields + [{"name": "d", "type": "int", "default": 0}] * wide}


LETTERED = [{"n": 0, "c": "a"}, {"n": 1, "c": "b", "d": 1}, {"n": 2, "c": "a"}, {"n": 3, "c": "b", "d": 2}]


def size(n, **more):
    return {"flush.size": str(n), **more}


H16, H17, H18 = (f"year=2024/month=05/day=31/hour={h}" for h in (16, 17, 18))
P = "partition=0"

ROWS = {
    # flush.size: records of the topic-partition, over all encoded partitions
    "size: whole files only": (size(3), at(*[0] * 7), {f"{P}@0": [0, 1, 2], f"{P}@3": [3, 4, 5]}, 1),
    "size: exactly full": (size(3), at(*[0] * 6), {f"{P}@0": [0, 1, 2], f"{P}@3": [3, 4, 5]}, 0),
    "size: one": (size(1), at(0, 0), {f"{P}@0": [0], f"{P}@1": [1]}, 0),
    "size: zero is one": (size(0), at(0, 0), {f"{P}@0": [0], f"{P}@1": [1]}, 0),
    "size: below zero is one": (size(-5), at(0, 0), {f"{P}@0": [0], f"{P}@1": [1]}, 0),
    "size: larger than all": (size(10), at(0, 0), {}, 2),
    "size: counted over all fields": (size(3, **FIELD), of("abab"), {"c=a@0": [0, 2], "c=b@1": [1]}, 1),
    "size: one cut commits all fields": (
        size(4, **FIELD),
        of("abcabcab"),
        {"c=a@0": [0, 3], "c=b@1": [1], "c=c@2": [2], "c=b@4": [4, 7], "c=c@5": [5], "c=a@6": [6]},
        0,
    ),
    "size: interleaved starts": (size(6, **FIELD), of("ababab"), {"c=a@0": [0, 2, 4], "c=b@1": [1, 3, 5]}, 0),
    "size: over hours when nothing rotates by time": (
        size(4, **BY_HOUR),
        at(0, 61, 1, 62),
        {f"{H16}@0": [0, 2], f"{H17}@1": [1, 3]},
        0,
    ),
    # rotate.interval.ms: extracted time since the first record after the last cut
    "interval: reached": (size(9, **BY_HOUR, **EVERY_HOUR, **TOGETHER), at(0, 30, 60, 61), {f"{H16}@0": [0, 1]}, 2),
    "interval: one less is not enough": (
        size(9, **BY_HOUR, **EVERY_HOUR, **TOGETHER),
        [Rec({"n": 0}, T), Rec({"n": 1}, T + 3_599_999)],
        {},
        2,
    ),
    "interval: exactly": (
        size(9, **BY_HOUR, **EVERY_HOUR, **TOGETHER),
        [Rec({"n": 0}, T), Rec({"n": 1}, T + 3_600_000)],
        {f"{H16}@0": [0]},
        1,
    ),
    "interval: the base is the first record": (
        size(9, **BY_HOUR, **EVERY_HOUR, **TOGETHER),
        at(50, 55, 109, 110),
        {f"{H16}@0": [0, 1], f"{H17}@2": [2]},
        1,
    ),
    "interval: the base moves with each cut": (
        size(9, **BY_HOUR, **EVERY_HOUR, **TOGETHER),
        at(0, 60, 119, 120, 180),
        {f"{H16}@0": [0], f"{H17}@1": [1, 2], f"{H18}@3": [3]},
        1,
    ),
    "interval: the base moves with a cut by size": (
        size(2, **BY_HOUR, **EVERY_HOUR, **TOGETHER),
        at(0, 59, 60, 61),
        {f"{H16}@0": [0, 1], f"{H17}@2": [2, 3]},
        0,
    ),
    "interval: going back never cuts": (size(9, **BY_HOUR, **EVERY_HOUR, **TOGETHER), at(59, 0, -600), {}, 3),
    "interval: going back never moves the base": (
        size(9, **BY_HOUR, **EVERY_HOUR, **TOGETHER),
        at(59, 0, 118, 119),
        {f"{H16}@0": [0, 1], f"{H17}@2": [2]},
        1,
    ),
    "interval: measured over all encoded partitions": (
        size(9, **BY_HOUR, **EVERY_HOUR, **TOGETHER),
        at(30, 70, 80, 90),
        {f"{H16}@0": [0], f"{H17}@1": [1, 2]},
        1,
    ),
    "interval: shorter than the partition": (
        size(9, **BY_HOUR, **{"rotate.interval.ms": "600000"}),
        at(0, 5, 10, 15, 20),
        {f"{H16}@0": [0, 1], f"{H16}@2": [2, 3]},
        1,
    ),
    "interval: without a time partitioner it does nothing": (size(9, **EVERY_HOUR), at(0, 60, 120), {}, 3),
    "interval: with the field partitioner it does nothing": (
        size(3, **FIELD, **EVERY_HOUR),
        [Rec({"n": n, "c": "a"}, T + n * 7_200_000) for n in range(3)],
        {"c=a@0": [0, 1, 2]},
        0,
    ),
    # rotate.file.on.partition.change, with an interval
    "change: of the hour": (size(9, **BY_HOUR, **EVERY_HOUR), at(50, 59, 61, 62), {f"{H16}@0": [0, 1]}, 2),
    "change: a late record closes everything": (
        size(9, **BY_HOUR, **EVERY_HOUR),
        at(59, 61, 58, 62),
        {f"{H16}@0": [0], f"{H17}@1": [1], f"{H16}@2": [2]},
        1,
    ),
    "change: alternating hours are one file each": (
        size(9, **BY_HOUR, **EVERY_HOUR),
        at(59, 60, 59, 60, 59),
        {f"{H16}@0": [0], f"{H17}@1": [1], f"{H16}@2": [2], f"{H17}@3": [3]},
        1,
    ),
    "change: not without an interval": (size(9, **BY_HOUR), at(59, 60, 59, 60), {}, 4),
    "change: off keeps hours open together": (
        size(5, **BY_HOUR, **EVERY_HOUR, **TOGETHER),
        at(59, 60, 58, 61, 57),
        {f"{H16}@0": [0, 2, 4], f"{H17}@1": [1, 3]},
        0,
    ),
    "change: then size": (
        size(2, **BY_HOUR, **EVERY_HOUR),
        at(58, 60, 61, 62),
        {f"{H16}@0": [0], f"{H17}@1": [1, 2]},
        1,
    ),
    # partitioner.max.open.files
    "open files: one more closes all": (
        size(9, **FIELD, **{"partitioner.max.open.files": "2"}),
        of("abac"),
        {"c=a@0": [0, 2], "c=b@1": [1]},
        1,
    ),
    "open files: those open may go on": (size(9, **FIELD, **{"partitioner.max.open.files": "2"}), of("abab"), {}, 4),
    "open files: one": (
        size(9, **FIELD, **{"partitioner.max.open.files": "1"}),
        of("aab"),
        {"c=a@0": [0, 1]},
        1,
    ),
    "open files: with size": (
        size(3, **FIELD, **{"partitioner.max.open.files": "2"}),
        of("abcab"),
        {"c=a@0": [0], "c=b@1": [1], "c=c@2": [2], "c=a@3": [3]},
        1,
    ),
    # schema changes
    "schema: NONE closes": (size(9), avro("1122"), {f"{P}@0": [0, 1]}, 2),
    "schema: NONE closes in both directions": (size(9), avro("121"), {f"{P}@0": [0], f"{P}@1": [1]}, 1),
    "schema: NONE then size": (size(2), avro("1222"), {f"{P}@0": [0], f"{P}@1": [1, 2]}, 1),
    "schema: each field's file has its own": (
        size(4, **FIELD),
        [Rec(value, schema=lettered("d" in value)) for value in LETTERED],
        {"c=a@0": [0, 2], "c=b@1": [1, 3]},
        0,
    ),
    "schema: BACKWARD takes older records": (
        size(4, **{"schema.compatibility": "BACKWARD"}),
        avro("2121"),
        {f"{P}@0": [0, 1, 2, 3]},
        0,
    ),
    "schema: BACKWARD closes at a newer one": (
        size(2, **{"schema.compatibility": "BACKWARD"}),
        avro("1221"),
        {f"{P}@0": [0], f"{P}@1": [1, 2]},
        1,
    ),
    "schema: FULL is BACKWARD": (
        size(4, **{"schema.compatibility": "FULL"}),
        avro("12121"),
        {f"{P}@0": [0], f"{P}@1": [1, 2, 3, 4]},
        0,
    ),
    "schema: FORWARD takes newer records": (
        size(3, **{"schema.compatibility": "FORWARD"}),
        avro("123"),
        {f"{P}@0": [0, 1, 2]},
        0,
    ),
    "schema: FORWARD closes at an older one": (
        size(2, **{"schema.compatibility": "FORWARD"}),
        avro("2112"),
        {f"{P}@0": [0], f"{P}@1": [1, 2]},
        1,
    ),
    "schema: UNION takes all": (
        size(6, **{"schema.compatibility": "UNION"}),
        avro("121323"),
        {f"{P}@0": [0, 1, 2, 3, 4, 5]},
        0,
    ),
    # flush.bytes: payload bytes of one file
    "bytes: reached": (size(9, **{"flush.bytes": "18"}), at(*[0] * 5), {f"{P}@0": [0, 1], f"{P}@2": [2, 3]}, 1),
    "bytes: of one file, not of all": (
        size(9, **FIELD, **{"flush.bytes": "38"}),
        of("ababa"),
        {"c=a@0": [0, 2], "c=b@1": [1]},
        2,
    ),
    "bytes: one large record is a file": (size(9, **{"flush.bytes": "1"}), at(0, 0), {f"{P}@0": [0], f"{P}@1": [1]}, 0),
    # null values
    "null: ignored ones are not counted": (
        size(2, **{"behavior.on.null.values": "ignore"}),
        [Rec({"n": 0}), Rec(None), Rec({"n": 2}), Rec(None), Rec({"n": 4})],
        {f"{P}@0": [0, 2]},
        1,
    ),
    "null: the document null is one": (
        size(2, **{"behavior.on.null.values": "ignore"}),
        [Rec(b"null"), Rec({"n": 1}), Rec({"n": 2})],
        {f"{P}@1": [1, 2]},
        0,
    ),
    "null: ignored ones of Avro": (
        size(2, **{"behavior.on.null.values": "ignore"}),
        [Rec({"n": 0}, schema=schema(1)), Rec(None), Rec({"n": 2}, schema=schema(1))],
        {f"{P}@0": [0, 2]},
        0,
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_files_end_where_the_rules_say(connect, name):
    properties, records, expected, left = ROWS[name]
    outcome = connect(records, properties)
    assert outcome.faults == []
    found = {}
    for key, rows in outcome.objects.items():
        label, _, rest = key.rpartition("/")
        found[f"{label}@{int(rest.partition('+')[2])}"] = [row["n"] for row in rows]
    assert found == expected
    assert outcome.open == left


def contents(connect, mode, versions):
    outcome = connect(avro(versions), size(len(versions), **{"schema.compatibility": mode}))
    (rows,) = outcome.objects.values()
    return rows


def test_projected_records_have_the_fields_of_the_file(connect):
    assert contents(connect, "BACKWARD", "212") == [{"n": 0, "f2": 2}, {"n": 1, "f2": 0}, {"n": 2, "f2": 2}]


def test_forward_drops_what_the_file_does_not_know(connect):
    assert contents(connect, "FORWARD", "12") == [{"n": 0}, {"n": 1}]


def test_union_keeps_all_fields_of_the_newest_among_the_records(connect):
    assert contents(connect, "UNION", "121") == [{"n": 0, "f2": 0}, {"n": 1, "f2": 2}, {"n": 2, "f2": 0}]


def test_union_takes_no_newer_schema_than_its_records_need(connect):
    outcome = connect(avro("1233"), size(2, **{"schema.compatibility": "UNION"}))
    assert [sorted(row) for rows in outcome.objects.values() for row in rows] == [["f2", "n"]] * 2 + [
        ["f2", "f3", "n"]
    ] * 2


@pytest.mark.parametrize("mode", ["BACKWARD", "UNION"])
def test_projection_into_json(connect, mode):
    outcome = connect(avro("212"), size(3, **{"schema.compatibility": mode, "format.class": "json"}))
    assert list(outcome.objects.values()) == [[{"n": 0, "f2": 2}, {"n": 1, "f2": 0}, {"n": 2, "f2": 2}]]


def test_a_schema_without_a_version_cannot_be_compared(connect, stack, make_topic, write_records):
    """Registered under another topic's subject only."""
    topic, other = make_topic(), make_topic()
    registry = f"{stack.schema_registry_url}/subjects/{other}-value/versions"
    answer = requests.post(registry, json={"schema": json.dumps(schema(3))}, timeout=10).json()
    write_records(topic, avro("1"))
    foreign = b"\x00" + answer["id"].to_bytes(4, "big") + bytes([2, 4, 6])
    outcome = connect([Rec(foreign), *avro("1")], size(9, **{"schema.compatibility": "BACKWARD"}), topic)
    (fault,) = outcome.faults
    assert "-0@1: its schema has no version in the registry's subject" in fault
