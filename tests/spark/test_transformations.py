"""A query between Kafka and the files: what is written, what is counted, what stops, what is refused."""

from __future__ import annotations

import base64
import hashlib
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sql

from penstock.errors import ConfigError
from penstock.loading import load
from penstock.transform.runner import Transformer

pytestmark = [pytest.mark.spark, pytest.mark.stack]

ORDERS = [{"n": n, "email": f"e{n}@example.com", "country": ["FR", "DE"][n % 2]} for n in range(20)]
HASH = "SELECT * EXCEPT (email), sha2(email, 256) AS email_hash FROM records WHERE country = 'FR'"


def hashed(order):
    return {
        "n": order["n"],
        "country": order["country"],
        "email_hash": hashlib.sha256(order["email"].encode()).hexdigest(),
    }


def test_a_filter_and_a_hash(connector):
    connector.produce(ORDERS)
    connector.produce(ORDERS[:4], partition=1)
    assert connector.run({"transform.sql": HASH}) == []
    wanted = [hashed(order) for order in ORDERS[::2]]
    assert connector.objects() == {
        "partition=0/0+0000000000": wanted[:3],
        "partition=0/0+0000000006": wanted[3:6],
        "partition=0/0+0000000012": wanted[6:9],
    }
    assert [(c.position, c.skipped) for c in connector.commits() if c.objects] == [(18, 9)]


def test_where_everything_is_dropped_the_position_goes_on(connector):
    connector.produce(ORDERS)
    connector.produce(ORDERS, partition=1)
    assert connector.run({"transform.sql": "SELECT n FROM records WHERE n > 100"}) == []
    assert connector.objects() == {}
    for partition in range(2):
        commits = [commit for commit in connector.commits() if commit.tp.partition == partition]
        assert commits[-1].position == sum(commit.skipped for commit in commits) == 20
        assert sum(commit.hidden for commit in commits) == 0


def test_columns_beside_the_value_and_partitions_of_the_result(connector):
    connector.produce(ORDERS[:4])
    query = (
        "SELECT n * 2 AS m, _key, _offset AS at, CAST(_key AS STRING) AS k, _topic AS t, lower(country) AS c, "
        "unix_millis(_timestamp) AS ts, _now > _timestamp AS later, _headers FROM records"
    )
    rules = {"partitioner.class": "field", "partition.field.name": "c", "flush.size": "2"}
    assert connector.run({"transform.sql": query, **rules}) == []
    assert {name: [row["m"] for row in rows] for name, rows in connector.objects().items()} == {
        "c=fr/0+0000000000": [0],
        "c=de/0+0000000001": [2],
        "c=fr/0+0000000002": [4],
        "c=de/0+0000000003": [6],
    }
    assert connector.objects()["c=de/0+0000000003"] == [
        {"m": 6, "at": 3, "k": "k3", "t": connector.topic, "c": "de", "ts": 1_700_000_003_000, "later": True}
    ]


NESTED = [{"a": {"b": [1, 2, None], "c": "x"}, "d": 1.5, "e": True, "f": n} for n in range(6)]


@pytest.mark.parametrize("file_format", ["json", "avro"])
def test_nested_values_come_back_as_they_were(file_format, connector):
    connector.produce(NESTED)
    assert connector.run({"transform.sql": "SELECT * FROM records", "format.class": file_format}) == []
    assert connector.objects() == {"partition=0/0+0000000000": NESTED[:3], "partition=0/0+0000000003": NESTED[3:]}


BAD = "SELECT n, 10 div (n - 2) AS d FROM records"


def test_a_record_that_the_query_fails_on_stops_its_partition_there_and_no_other(connector):
    connector.produce(ORDERS[:6])
    connector.produce(ORDERS[4:8], partition=1)
    (fault,) = connector.run({"transform.sql": BAD, "flush.size": "2"})
    assert fault.startswith(f"{connector.topic}-0@2: the transformation fails on it: Division by zero.")
    assert "\n" not in fault
    assert fault.endswith("; mend transform.sql")
    assert connector.objects() == {
        "partition=0/0+0000000000": [{"n": 0, "d": -5}, {"n": 1, "d": -10}],
        "partition=1/1+0000000000": [{"n": 4, "d": 5}, {"n": 5, "d": 3}],
        "partition=1/1+0000000002": [{"n": 6, "d": 2}, {"n": 7, "d": 2}],
    }


