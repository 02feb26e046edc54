"""`penstock state` on a real connector: what it says, and that a reset keeps every record in one object that counts."""

from __future__ import annotations

import json

import pytest

from connecting import Rec
from penstock.cli.main import main
from penstock.errors import TakenOverError

pytestmark = [pytest.mark.stack, pytest.mark.usefixtures("written")]

HOUR = 3_600_000
NOON = 1_717_243_200_000  # 2024-06-01T12:00:00Z


@pytest.fixture
def console(describe, stack, topic, tmp_path, capsys):
    """Run a command on the connector of the topic: its exit code, data and words."""
    worker = tmp_path / "worker.properties"
    worker.write_text(f"bootstrap.servers={stack.bootstrap_servers}\n")

    def run(verb, *arguments, properties=None):
        file = tmp_path / "sink.properties"
        given = describe(topic, {"flush.size": "3", **(properties or {})})
        file.write_text("".join(f"{name}={text}\n" for name, text in given.items()))
        with pytest.raises(SystemExit) as ended:
            main([*verb.split(), str(file), "--worker", str(worker), *arguments])
        captured = capsys.readouterr()
        return ended.value.code, captured.out, captured.err

    return run


@pytest.fixture
def ask(console):
    """The same with JSON back, of a command that succeeds."""

    def run(*arguments, **options):
        code, out, err = console(*arguments, "--output", "json", **options)
        assert code == 0, err
        return json.loads(out)

    return run


@pytest.fixture
def written(connect, topic):
    """Seven records in two objects, an hour apart; the seventh is still open."""
    connect([Rec({"n": n}, NOON + n * HOUR) for n in range(7)], {"flush.size": "3"}, topic)


def test_positions_history_and_the_object_of_a_record_are_shown(console, ask, topic):
    key = f"topics/{topic}/partition=0/{topic}+0+0000000003.json"
    (shown,) = ask("state show")["positions"]
    assert shown == {"topic": topic, "partition": 0, "position": 6, "last_object": key}
    assert key in console("state")[1]
    deeds = [each["what"] for each in ask("state history")["entries"]]
    assert deeds[0] == "began"
    assert f"planned {topic}-0 [0, 6)" in deeds[2]
    assert deeds[3].startswith("committed 2 objects with 6 records")
    assert len(ask("state history", "-n", "1")["entries"]) == 1
    assert [each["object"] for each in ask("state object", f"{topic}-0@4")["objects"]] == [key]
    assert "in no object yet: the position is 6" in ask("state object", f"{topic}-0@6")["note"]
    assert f"knows no {topic}-7" in ask("state object", f"{topic}-7@6")["note"]


NOT_MEANT = [
    ([], "one of --earliest, --time and --offset"),
    (["--earliest", "--time", "2024-06-01T12:00Z"], "one of --earliest"),
    (["--time", "2024-06-01"], "must be an ISO time with its zone"),
    (["--offset", "elsewhere-0=1", "--yes"], "does not know `elsewhere-0`"),
    (["--topic", "elsewhere", "--earliest", "--yes"], "does not know `elsewhere`"),
    (["--offset", "TOPIC-0=99", "--yes"], "Kafka has the offsets 0 to 7; got `99`"),
    (["--offset", "TOPIC-0"], "say TOPIC-PARTITION=OFFSET"),
    (["--earliest"], "2 objects will not count any more, and 0 offsets will never be written; say --yes"),
]


def test_a_reset_that_cannot_be_meant_changes_nothing(console, ask, topic):
    for arguments, words in NOT_MEANT:
        code, _, err = console("state reset", *(each.replace("TOPIC", topic) for each in arguments))
        assert (code, words in err) == (2, True), (arguments, err)
    assert ask("state show")["positions"][0]["position"] == 6


@pytest.mark.parametrize(
    ("to", "position"),
    [
        (["--earliest"], 0),
        (["--time", "2024-06-01T16:30:00Z"], 3),  # offset 5, in the middle of an object
        (["--time", "2030-01-01T00:00:00+02:00"], 7),
        (["--offset", "TOPIC-0=3"], 3),
    ],
)
def test_a_reset_moves_to_the_edge_of_an_object_and_the_records_behind_it_are_written_anew(
    connect, console, ask, topic, to, position
):
    reset = ask("state reset", *(each.replace("TOPIC", topic) for each in to), "--yes")
    (change,) = reset["changes"]
    assert (change["position"], change["new_position"]) == (6, position)
    assert change["objects_taken_back"] == (6 - position) // 3 if position < 6 else change["offsets_passed_over"] == 1
    connect([Rec({"n": n}) for n in (7, 8)], {"flush.size": "3"}, topic)
    code, out, err = console("verify", "--against-kafka")
    assert (code, f"set the position to {position}" in out) == (0, True), out + err


def test_objects_that_a_reset_took_back_and_nobody_replaced_are_named(connect, console, topic):
    assert console("state reset", "--earliest", "--yes")[0] == 0
    connect([], {"flush.size": "7"}, topic)
    code, out, _ = console("verify", properties={"flush.size": "7"})
    assert code == 1
    assert out.count("object.orphaned") == 1
    assert f"{topic}+0+0000000003.json" in out
    assert "taken back by the reset" in out


def test_a_running_instance_is_told_that_the_log_was_taken_over(opened, describe, console, topic):
    with opened(describe(topic, {"flush.size": "3"})) as running:
        assert console("state reset", "--earliest", "--yes")[0] == 0
        with pytest.raises(TakenOverError):
            running.cycle(running.ends(), thorough=True, forced=True)
