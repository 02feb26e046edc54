"""`penstock try` shows what a transformation makes of records, and writes nothing."""

import json

import pytest
from click.testing import CliRunner

from penstock.cli.main import cli

pytestmark = [pytest.mark.spark, pytest.mark.stack]


def test_input_and_output_side_by_side(connector, tmp_path, s3):
    connector.produce([{"n": 0, "c": "a"}, {"n": 1, "c": "b"}, {"n": 2, "c": "c"}, None, b"no json"])
    file, worker = tmp_path / "sink.properties", tmp_path / "worker.properties"
    query = "SELECT 10 div n AS d, upper(c) AS c FROM records WHERE n < 2"
    given = connector.properties({"transform.sql": query})
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    worker.write_text(f"bootstrap.servers={connector.stack.bootstrap_servers}\n")
    arguments = ["try", str(file), "--worker", str(worker), "--limit", "10", "--output", "json"]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    rows = json.loads(done.stdout)["records"]
    assert [row["record"] for row in rows] == [f"{connector.topic}-0@{n}" for n in range(5)]
    assert [row["input"] for row in rows[:3]] == [{"n": n, "c": "abc"[n]} for n in range(3)]
    assert [row["output"] for row in rows] == [None, {"d": 10, "c": "B"}, None, None, None]
    notes = [row["note"] for row in rows]
    assert notes[1:4] == ["", "is left out", "has no value, so it is not asked about"]
    assert notes[0].startswith("fails: Division by zero.")
    assert notes[4].startswith("its value is not JSON")
    table = CliRunner().invoke(cli, arguments[:-2], catch_exceptions=False).stdout.splitlines()
    assert table[0].split() == ["RECORD", "INPUT", "OUTPUT", "NOTE"]
    assert table[2].split("  ") == [f"{connector.topic}-0@1", '{"n": 1, "c": "b"}', '{"d": 10, "c": "B"}', "-"]
    assert s3.list_objects_v2(Bucket=connector.bucket).get("Contents") is None


def test_without_a_transformation_there_is_nothing_to_try(connector, tmp_path):
    file = tmp_path / "sink.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in connector.properties({}).items()))
    worker = tmp_path / "worker.properties"
    worker.write_text(f"bootstrap.servers={connector.stack.bootstrap_servers}\n")
    done = CliRunner().invoke(cli, ["try", str(file), "--worker", str(worker)])
    assert "there is nothing to try" in str(done.exception)
