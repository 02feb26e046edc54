"""Kafka and the S3 server are killed and come back: a line says so, and the sink goes on by itself."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.dev import stack as dev_stack

pytestmark = [pytest.mark.stack, pytest.mark.spark]

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
SCHEMA = '{"type":"record","name":"myrecord","fields":[{"name":"f1","type":"string"}]}'


def penstock(*arguments, stdin=""):
    done = subprocess.run([PENSTOCK, *arguments], input=stdin, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def produce(where, schema, values):
    lines = "".join(json.dumps({"f1": value}) + "\n" for value in values)
    penstock("produce", "t", "--value-format", "avro", "--value-schema", schema, *where, stdin=lines)


def records(where):
    listed = json.loads(penstock("ls", "--output", "json", *where))["objects"]
    urls = [f"s3://confluent-kafka-connect-s3-testing/{each['key']}" for each in listed]
    return [json.loads(line)["f1"] for url in urls for line in penstock("cat", url, *where).splitlines()]


def cuts(log):
    return log.read_text().count("cut.committed ")


def wait_for(condition, log):
    deadline = time.monotonic() + 280
    while not condition():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.5)


@pytest.mark.parametrize("service", ["kafka", "s3"])
def test_an_outage_is_waited_for_and_nothing_is_lost_or_doubled(tmp_path, service):
    directory = tmp_path / "stack"
    where = ("--dir", str(directory))
    connector, log = tmp_path / "c.properties", tmp_path / "stderr"
    connector.write_text(
        "name=c\nconnector.class=S3SinkConnector\ntopics=t\nflush.size=2\nformat.class=avro\n"
        "s3.bucket.name=confluent-kafka-connect-s3-testing\ns3.part.retries=0\n"
    )
    try:
        penstock("start", *where)
        produce(where, SCHEMA, ["1", "2"])
        with log.open("w") as said:
            sink = subprocess.Popen([PENSTOCK, "run", str(connector), *where], stderr=said)
        try:
            wait_for(lambda: cuts(log) == 1, log)
            kill(directory, service)
            if service == "s3":  # only what there is to write shows that the store is away
                produce(where, SCHEMA, ["3", "4"])
            wait_for(lambda: "waiting seconds=" in log.read_text(), log)
            penstock("start", *where)
            if service == "kafka":
                produce(where, SCHEMA, ["3", "4"])
            # Reading the objects starts four processes: not before the line that tells of the second cut.
            wait_for(lambda: cuts(log) >= 2 and records(where) == ["1", "2", "3", "4"], log)
            assert sink.poll() is None, log.read_text()
        finally:
            sink.send_signal(signal.SIGTERM)
            assert sink.wait(120) == 0, log.read_text()
    finally:
        dev_stack.destroy(directory, lambda _: None)


def kill(directory, service):
    (pid,) = [each.pid for each in dev_stack.status(directory) if each.name == service]
    os.kill(pid, signal.SIGKILL)