def test_bad_records_are_left_out_where_that_is_wanted_and_kept_as_kafka_has_them(connector):
    connector.produce([*ORDERS[:4], b"no json", None, *ORDERS[4:6]])
    rules = {"errors.tolerance": "all", "errors.dir": "bad", "behavior.on.null.values": "ignore", "flush.size": "5"}
    assert connector.run({"transform.sql": BAD, **rules}) == []
    found = connector.objects()
    assert found["partition=0/0+0000000000"] == [
        {"n": n, "d": 10 // (n - 2) if n > 2 else -10 // (2 - n)} for n in (0, 1, 3, 4, 5)
    ]
    (bad,) = [rows for name, rows in found.items() if name.startswith("bad")]
    lines = [json.loads(line) for line in bad if line]
    assert [(line["offset"], line["stage"], base64.b64decode(line["value"])) for line in lines] == [
        (2, "TRANSFORMATION", json.dumps(ORDERS[2]).encode()),
        (4, "VALUE_CONVERTER", b"no json"),
    ]
    assert [(c.position, c.skipped) for c in connector.commits() if c.objects] == [(8, 3)]


def test_a_field_that_comes_later_is_in_the_files_from_its_record_on(connector):
    connector.produce([{"n": 1}, {"n": 2}])
    query = {"transform.sql": "SELECT * FROM records", "flush.size": "2"}
    assert connector.run(query) == []
    with connector.opened(query) as running:
        connector.produce([{"n": 3}, {"n": 4}, {"n": 5}, {"n": 6.5, "more": {"x": "y"}}])
        while running.cycle(running.ends(), thorough=True) is not None:
            pass
    assert list(connector.objects().values()) == [
        [{"n": 1}, {"n": 2}],
        [{"n": 3}, {"n": 4}],
        [{"n": 5.0, "more": None}, {"n": 6.5, "more": {"x": "y"}}],
    ]


def test_a_table_is_joined_and_each_plan_has_the_files_it_recorded(connector, tmp_path):
    table = tmp_path / "countries.csv"
    table.write_text("country,name\nFR,France\n")
    join = "SELECT n, name FROM records LEFT JOIN countries USING (country)"
    query = {"transform.sql": join, "transform.tables.countries": str(table), "flush.size": "2"}
    connector.produce(ORDERS[:2])
    with connector.opened(query) as running:
        assert running.cycle(running.ends()) is not None
        table.write_text("country,name\nFR,Frankreich\nDE,Deutschland\n")
        connector.produce(ORDERS[:2])
        while running.cycle(running.ends(), thorough=True) is not None:
            pass
    assert list(connector.objects().values()) == [
        [{"n": 0, "name": "France"}, {"n": 1, "name": None}],
        [{"n": 0, "name": "Frankreich"}, {"n": 1, "name": "Deutschland"}],
    ]


def test_a_record_of_which_a_join_makes_two_rows_is_named(connector, tmp_path):
    (tmp_path / "countries.csv").write_text("country,name\nFR,France\nDE,Deutschland\nDE,Germany\n")
    connector.produce(ORDERS[:4])
    join = "SELECT n, name FROM records JOIN countries USING (country)"
    tables = {"transform.tables.countries": str(tmp_path / "countries.csv")}
    (fault,) = connector.run({"transform.sql": join, **tables, "flush.size": "1"})
    assert fault.startswith(f"{connector.topic}-0@1: the transformation makes several rows of it")
    assert list(connector.objects().values()) == [[{"n": 0, "name": "France"}]]


def adults(records):
    """What `transform.python` names."""
    return records.where("n % 3 = 0").withColumn("country", sql.lower("country")).drop("email")


def test_a_function_of_the_users(connector):
    connector.produce(ORDERS[:9])
    assert connector.run({"transform.python": f"{__name__}:adults"}) == []
    assert list(connector.objects().values()) == [
        [{"n": 0, "country": "fr"}, {"n": 3, "country": "de"}, {"n": 6, "country": "fr"}]
    ]


SCHEMA = (
    '{"type":"struct","fields":[{"name":"n","type":"long","nullable":true,"metadata":{}},'
    '{"name":"country","type":"string","nullable":true,"metadata":{}}]}'
)
REFUSED = {
    "SELECT country, count(*) AS c FROM records GROUP BY country": "it aggregates",
    "SELECT DISTINCT country FROM records": "it has a DISTINCT",
    "SELECT * FROM records ORDER BY n": "it sorts",
    "SELECT * FROM records LIMIT 3": "it has a LIMIT",
    "SELECT /*+ REPARTITION(3) */ n FROM records": "it shuffles",
    "SELECT sum(n) OVER (PARTITION BY country) AS s FROM records": "it has a window function",
    "SELECT explode(array(n, n)) AS n FROM records": "it makes rows of an array",
    "SELECT n FROM records UNION ALL SELECT n FROM records": "reads `records` more than once",
    "SELECT a.n FROM records a JOIN records b ON a.n = b.n": "reads `records` more than once",
    "SELECT n, (SELECT max(n) FROM records) AS m FROM records": "reads `records` more than once",
    "SELECT name FROM countries": "it does not read `records`",
    "SELECT c.name FROM countries c LEFT JOIN records r ON c.country = r.country": "LeftOuter join",
    "SELECT n, rand() AS r FROM records": "it is not deterministic (`rand`)",
    "SELECT n, uuid() AS r FROM records": "it is not deterministic (`uuid`)",
    "SELECT n FROM records WHERE n < monotonically_increasing_id()": "(`monotonically_increasing_id`)",
    "SELECT n, current_timestamp() AS t FROM records": "asks a clock (`current_timestamp`)",
    "SELECT n, unix_timestamp() AS t FROM records": "use the column `_now`",
    "SELECT n FROM records WHERE country IN (SELECT country FROM countries ORDER BY rand())": "(`rand`)",
    "SELECT m FROM records": "name `m` cannot be resolved",
    "SELECT n FROM nowhere": "`nowhere` cannot be found",
    "SELEC n": "Syntax error at or near 'SELEC'",
    "DROP TABLE records": "Syntax error at or near 'DROP'",
    "SELECT NULL AS v FROM records": "a column `v` of the type `void`",
    "SELECT n, n FROM records": "two columns `n`",
    "SELECT _offset FROM records": "its result has no columns",
    "SELECT map(n, n) AS m FROM records": "a column `m` of the type `map<bigint,bigint>`",
}


@pytest.fixture(scope="module")
def checked(spark, stack, tmp_path_factory):
    table = tmp_path_factory.mktemp("tables") / "countries.parquet"
    pq.write_table(pa.table({"country": ["FR"], "name": ["France"]}), table)

    def check(query, file_format="json", name="transform.sql"):
        file = table.with_name("sink.properties")
        given = {"name": "n", "connector.class": "s3", "topics": "t", "s3.bucket.name": "bucket", "flush.size": "3"}
        given |= {"storage.class": "s3", "format.class": file_format, "value.converter": "json"}
        given |= {"transform.schema": SCHEMA, "transform.tables.countries": str(table), name: query}
        file.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
        config, kafka = load(file, {"bootstrap.servers": stack.bootstrap_servers}, None)
        return Transformer(lambda: spark, kafka).check(config)

    return check


@pytest.mark.parametrize(("query", "why"), REFUSED.items())
def test_what_would_lose_order_or_exactly_once_is_refused_in_one_sentence(query, why, checked):
    with pytest.raises(ConfigError) as refused:
        checked(query)
    (problem,) = refused.value.problems
    assert problem.partition("sink.properties:")[2].startswith("11: transform.sql: ")
    assert why in problem
    assert "\n" not in problem


def test_names_that_avro_does_not_have_are_refused_for_avro_alone(checked):
    query = "SELECT n AS `a b` FROM records"
    assert checked(query).result.names == ["a b"]
    with pytest.raises(ConfigError, match="names in Avro are letters, digits and `_`"):
        checked(query, "avro")


def test_a_query_needs_only_what_it_looks_at(checked):
    assert checked("SELECT n + 1 AS m FROM records WHERE _partition = 0").needed >= {"n", "_partition"}
    assert not checked("SELECT n + 1 AS m FROM records").needed & {"country", "_key", "_headers"}
    with_query = "WITH r AS (SELECT * FROM records) SELECT n FROM r WHERE country IN (SELECT country FROM countries)"
    assert checked(with_query).result.names == ["n"]


def broken(_):
    """Raises."""
    msg = "no idea"
    raise KeyError(msg)


def nothing(_):
    """Gives no DataFrame."""


FUNCTIONS = {
    "no_such_module:f": "cannot be imported: No module named 'no_such_module'",
    f"{__name__}:no_such_function": "cannot be imported: ",
    f"{__name__}:broken": "the function failed: KeyError: 'no idea'",
    f"{__name__}:nothing": "the function must give a DataFrame, it gave `NoneType`",
}


@pytest.mark.parametrize(("name", "why"), FUNCTIONS.items())
def test_a_function_that_cannot_be_used_is_named(name, why, checked):
    with pytest.raises(ConfigError) as refused:
        checked(name, name="transform.python")
    (problem,) = refused.value.problems
    assert why in problem
