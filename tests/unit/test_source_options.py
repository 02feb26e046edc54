"""Options of penstock.kafka: Spark's names in any case, and every mistake at once."""

import re
import subprocess
import sys

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from penstock.converters import KINDS
from penstock.errors import ConfigError
from penstock.model import PlannedRange, TopicPartition
from penstock.sources.filters import accept, bounds, passes
from penstock.sources.options import CONVERTER_NAMES, OPTIONS, parse
from penstock.sources.positions import (
    EARLIEST,
    LATEST,
    AtOffsets,
    AtTimes,
    Everywhere,
    as_json,
    at_most,
    limited,
    of_json,
    split,
)

BASE = {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}
TP = TopicPartition("t", 0)


def problems(mode="batch", **options):
    with pytest.raises(ConfigError) as caught:
        parse({name: text for name, text in {**BASE, **options}.items() if text is not None}, mode)
    return caught.value.problems


def test_names_come_in_any_case_as_spark_hands_them_over():
    found = parse({**BASE, "INCLUDEHEADERS": "TRUE", "startingoffsets": "earliest", "minpartitions": "7"}, "batch")
    assert (found.headers, found.start, found.min_partitions) == (True, Everywhere(EARLIEST), 7)


def test_all_mistakes_come_in_one_error():
    found = problems(
        **{
            "kafka.bootstrap.servers": None,
            "assign": "{}",
            "startingOffsets": "soon",
            "includeHeader": "true",
            "kafka.auto.offset.reset": "earliest",
            "value.converter": "avro",
            "value.converter.schema.registry.urll": "x",
            "errors.tolerance": "some",
            "kafka.fetch.min.byte": "1",
        }
    )
    text = "\n".join(found)
    for words in (
        "kafka.bootstrap.servers must be set",
        "assign must be JSON like",
        "exactly one of subscribe, subscribePattern and assign, got subscribe and assign",
        "startingOffsets must be earliest, latest or JSON",
        "unknown option `includeHeader`; did you mean `includeHeaders`?",
        "kafka.auto.offset.reset says nothing here: use startingOffsets",
        "value.converter.schema.registry.url must be set",
        "value.converter.schema.registry.urll",
        "errors.tolerance must be none or all, got `some`",
        "kafka.fetch.min.byte is no property of Kafka's consumer; did you mean fetch.min.bytes?",
    ):
        assert words in text
    assert all(each.startswith("penstock.kafka: ") for each in found)


@pytest.mark.parametrize(
    ("mode", "options", "words"),
    [
        ("batch", {"startingOffsets": "latest"}, "startingOffsets cannot begin at latest (-1), got `latest`"),
        ("batch", {"startingOffsets": '{"t": {"0": -1}}'}, "startingOffsets cannot begin at latest"),
        ("batch", {"endingOffsets": "earliest"}, "endingOffsets cannot end at earliest (-2)"),
        ("batch", {"endingOffsets": '{"t": {"0": -2}}'}, "endingOffsets cannot end at earliest"),
        ("batch", {"maxOffsetsPerTrigger": "5"}, "maxOffsetsPerTrigger is an option of a stream query"),
        ("stream", {"endingOffsets": "latest"}, "endingOffsets is an option of a batch query"),
        ("stream", {"endingTimestamp": "1"}, "endingTimestamp is an option of a batch query"),
        ("batch", {"startingOffsets": '{"t": {"x": 1}}'}, "must be earliest, latest or JSON"),
        ("batch", {"startingOffsets": '{"t": {"0": "1"}}'}, "must be earliest, latest or JSON"),
        ("batch", {"subscribe": None, "assign": '{"t": [-1]}'}, "assign must be JSON like"),
        ("batch", {"subscribe": None, "subscribePattern": "("}, "subscribePattern must be a valid regular expression"),
        ("batch", {"subscribe": "a b"}, "subscribe must be topic names"),
        ("batch", {"subscribe": None}, "got none of them"),
        ("stream", {"maxTriggerDelay": "soon"}, "maxTriggerDelay must be a length of time"),
        ("batch", {"value.schema": "id INT"}, "value.schema must be the JSON of a Spark type"),
        ("batch", {"value.converter": "xml"}, "value.converter must be avro, json"),
        ("batch", {"minPartitions": "0"}, "minPartitions must be"),
    ],
)
def test_what_an_option_cannot_be(mode, options, words):
    assert any(words in each for each in problems(mode, **options)), problems(mode, **options)


def test_no_message_or_repr_shows_a_secret():
    secret = "hunter2"
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{secret}";'
    options = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": login,
        "value.converter": "avro",
        "value.converter.schema.registry.url": f"http://u:{secret}@h",
    }
    assert secret not in repr(parse({**BASE, **options}, "batch"))
    assert secret not in "\n".join(problems(**options, nonsense="1"))


def test_the_most_exact_way_to_say_where_to_begin_counts():
    offsets = {"startingOffsets": '{"t": {"0": 3}}'}
    times = {"startingOffsetsByTimestamp": '{"t": {"0": 99}}'}
    time = {"startingTimestamp": "77"}
    assert parse({**BASE, **offsets}, "batch").start == AtOffsets({TP: 3})
    assert parse({**BASE, **offsets, **times}, "batch").start == AtTimes(times={TP: 99})
    assert parse({**BASE, **offsets, **times, **time}, "batch").start == AtTimes(77)
    assert parse({**BASE, "startingOffsets": "LATEST"}, "stream").start == Everywhere(LATEST)


