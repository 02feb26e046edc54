"""What cannot be written stops its topic-partition with one sentence; what came before it in whole files counts."""

from __future__ import annotations

import pytest

from connecting import Rec
from penstock.errors import ConfigError

pytestmark = pytest.mark.stack

TIMED = {"partitioner.class": "hourly", "locale": "en-US", "timezone": "UTC"}
BY_T = {**TIMED, "timestamp.extractor": "RecordField", "timestamp.field": "t"}
BY_C = {"partitioner.class": "field", "partition.field.name": "c"}
GOOD = {"n": 0, "t": 1_717_171_717_171, "c": "x"}


def schema(name, kind, **more):
    return {"type": "record", "name": "r", "fields": [{"name": name, "type": kind, **more}]}


RECORDS = {
    "no time in the field": (BY_T, Rec({"n": 1}), "its value has no timestamp.field `t`"),
    "a null time": (BY_T, Rec({"t": None}), "timestamp.field `t` is null"),
    "a text that is no time": (BY_T, Rec({"t": "yesterday"}), "timestamp.field `t` is `yesterday`, which is no time"),
    "a long text": (BY_T, Rec({"t": "x" * 500}), f"is `{'x' * 40}...`, which is no time"),
    "an impossible date": (BY_T, Rec({"t": "2024-02-30T00:00:00Z"}), "`2024-02-30T00:00:00Z`, which is no time"),
    "an object for a time": (BY_T, Rec({"t": {"x": 1}}), "timestamp.field `t` is of type record, which is no time"),
    "a boolean for a time": (BY_T, Rec({"t": True}), "timestamp.field `t` is of type boolean, which is no time"),
    "a time in microseconds": (BY_T, Rec({"t": 10**18}), "its time 1000000000000000000 ms is not within the years"),
    "a double in a path": (
        BY_C,
        Rec({"c": 1.5}),
        "partition.field.name `c` is of type double, which cannot be part of a path",
    ),
    "an array in a path": (BY_C, Rec({"c": [1]}), "partition.field.name `c` is of type array, which cannot be part"),
    "an object in a path": (BY_C, Rec({"c": {}}), "partition.field.name `c` is of type record, which cannot be part"),
    "no JSON": (BY_C, Rec(b"{oops"), "its value is not JSON"),
    "a null value": (BY_C, Rec(None), "the value is null, and behavior.on.null.values is `fail`"),
    "the document null": ({}, Rec(b"null"), "the value is null, and behavior.on.null.values is `fail`"),
}


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_bad_record_stops_its_partition_and_is_named(connect, name, place):
    """At the first, a middle or the last place of a file: the whole file before it stands."""
    properties, bad, reason = RECORDS[name]
    records = [Rec(GOOD)] * (3 + place) + [bad] + [Rec(GOOD)] * 5
    outcome = connect(records, {"flush.size": "3", **properties})
    assert [len(rows) for rows in outcome.objects.values()] == [3]
    (fault,) = outcome.faults
    assert f"-0@{3 + place}: " in fault
    assert reason in fault


AVRO = {
    "a field that the schema lacks": (BY_C, {"n": 1}, schema("n", "int"), "its schema has no partition.field.name `c`"),
    "a time that the schema lacks": (BY_T, {"n": 1}, schema("n", "int"), "its value has no timestamp.field `t`"),
    "bytes in a path": (
        BY_C,
        {"c": b"x"},
        schema("c", "bytes"),
        "`c` is of type bytes, which cannot be part of a path",
    ),
    "a timestamp in a path": (
        BY_C,
        {"c": 0},
        schema("c", {"type": "long", "logicalType": "timestamp-millis"}),
        "`c` is of type timestamp-millis, which cannot be part of a path",
    ),
    "a decimal in a path": (
        BY_C,
        {"c": b"x"},
        schema("c", {"type": "bytes", "logicalType": "decimal", "precision": 4}),
        "`c` is of type decimal, which cannot be part of a path",
    ),
}


@pytest.mark.parametrize("name", AVRO)
def test_so_does_one_whose_schema_does_not_fit(connect, name):
    properties, value, its_schema, reason = AVRO[name]
    outcome = connect([Rec(value, schema=its_schema)], {"flush.size": "1", **properties})
    assert outcome.objects == {}
    (fault,) = outcome.faults
    assert "-0@0: " in fault
    assert reason in fault


CONFIGS = {
    "unknown letter": (
        {**TIMED, "partitioner.class": "time", "path.format": "yyyy/qq", "partition.duration.ms": "1"},
        "path.format has the letter `q` at place 6",
    ),
    "open quote": (
        {**TIMED, "partitioner.class": "time", "path.format": "'year", "partition.duration.ms": "1"},
        "has a quote at place 1 that is not closed",
    ),
    "no such zone": (
        {**TIMED, "timezone": "Europe/Berlim"},
        "UTC or +02:00; did you mean `Europe/Berlin`?, got `Europe/Berlim`",
    ),
    "no such locale": ({**TIMED, "locale": "xx-YY"}, "locale must be a locale such as en-US, de or fr-FR, got `xx-YY`"),
    "no zone for a schedule": ({"rotate.schedule.interval.ms": "1000"}, "rotate.schedule.interval.ms needs timezone"),
    "no field": ({"partitioner.class": "field"}, "partitioner.class `field` needs partition.field.name"),
    "an empty step": ({"partitioner.class": "field", "partition.field.name": "a..b"}, "has an empty part in `a..b`"),
    "no duration": (
        {**TIMED, "partitioner.class": "time", "path.format": "yyyy"},
        "partitioner.class `time` needs partition.duration.ms",
    ),
    "no format": (
        {**TIMED, "partitioner.class": "time", "partition.duration.ms": "1"},
        "partitioner.class `time` needs path.format",
    ),
    "no locale": ({"partitioner.class": "daily", "timezone": "UTC"}, "partitioner.class `daily` needs locale"),
    "no class of that name": ({"partitioner.class": "nowhere:Partitioner"}, "`nowhere:Partitioner` cannot be imported"),
    "template without offset": (
        {"path.template": "{{topic}}/{{partition}}"},
        "path.template must hold {{start_offset}}: without it two files could get one name",
    ),
    "template that runs together": (
        {"path.template": "{{topic}}/{{partition}}{{start_offset}}"},
        "does not keep {{partition}} apart from what stands beside it",
    ),
    "template with a topic that runs on": (
        {"path.template": "{{topic}}{{partition}}+{{start_offset}}"},
        "does not keep {{topic}} apart",
    ),
    "template with a field beside an offset": (
        {"path.template": "{{topic}}/{{field:c}}-{{partition}}+{{start_offset}}"},
        "in the same path segment",
    ),
    "template with an unknown variable": ({"path.template": "{{topic}}/{{shard}}"}, "unknown variable `shard`"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_configuration_that_cannot_work_is_refused_at_start(connect, name):
    properties, sentence = CONFIGS[name]
    with pytest.raises(ConfigError) as caught:
        connect([], {"flush.size": "1", "topics": "a,b", **properties})
    assert sentence in str(caught.value)
