"""The commands around the sink: the console tools, and connectors in the background."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.dev import stack as dev_stack

pytestmark = [pytest.mark.stack, pytest.mark.spark]

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
SCHEMA = '{"type":"record","name":"myrecord","fields":[{"name":"f1","type":["null","string"]}]}'


@pytest.fixture
def worker(stack, tmp_path):
    file = tmp_path / "worker.properties"
    registry = f"value.converter.schema.registry.url={stack.schema_registry_url}\nvalue.converter=avro\n"
    file.write_text(f"bootstrap.servers={stack.bootstrap_servers}\n{registry}")
    return ("--worker", str(file))


def penstock(*arguments, stdin="", code=0):
    done = subprocess.run([PENSTOCK, *arguments], input=stdin, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == code, done.stderr
    return done


def test_strings_keys_headers_partition_and_time_go_there_and_back(worker, make_topic):
    topic = make_topic(2)
    options = ("--key-separator", "=", "--header", "h=1", "--partition", "1", "--timestamp", "1234")
    said = penstock("produce", topic, *options, *worker, stdin="a=1\nb=2\n").stderr
    assert said == f"2 records written to {topic}\n"
    shown = ("--print-key", "--print-headers", "--print-offset", "--print-timestamp")
    assert penstock("consume", topic, *shown, *worker).stdout == "1234\t1:0\th=1\ta\t1\n1234\t1:1\th=1\tb\t2\n"
    assert penstock("consume", topic, "--offset", "1", "--partition", "1", *worker).stdout == "2\n"


def test_avro_goes_through_the_registry_plain_and_in_avro_s_json(worker, make_topic):
    topic = make_topic()
    lines = '{"f1": "a"}\n{"f1": {"string": "b"}}\n{"f1": null}\n'
    penstock("produce", topic, "--value-format", "avro", "--value-schema", SCHEMA, *worker, stdin=lines)
    shown = penstock("consume", topic, "--value-format", "avro", *worker).stdout
    assert [json.loads(line) for line in shown.splitlines()] == [{"f1": "a"}, {"f1": "b"}, {"f1": None}]


@pytest.mark.parametrize(
    ("options", "line", "words"),
    [
        (("--value-format", "json"), '{"a":', "line 1: is not valid JSON"),
        (("--value-format", "avro", "--value-schema", SCHEMA), '{"f1": 1}', "line 1: "),
        (("--value-format", "bytes", "--hex"), "zz", "line 1: is not hexadecimal"),
        (("--partition", "7"), "x", "got --partition `7`"),
    ],
)
def test_a_wrong_line_is_named(worker, make_topic, options, line, words):
    assert words in penstock("produce", make_topic(), *options, *worker, stdin=line, code=1).stderr


def test_connectors_run_in_the_background_and_over_a_restart_of_the_stack(tmp_path):
    directory = tmp_path / "stack"
    where = ("--dir", str(directory))
    try:
        info = json.loads(penstock("start", "--output", "json", *where).stdout)
        assert list(info) == [
            "bootstrap.servers",
            "store.url",
            "s3.region",
            "s3.bucket.name",
            "aws.access.key.id",
            "aws.secret.access.key",
            "schema.registry.url",
        ]
        file = tmp_path / "text.properties"
        file.write_text(
            "connector.class=S3SinkConnector\ntopics=lines\nflush.size=2\nformat.class=bytes\nvalue.converter=bytes\n"
            f"s3.bucket.name={info['s3.bucket.name']}\n"
        )
        penstock("produce", "lines", *where, stdin="1\n2\n3\n")
        loaded = json.loads(penstock("load", "text", "-d", str(file), *where).stdout)
        assert loaded["name"] == "text"
        assert loaded["config"]["flush.size"] == "2"
        wait_for(lambda: row(where)["position"] == 2)
        assert row(where)["last_object"] == "topics/lines/partition=0/lines+0+0000000000.bin"
        assert row(where)["lag"] == 1
        assert "cut.committed topic=lines" in penstock("log", "text", *where).stdout
        penstock("stop", *where)
        penstock("start", *where)
        penstock("produce", "lines", *where, stdin="4\n")
        wait_for(lambda: row(where)["position"] == 4)
        assert "RUNNING" in penstock("status", *where).stdout
        penstock("unload", "text", *where)
        assert "no connector `text`" in penstock("status", "text", *where, code=1).stderr
        said = penstock("load", "bad", "-d", str(_bad(tmp_path)), *where, code=1).stderr
        assert "flush.size must be an integer, got `x`" in said
    finally:
        dev_stack.destroy(directory, lambda _: None)


def _bad(folder):
    file = folder / "bad.properties"
    file.write_text("connector.class=S3SinkConnector\ntopics=t\nflush.size=x\nformat.class=bytes\ns3.bucket.name=b\n")
    return file


def row(where):
    done = subprocess.run(
        [PENSTOCK, "status", "text", "--output", "json", *where],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    rows = json.loads(done.stdout)["partitions"] if done.returncode == 0 else []
    return rows[0] if rows else {"position": -1}


def wait_for(condition):
    deadline = time.monotonic() + 280
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.5)


QUERY = "SELECT a FROM records"


def test_validate_names_every_mistake_without_the_network(tmp_path):
    good = tmp_path / "good.properties"
    good.write_text("name=x\ntopics=t\nflush.size=1\nformat.class=bytes\nvalue.converter=bytes\ns3.bucket.name=b\n")
    assert penstock("validate", str(good), "--dir", str(tmp_path / "none")).stdout == "ok\n"
    said = penstock("validate", str(_bad(tmp_path)), "--dir", str(tmp_path / "none"), code=1).stderr
    assert "name must be set" in said
    assert "flush.size must be an integer, got `x`" in said
    good.write_text(good.read_text().replace("bytes", "json") + f"transform.sql={QUERY}\n")
    told = f"transform.sql itself is checked at the start, and by `penstock try {good}`\n"
    assert penstock("validate", str(good), "--dir", str(tmp_path / "none")).stderr == told


def test_cat_of_a_damaged_or_missing_object_is_one_sentence(s3, bucket, stack, tmp_path):
    file = tmp_path / "c.properties"
    names = ("s3.region", "store.url", "aws.access.key.id", "aws.secret.access.key")
    file.write_text("".join(f"{name}={stack.as_json()[name]}\n" for name in names))
    s3.put_object(Bucket=bucket, Key="x.avro", Body=b"Obj\x01 no")
    for key, words in (("x.avro", "`x.avro` is damaged"), ("none.avro", "there is no object `none.avro`")):
        done = penstock("cat", f"s3://{bucket}/{key}", "--connector", str(file), code=1)
        assert words in done.stderr
        assert "Traceback" not in done.stderr