def test_the_page_names_every_option(pytestconfig):
    page = (pytestconfig.rootpath / "docs" / "spark.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w.]+)` \| [^|]* \| (.+) \|$", page, re.MULTILINE))
    assert {each.name: each.doc for each, _ in OPTIONS} == {
        name: rows.get(name) for name in [e.name for e, _ in OPTIONS]
    }


def test_ranges_are_split_into_pieces_that_are_the_ranges():
    ranges = [
        PlannedRange(TP, 0, 100),
        PlannedRange(TopicPartition("t", 1), 5, 6),
        PlannedRange(TopicPartition("u", 0), 9, 59),
    ]
    for least in (0, 1, 3, 4, 7, 50, 1000):
        found = split(ranges, least)
        assert len(found) >= min(least, 151)
        assert sorted((r.tp, o) for r in found for o in range(r.start, r.end)) == sorted(
            (r.tp, o) for r in ranges for o in range(r.start, r.end)
        )
        assert all(r.offsets for r in found)
    assert max(r.offsets for r in at_most(ranges, 30)) == 30
    assert sum(r.offsets for r in at_most(ranges, 30)) == 151


def test_a_trigger_takes_from_every_topic_partition_in_proportion():
    other, idle = TopicPartition("t", 1), TopicPartition("t", 2)
    start = {TP: 0, other: 100, idle: 7}
    end = {TP: 900, other: 200, idle: 7}
    assert limited(start, end, 100) == {TP: 90, other: 110, idle: 7}
    assert limited(start, end, 5000) == end
    assert limited(start, end, 1) == {TP: 1, other: 101, idle: 7}, "nobody starves"
    assert limited(start, {**end, idle: 3}, 100)[idle] == 7, "offsets never go back"


def test_offsets_are_the_json_of_sparks_checkpoint():
    offsets = {TopicPartition("b", 10): 4, TopicPartition("b", 9): 3, TopicPartition("a", 0): 2}
    assert list(as_json(offsets).items()) == [("a", {"0": 2}), ("b", {"9": 3, "10": 4})]
    assert of_json(as_json(offsets)) == offsets


TOPIC = ("topic",)
OFFSET = ("offset",)


@pytest.mark.parametrize(
    ("pushed", "row", "fits"),
    [
        (EqualTo(TOPIC, "a"), {"topic": "a"}, True),
        (EqualTo(TOPIC, "a"), {"topic": "b"}, False),
        (Not(EqualTo(TOPIC, "a")), {"topic": "b"}, True),
        (EqualNullSafe(TOPIC, "a"), {"topic": "a"}, True),
        (In(TOPIC, ("a", "b")), {"topic": "b"}, True),
        (Not(In(TOPIC, ("a", "b"))), {"topic": "b"}, False),
        (StringStartsWith(TOPIC, "ab"), {"topic": "abc"}, True),
        (StringEndsWith(TOPIC, "bc"), {"topic": "abc"}, True),
        (StringContains(TOPIC, "x"), {"topic": "abc"}, False),
        (IsNotNull(TOPIC), {"topic": "abc"}, True),
        (Not(IsNotNull(TOPIC)), {"topic": "abc"}, False),
        (GreaterThan(TOPIC, "b"), {"topic": "a"}, False),
    ],
)
def test_what_a_filter_means(pushed, row, fits):
    conditions, rest = accept([pushed], ("topic",))
    assert rest == []
    assert passes(conditions, row) is fits


@pytest.mark.parametrize(
    "pushed", [EqualTo(("value", "topic"), "a"), EqualTo(("key",), b"a"), EqualTo(TOPIC, None), In(TOPIC, ("a", None))]
)
def test_what_is_not_decided_here_stays_sparks(pushed):
    assert accept([pushed], ("topic", "key")) == ((), [pushed])


def test_the_bounds_of_several_filters_are_their_intersection():
    pushed = [
        GreaterThanOrEqual(OFFSET, 3),
        GreaterThan(OFFSET, 4),
        LessThan(OFFSET, 20),
        LessThanOrEqual(OFFSET, 15),
        Not(EqualTo(OFFSET, 9)),
    ]
    assert bounds(accept(pushed, ("offset",))[0], "offset") == (5, 16)
    assert bounds(accept([In(OFFSET, (9, 4, 7))], ("offset",))[0], "offset") == (4, 10)
    assert bounds(accept([EqualTo(OFFSET, 4), GreaterThan(OFFSET, 6)], ("offset",))[0], "offset") == (7, 5)


def test_the_converters_named_are_those_there_are():
    assert set(CONVERTER_NAMES) <= {name.removesuffix("_envelope") for name in KINDS}


def test_planning_a_query_of_binary_values_needs_no_numba():
    cheap = "import sys, penstock; print('pyspark' in sys.modules)\n"
    program = cheap + "import penstock.sources.kafka; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"], "import penstock is cheap, and so are plans"
