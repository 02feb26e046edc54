"""Where records go: rows from reference s3-sink-connector 1.5, 2.4 and 3, through a real broker and S3 server.

A row: properties, records, the objects (without `topics/<topic>/` and extension) with the numbers of their records.
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

from connecting import Rec
from penstock.partitioners.base import Labels, Times

pytestmark = pytest.mark.stack

T = 1_717_171_717_171  # 2024-05-31 16:08:37.171 UTC
TIMED = {"locale": "en-US", "timezone": "UTC", "timestamp.extractor": "Record"}
HOURLY = {"partitioner.class": "hourly", **TIMED}
DAILY = {"partitioner.class": "daily", **TIMED}


def timed(pattern, duration=3_600_000, **more):
    return {
        "partitioner.class": "TimeBasedPartitioner",
        "path.format": pattern,
        "partition.duration.ms": str(duration),
        **TIMED,
        **more,
    }


def fields(*names, **more):
    return {"partitioner.class": "FieldPartitioner", "partition.field.name": ",".join(names), **more}


def by(field, **more):
    return {**HOURLY, "timestamp.extractor": "RecordField", "timestamp.field": field, **more}


def one(value, ts=T, **more):
    return [Rec({"n": 0, **value}, ts, **more)]


def record(name, *members):
    return {"type": "record", "name": name, "fields": [{"name": "n", "type": "int"}, *members]}


def member(name, kind, **more):
    return {"name": name, "type": kind, **more}


def ms(text):
    return int(dt.datetime.fromisoformat(text).timestamp() * 1000)


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
DATE = {"type": "int", "logicalType": "date"}
SYMBOLS = {"type": "enum", "name": "e", "symbols": ["NORTH", "SOUTH"]}
INNER = {"type": "record", "name": "inner", "fields": [{"name": "city", "type": ["null", "string"], "default": None}]}
AT16 = "year=2024/month=05/day=31/hour=16/0+0000000000"

ROWS = {
    # names
    "default": ({}, one({}), "partition=0/0+0000000000"),
    "padding": ({"filename.offset.zero.pad.width": "3"}, one({}), "partition=0/0+000"),
    "padding: none": ({"filename.offset.zero.pad.width": "0"}, one({}), "partition=0/0+0"),
    "topics.dir: deep": ({"topics.dir": "a/b"}, one({}), "a/b/TOPIC/partition=0/0+0000000000"),
    "topics.dir: empty": ({"topics.dir": ""}, one({}), "TOPIC/partition=0/0+0000000000"),
    "directory.delim": ({"directory.delim": "_"}, one({}), "topics_TOPIC_partition=0_0+0000000000"),
    "file.delim": ({"file.delim": "-"}, one({}), "partition=0/TOPIC-0-0000000000"),
    # time, by the pattern
    "hourly": (HOURLY, one({}), AT16),
    "daily": (DAILY, one({}), "year=2024/month=05/day=31/0+0000000000"),
    "hourly: with another delimiter": (
        {**HOURLY, "directory.delim": "-"},
        one({}),
        "topics-TOPIC-year=2024-month=05-day=31-hour=16-0+0000000000",
    ),
    "hourly: in Los Angeles": (
        {**HOURLY, "timezone": "America/Los_Angeles"},
        one({}),
        "year=2024/month=05/day=31/hour=09/0+0000000000",
    ),
    "hourly: with a fixed offset": (
        {**HOURLY, "timezone": "+09:30"},
        one({}),
        "year=2024/month=06/day=01/hour=01/0+0000000000",
    ),
    "daily: in Tokyo": ({**DAILY, "timezone": "Asia/Tokyo"}, one({}), "year=2024/month=06/day=01/0+0000000000"),
    "pattern: calendar year in capitals": (timed("YYYY-MM-dd"), one({}, ms("2024-12-30T12:00+00:00")), "2024-12-30"),
    "pattern: week year": (timed("xxxx-'W'ww-e"), one({}, ms("2024-12-30T12:00+00:00")), "2025-W01-1"),
    "pattern: day of year": (timed("yyyy/DDD"), one({}), "2024/152"),
    "pattern: month and day as text": (timed("EEE-EEEE-MMM-MMMM"), one({}), "Fri-Friday-May-May"),
    "pattern: in French": (timed("MMMM-EEEE", locale="fr-FR"), one({}), "mai-vendredi"),
    "pattern: in German": (timed("MMMM", locale="de"), one({}, ms("2024-03-01T00:00+00:00")), "März"),
    "pattern: hours of a half day": (timed("hh-KK-kk-a", 1), one({}), "04-04-16-PM"),
    "pattern: minutes": (timed("HH/mm", 60_000), one({}), "16/08"),
    "pattern: fraction, cut off": (timed("ss.SSSS", 1), one({}), "37.1710"),
    "pattern: offset and zone": (timed("Z_ZZ_ZZZ", 1, timezone="Asia/Kolkata"), one({}), "+0530_+05:30_Asia/Kolkata"),
    "pattern: a zone without a name": (timed("z", 1, timezone="Asia/Kathmandu"), one({}), "+05:45"),
    "pattern: quoted quote": (timed("yyyy'o''clock'''''"), one({}), "2024o'clock''"),
    "pattern: two-digit year": (timed("yy-YY-xx"), one({}), "24-24-24"),
    "pattern: trailing delimiter dropped": (timed("yyyy/MM/"), one({}), "2024/05"),
    "pattern: the partition's own name": (timed("'dt'=yyyy-MM-dd/'h'=HH"), one({}), "dt=2024-05-31/h=16"),
    # time, by the duration
    "duration: ten minutes": (timed("HH-mm", 600_000), one({}), "16-00"),
    "duration: a day with an hourly pattern": (timed("dd-HH", 86_400_000), one({}), "31-00"),
    "duration: before 1970 rounds up": (
        {**HOURLY, "timezone": "America/Los_Angeles"},
        one({}, 12),
        "year=1969/month=12/day=31/hour=17/0+0000000000",
    ),
    "duration: Nepal's offset": (timed("HH-mm", timezone="Asia/Kathmandu"), one({}), "21-00"),
    # a clock that is set: both hours of the autumn have one name
    "dst: before it ends": (
        timed("dd-HH", timezone="Europe/Berlin"),
        one({}, ms("2024-10-27T00:30+00:00")),
        "27-02",
    ),
    "dst: after it ended": (
        timed("dd-HH", timezone="Europe/Berlin"),
        one({}, ms("2024-10-27T01:30+00:00")),
        "27-02",
    ),
    "dst: the hour that is skipped": (
        timed("dd-HH-mm", timezone="Europe/Berlin"),
        one({}, ms("2024-03-31T01:30+00:00")),
        "31-03-00",
    ),
    # times from fields
    "field time: long": (by("t"), one({"t": T}, 0), AT16),
    "field time: whole double": (by("t"), one({"t": float(T) + 0.9}, 0), AT16),
    "field time: digits": (by("t"), one({"t": str(T)}, 0), AT16),
    "field time: a year is milliseconds": (
        by("t"),
        one({"t": "2024"}, 0),
        "year=1970/month=01/day=01/hour=00/0+0000000000",
    ),
    "field time: nested": (by("a.b.t"), one({"a": {"b": {"t": T}}}, 0), AT16),
    "field time: ISO with Z": (by("t"), one({"t": "2024-05-31T16:08:37Z"}, 0), AT16),
    "field time: ISO with offset": (by("t"), one({"t": "2024-05-31T18:08:37.171+02:00"}, 0), AT16),
    "field time: ISO without colon": (by("t"), one({"t": "2024-05-31T18:08:37+0200"}, 0), AT16),
    "field time: ISO with comma": (by("t"), one({"t": "2024-05-31T16:08:37,171Z"}, 0), AT16),
    "field time: ISO minutes": (by("t"), one({"t": "2024-05-31T16:08"}, 0), AT16),
    "field time: ISO hour": (by("t"), one({"t": "2024-05-31T16"}, 0), AT16),
    "field time: ISO week": (by("t"), one({"t": "2024-W22-5T16"}, 0), AT16),
    "field time: ISO ordinal": (by("t"), one({"t": "2024-152T16:00Z"}, 0), AT16),
    "field time: ISO date": (
        by("t"),
        one({"t": "2024-05-31"}, 0),
        "year=2024/month=05/day=31/hour=00/0+0000000000",
    ),
    "field time: without an offset it is of the zone": (
        by("t", timezone="America/New_York"),
        one({"t": "2024-05-31T16:08:37"}, 0),
        AT16,
    ),
    "field time: Avro long": (by("t"), one({"t": T}, 0, schema=record("r", member("t", "long"))), AT16),
    "field time: Avro int": (
        by("t"),
        one({"t": 7_200_000}, 0, schema=record("r", member("t", "int"))),
        "year=1970/month=01/day=01/hour=02/0+0000000000",
    ),
    "field time: Avro timestamp": (by("t"), one({"t": T}, 0, schema=record("r", member("t", MILLIS))), AT16),
    "field time: Avro microseconds": (by("t"), one({"t": T * 1000}, 0, schema=record("r", member("t", MICROS))), AT16),
    "field time: Avro date": (
        {**by("t"), "partitioner.class": "daily"},
        one({"t": 19_874}, 0, schema=record("r", member("t", DATE))),
        "year=2024/month=05/day=31/0+0000000000",
    ),
    "field time: Avro text": (
        by("t"),
        one({"t": "2024-05-31T16:08:37Z"}, 0, schema=record("r", member("t", ["null", "string"]))),
        AT16,
    ),
    "field time: Avro map": (
        by("m.t"),
        one({"m": {"s": 1, "t": T}}, 0, schema=record("r", member("m", {"type": "map", "values": "long"}))),
        AT16,
    ),
    # fields
    "field: text": (fields("c"), one({"c": "FR"}), "c=FR"),
    "field: two": (fields("c", "d"), one({"c": "FR", "d": 7}), "c=FR/d=7"),
    "field: order of configuration": (fields("d", "c"), one({"c": "FR", "d": 7}), "d=7/c=FR"),
    "field: another delimiter": (
        fields("c", "d", **{"directory.delim": "_"}),
        one({"c": "FR", "d": 7}),
        "topics_TOPIC_c=FR_d=7_0+0000000000",
    ),
    "field: number": (fields("d"), one({"d": -12}), "d=-12"),
    "field: boolean": (fields("d"), one({"d": True}), "d=true"),
    "field: null": (fields("c"), one({"c": None}), "c=null"),
    "field: missing in JSON": (fields("c"), one({}), "c=null"),
    "field: empty text": (fields("c"), one({"c": ""}), "c="),
    "field: with a slash": (fields("c"), one({"c": "a/b"}), "c=a/b"),
    "field: with blanks and signs": (fields("c"), one({"c": "a b&c=d+e"}), "c=a b&c=d+e"),
    "field: not ASCII": (fields("c"), one({"c": "Zürich"}), "c=Zürich"),
    "field: dots cannot climb": (fields("c"), one({"c": "a/../../b"}), "c=a/%2E%2E/%2E%2E/b"),
    "field: control characters": (fields("c"), one({"c": "a\nb\x00"}), "c=a%0Ab%00"),
    "field: nested": (
        fields("user.address.city"),
        one({"user": {"address": {"city": "NYC"}}}),
        "user.address.city=NYC",
    ),
    "field: nested under null": (fields("user.city"), one({"user": None}), "user.city=null"),
    "field: Avro text": (fields("c"), one({"c": "FR"}, schema=record("r", member("c", "string"))), "c=FR"),
    "field: Avro enum": (fields("c"), one({"c": "SOUTH"}, schema=record("r", member("c", SYMBOLS))), "c=SOUTH"),
    "field: Avro long": (fields("c"), one({"c": 2**40}, schema=record("r", member("c", "long"))), f"c={2**40}"),
    "field: Avro boolean": (fields("c"), one({"c": False}, schema=record("r", member("c", "boolean"))), "c=false"),
    "field: Avro null": (fields("c"), one({"c": None}, schema=record("r", member("c", ["null", "string"]))), "c=null"),
    "field: Avro nested": (
        fields("a.city"),
        one({"a": {"city": "Rome"}}, schema=record("r", member("a", ["null", INNER]))),
        "a.city=Rome",
    ),
    "field: Avro nested under null": (
        fields("a.city"),
        one({"a": None}, schema=record("r", member("a", ["null", INNER]))),
        "a.city=null",
    ),
    "field: the key": (fields("_key"), one({}, key=b"k1"), "_key=k1"),
    "field: no key": (fields("_key"), one({}), "_key=null"),
    "field: a header": (
        fields("_header.app"),
        one({}, headers=(("app", b"old"), ("other", b"x"), ("app", b"shop"))),
        "_header.app=shop",
    ),
    "field: no header": (fields("_header.app"), one({}), "_header.app=null"),
    "field: Kafka's partition": (fields("_partition", "c"), one({"c": "FR"}), "_partition=0/c=FR"),
    "field: the topic": (fields("_topic"), one({}), "_topic=TOPIC"),
    "field and time": (
        {**timed("yyyy/MM"), "partitioner.class": "FieldAndTime", "partition.field.name": "c"},
        one({"c": "FR"}),
        "c=FR/2024/05",
    ),
    "field and time: values only": (
        {
            **timed("yyyy/MM"),
            "partitioner.class": "FieldAndTime",
            "partition.field.name": "c",
            "partition.field.format.path": "false",
        },
        one({"c": "FR"}),
        "FR/2024/05",
    ),
    # the schema's name
    "affix: before": (
        {"s3.schema.partition.affix.type": "PREFIX"},
        one({}, schema={**record("Order"), "namespace": "shop"}),
        "schema_name=shop.Order/partition=0",
    ),
    "affix: behind": (
        {"s3.schema.partition.affix.type": "SUFFIX"},
        one({}, schema=record("Order")),
        "partition=0/schema_name=Order",
    ),
    "affix: without a schema": (
        {"s3.schema.partition.affix.type": "SUFFIX"},
        one({}),
        "partition=0/schema_name=null",
    ),
    # templates
    "template": (
        {"path.template": "raw/{{topic}}/{{partition}}-{{start_offset}}"},
        one({}),
        "raw/TOPIC/0-0",
    ),
    "template: padded": (
        {"path.template": "{{topic}}/{{partition:padding=true}}+{{start_offset:padding=true}}"},
        one({}),
        "TOPIC/0000000000+0000000000",
    ),
    "template: time": (
        {"path.template": "{{topic}}/{{timestamp:yyyy/MM/dd}}/{{partition}}-{{start_offset}}", **TIMED},
        one({}),
        "TOPIC/2024/05/31/0-0",
    ),
    "template: field": (
        {"path.template": "{{field:c}}/{{topic}}/{{partition}}-{{start_offset}}"},
        one({"c": "a/{{b}}"}),
        "a%2F%7B%7Bb}}/TOPIC/0-0",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_records_go_where_the_rules_say(connect, name):
    properties, records, expected = ROWS[name]
    outcome = connect(records, {"flush.size": "1", **properties})
    assert outcome.faults == []
    assert [len(rows) for rows in outcome.objects.values()] == [1]
    (key,) = outcome.objects
    assert key in (expected, f"{expected}/0+0000000000")


class ByLength:
    """A partitioner of the user's own."""

    def __init__(self, properties):
        self.limit = int(properties["partitioner.option.limit"])

    def encode(self, batch):
        large = np.diff(batch.records.values.offsets) > self.limit
        return Labels(("small", "large"), large.astype(np.int32))


