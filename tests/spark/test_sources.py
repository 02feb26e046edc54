"""The data sources within Spark: planning, push-down, streams and their checkpoints, and what a mistake looks like."""

import json
import re

import pytest
from confluent_kafka import Producer
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

import penstock
from penstock.cli.main import main

pytestmark = [pytest.mark.spark, pytest.mark.stack]

FIRST_MS = 1_700_000_000_000


@pytest.fixture
def kafka(spark, stack):
    """A reader with the brokers set: `kafka(subscribe="t")`, `kafka(stream=True, ...)`."""

    def make(*, stream=False, **options):
        source = (spark.readStream if stream else spark.read).format("penstock.kafka")
        return source.option("kafka.bootstrap.servers", stack.bootstrap_servers).options(**options)

    return make


@pytest.fixture
def fill(stack):
    def produce(topic, numbers, partitions=2):
        producer = Producer({"bootstrap.servers": stack.bootstrap_servers})
        for n in numbers:
            producer.produce(topic, json.dumps({"n": n}), str(n), n % partitions, timestamp=FIRST_MS + 1000 * n)
        assert producer.flush(30) == 0

    return produce


def test_a_query_is_planned_with_its_filters_in_the_source(kafka, fill, make_topic):
    topic = make_topic(2)
    fill(topic, range(100))
    df = kafka(subscribe=topic).load()
    wanted = df.where(
        "partition = 1 and offset between 10 and 30 and topic like 'top%' "
        "and timestamp >= timestamp'2023-11-14 22:13:50Z'"
    )
    plan = wanted._jdf.queryExecution().executedPlan().toString()
    assert "Filter (" not in plan
    assert "penstock.kafka" in plan
    assert sorted(row.offset for row in wanted.select("offset").collect()) == list(range(15, 31))
    mixed = df.where((F.col("partition") == 0) & (F.length("value") > 8))
    assert "Filter (" in mixed._jdf.queryExecution().executedPlan().toString()
    assert mixed.count() == 45
    empty = df.where("partition = 7")
    assert (empty.count(), empty.collect()) == (0, [])


def test_typed_values_and_sparks_sql(spark, kafka, fill, make_topic):
    topic = make_topic(2)
    fill(topic, range(10))
    kafka(subscribe=topic, **{"value.converter": "json"}).load().createOrReplaceTempView("numbers")
    (row,) = spark.sql("SELECT sum(value.n) AS n, count(DISTINCT partition) AS p FROM numbers").collect()
    assert (row.n, row.p) == (45, 2)


def test_a_mistake_is_its_sentences_and_no_traceback(kafka, fill, make_topic):
    topic = make_topic(2)
    with pytest.raises(AnalysisException) as caught:
        kafka(subscribes=topic, includeHeaders="maybe").load()
    assert "unknown option `subscribes`; did you mean `subscribe`?" in str(caught.value)
    assert "includeHeaders must be true or false, got `maybe`" in str(caught.value)
    assert "Traceback" not in str(caught.value)
    fill(topic, range(4))
    broken = kafka(
        subscribe=topic, **{"value.converter": "json", "value.schema": '{"type":"struct","fields":[]}'}
    ).load()
    assert broken.count() == 4
    with pytest.raises(PySparkException) as failed:
        kafka(subscribe=topic, **{"value.converter": "json", "value.schema": '"long"'}).load().collect()
    assert re.search(rf"{topic}-[01]@0: its value cannot be decoded", str(failed.value)), "whichever task came first"
    assert "reading.py" not in str(failed.value)


def run(stream, seen, checkpoint):
    """Read what is there, in micro-batches; their rows."""
    query = (
        stream.writeStream.foreachBatch(
            lambda df, number: seen.append((number, df.select("offset", "partition").collect()))
        )
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    return query


def test_a_stream_reads_in_limited_batches_and_goes_on_from_its_checkpoint(kafka, fill, make_topic, tmp_path):
    topic = make_topic(2)
    fill(topic, range(50))
    seen = []
    limited = kafka(stream=True, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="20").load()
    run(limited, seen, tmp_path / "c")
    assert [len(rows) for _, rows in seen] == [20, 20, 10]
    assert len({tuple(row) for _, rows in seen for row in rows}) == 50
    *_, offsets = (tmp_path / "c" / "offsets" / "2").read_text().splitlines()
    assert json.loads(offsets) == {topic: {"0": 25, "1": 25}}, "as Spark's own Kafka source writes it"

    fill(topic, range(50, 57))
    seen.clear()
    run(kafka(stream=True, subscribe=topic).load(), seen, tmp_path / "c")
    assert [len(rows) for _, rows in seen] == [7]


def test_a_checkpoint_of_sparks_own_source_is_gone_on_from(kafka, fill, make_topic, tmp_path):
    topic = make_topic(2)
    fill(topic, range(20))
    checkpoint = tmp_path / "c"
    for name, text in (
        ("metadata", '{"id":"0b3c1d84-6d1c-4a0b-9d5e-0c9a44c2a3b1"}'),
        ("offsets/0", f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{{}}}}\n{{"{topic}":{{"0":4,"1":9}}}}'),
        ("commits/0", 'v1\n{"nextBatchWatermarkMs":0}'),
    ):
        (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoint / name).write_text(text)
    seen = []
    run(kafka(stream=True, subscribe=topic).load(), seen, checkpoint)
    rows = {tuple(row) for _, batch in seen for row in batch}
    assert rows == {(offset, 0) for offset in range(4, 10)} | {(9, 1)}


def test_registering_twice_is_no_mistake(spark):
    penstock.register(spark)


def test_the_commands_show_what_a_connector_committed(spark, fill, topic, stack, bucket, tmp_path, capsys):
    fill(topic, range(6), partitions=1)
    given = stack.as_json()
    file = tmp_path / "sink.json"
    properties = {
        "name": bucket,
        "connector.class": "s3",
        "storage.class": "s3",
        "topics": topic,
        "format.class": "json",
        "value.converter": "json",
        "value.converter.schemas.enable": "false",
        "flush.size": "3",
        **{name: given[name] for name in given if name.startswith(("s3.", "aws.", "store."))},
        "s3.bucket.name": bucket,
    }
    file.write_text(json.dumps(properties))
    penstock.Sink.from_properties(properties, {"bootstrap.servers": stack.bootstrap_servers}).run(
        spark, until_done=True
    )

    def penstock_says(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([*arguments])
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    code, out, _ = penstock_says("ls", str(file), "--output", "json")
    listed = json.loads(out)["objects"]
    assert code == 0
    assert [(each["start"], each["end"], each["records"]) for each in listed] == [(0, 3, 3), (3, 6, 3)]
    query = "SELECT _object, sum(n) AS n FROM records GROUP BY _object ORDER BY n"
    code, out, err = penstock_says("sql", str(file), query, "--limit", "1", "--output", "json")
    assert (code, json.loads(out)) == (0, {"rows": [{"_object": listed[0]["object"], "n": 3}]})
    assert "only the first 1 rows" in err
    code, out, err = penstock_says("sql", str(file), "SELECT nn FROM records")
    assert (code, out) == (1, "")
    assert "`nn` cannot be resolved" in err
    assert "Traceback" not in err
    assert "org.apache" not in err
    assert spark.range(1).count() == 1, "a session that is not the command's own goes on"