class Doubled:
    """An extractor of the user's own."""

    def __init__(self, properties):
        pass

    def extract(self, batch):
        return Times(batch.records.timestamps * 2)


def test_a_partitioner_of_ones_own(connect):
    records = [Rec({"n": 0}), Rec({"n": 1, "more": "x" * 50})]
    own = {"partitioner.class": "test_places:ByLength", "partitioner.option.limit": "20", "flush.size": "2"}
    assert sorted(connect(records, own).objects) == ["large/0+0000000001", "small/0+0000000000"]


def test_an_extractor_of_ones_own(connect):
    own = {**HOURLY, "timestamp.extractor": "test_places:Doubled", "flush.size": "1"}
    (key,) = connect([Rec({"n": 0}, T // 2)], own).objects
    assert key == AT16


class ByMinute:
    """A partitioner of the user's own that goes by the extracted time."""

    def __init__(self, properties):
        pass

    def encode(self, batch):
        distinct, codes = np.unique(batch.times.ms // 60_000, return_inverse=True)
        return Labels(tuple(f"minute={each}" for each in distinct), codes.astype(np.int32))


def test_a_partitioner_of_ones_own_may_ask_for_times(connect):
    own = {"partitioner.class": "test_places:ByMinute", "timestamp.extractor": "Record", "rotate.interval.ms": "60000"}
    outcome = connect([Rec({"n": 0}, T), Rec({"n": 1}, T + 60_000)], own)
    assert list(outcome.objects) == [f"minute={T // 60_000}/0+0000000000"]
    assert outcome.warnings == ()


def test_a_template_with_times_warns_of_nothing(connect):
    given = {
        "path.template": "{{topic}}/{{timestamp:HH}}/{{partition}}-{{start_offset}}",
        "timestamp.extractor": "Record",
    }
    assert connect([Rec({"n": 0}, T)], {**given, "timezone": "UTC", "flush.size": "1"}).warnings == ()
