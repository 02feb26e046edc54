from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from confluent_kafka import Consumer, Producer, TopicPartition

from penstock.dev import settings, stack
from penstock.errors import PenstockError

NAMES = ["kafka", "s3", "schema-registry", "worker"]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A stack that these tests may stop and break; each leaves it running."""
    directory = tmp_path_factory.mktemp("own") / "stack"
    said = []
    info = stack.start(directory, bucket="first-bucket", echo=said.append)
    yield directory, info, said
    stack.destroy(directory, [].append)


def pids(directory):
    return {each.name: each.pid for each in stack.status(directory)}


def test_start_says_what_it_does_and_all_answer_when_it_returns(own):
    directory, info, said = own
    assert said == [line for name in NAMES for line in (f"Starting {name}", f"{name} is [UP]")]
    shown = stack.status(directory)
    assert [each.name for each in shown] == NAMES
    assert all(each.up and each.pid for each in shown)
    assert shown[0].address == info.bootstrap_servers
    assert stack.load_info(directory) == info


def test_the_json_names_are_those_that_scripts_rely_on(own):
    _, info, _ = own
    assert list(info.as_json()) == [
        "bootstrap.servers",
        "store.url",
        "s3.region",
        "s3.bucket.name",
        "aws.access.key.id",
        "aws.secret.access.key",
        "schema.registry.url",
    ]
    assert info.as_json()["s3.bucket.name"] == "first-bucket"
    assert all(
        value.startswith(("127.0.0.1:", "http://127.0.0.1:")) for name, value in info.as_json().items() if ":" in value
    )


def test_a_second_start_changes_nothing(own):
    directory, info, _ = own
    before, said = pids(directory), []
    assert stack.start(directory, echo=said.append) == info
    assert said == [f"{name} is already [UP]" for name in NAMES]
    assert pids(directory) == before


def test_the_secret_is_in_no_command_line_no_repr_and_only_in_files_of_the_owner(own):
    directory, info, _ = own
    secret = info.secret_access_key
    for pid in pids(directory).values():
        assert secret.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert secret not in repr(info)
    assert secret not in repr(settings.load(directory))
    holding = [path for path in directory.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert {path.name for path in holding} == {"stack.json", "s3proxy.properties"}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in holding)


def test_stop_keeps_data_and_addresses(own):
    directory, info, _ = own
    producer = Producer({"bootstrap.servers": info.bootstrap_servers})
    producer.produce("kept", b"a record")
    assert producer.flush(30) == 0
    schema = requests.post(f"{info.schema_registry_url}/subjects/kept/versions", json={"schema": '"int"'}, timeout=10)
    said = []
    stack.stop(directory, said.append)
    assert said == [line for name in reversed(NAMES) for line in (f"Stopping {name}", f"{name} is [DOWN]")]
    assert [(each.pid, each.up) for each in stack.status(directory)] == [(None, False)] * len(NAMES)
    assert stack.start(directory, bucket="second-bucket", echo=[].append).as_json() == {
        **info.as_json(),
        "s3.bucket.name": "second-bucket",
    }
    consumer = Consumer({"bootstrap.servers": info.bootstrap_servers, "group.id": "kept"})
    consumer.assign([TopicPartition("kept", 0, 0)])
    assert consumer.poll(30).value() == b"a record"
    consumer.close()
    again = requests.get(f"{info.schema_registry_url}/subjects/kept/versions/latest", timeout=10).json()
    assert again["id"] == schema.json()["id"]


def test_what_was_killed_is_started_again_and_the_rest_is_left_alone(own):
    directory, _, _ = own
    before = pids(directory)
    os.kill(before["s3"], signal.SIGKILL)
    while pids(directory)["s3"] is not None:
        assert pids(directory)["kafka"] == before["kafka"]
    said = []
    stack.start(directory, echo=said.append)
    assert said == [
        "kafka is already [UP]",
        "Starting s3",
        "s3 is [UP]",
        "schema-registry is already [UP]",
        "worker is already [UP]",
    ]
    after = pids(directory)
    assert (after["kafka"], after["schema-registry"]) == (before["kafka"], before["schema-registry"])
    assert after["s3"] != before["s3"]


def test_two_starts_at_once_start_everything_once(own):
    directory, _, _ = own
    stack.stop(directory, [].append)
    program = "import sys, pathlib; from penstock.dev import stack; stack.start(pathlib.Path(sys.argv[1]), echo=print)"
    both = [
        subprocess.Popen([sys.executable, "-c", program, directory], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(text.count("already [UP]") for text in said) == [0, len(NAMES)]
    assert all(each.up for each in stack.status(directory))


def test_another_s3_server_over_the_same_data_is_refused(own):
    directory, _, _ = own
    with pytest.raises(PenstockError, match=r"has s3proxy as its S3 server, not moto; `penstock destroy` it first"):
        stack.start(directory, s3="moto", echo=[].append)


def test_a_service_that_does_not_come_up_is_named_with_the_end_of_its_log_and_nothing_stays(tmp_path):
    directory = tmp_path / "stack"
    directory.mkdir()
    chosen = settings.new("s3proxy", "b1")
    settings.save(directory, chosen)
    meta = directory / "kafka" / "data" / "meta.properties"
    meta.parent.mkdir(parents=True)
    meta.write_text("version=1\ncluster.id=of-another-cluster\nnode.id=77\n")
    with pytest.raises(
        PenstockError, match=r"kafka ended while it was starting; the end of .*kafka.log:\n(.*\n)+"
    ) as failed:
        stack.start(directory, echo=[].append)
    assert re.search("node|cluster", str(failed.value))
    assert not any(each.pid for each in stack.status(directory))


def test_a_port_that_another_program_took_is_replaced(tmp_path):
    directory = tmp_path / "stack"
    directory.mkdir()
    chosen = settings.new("s3proxy", "b1")
    settings.save(directory, chosen)
    with subprocess.Popen(
        [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(chosen.ports["s3"])],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as thief:
        try:
            while settings.with_free_ports(chosen, ("s3",)) == chosen:
                assert thief.poll() is None
            fitted = settings.with_free_ports(chosen, ("kafka", "s3"))
        finally:
            thief.kill()
    assert fitted.ports["s3"] != chosen.ports["s3"]
    assert {**fitted.ports, "s3": 0} == {**chosen.ports, "s3": 0}


def test_a_folder_with_other_files_is_neither_used_nor_deleted(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(PenstockError, match="holds other files; choose an empty or new folder"):
        stack.start(tmp_path, echo=[].append)
    said = []
    stack.destroy(tmp_path, said.append)
    assert said == [f"No stack in {tmp_path}"]
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(PenstockError, match=r"cannot use `.*file/stack` for the stack: .*--dir"):
        stack.start(tmp_path / "file" / "stack", echo=[].append)


def test_broken_settings_are_named(tmp_path):
    (tmp_path / "stack.json").write_text("{")
    with pytest.raises(PenstockError, match=r"stack\.json: not the settings of a stack"):
        stack.status(tmp_path)


def test_nothing_is_no_stack(tmp_path):
    assert stack.status(tmp_path / "none") == ()
    assert stack.load_info(tmp_path / "none") is None
    said = []
    stack.stop(tmp_path / "none", said.append)
    assert said == [f"No stack in {tmp_path / 'none'}"]
    assert not (tmp_path / "none").exists()


def test_destroy_stops_and_deletes_all(own):
    directory, _, _ = own
    before, said = pids(directory), []
    stack.destroy(directory, said.append)
    assert said[-2:] == ["kafka is [DOWN]", f"Deleting: {directory}"]
    assert not directory.exists()
    for pid in before.values():
        status = Path(f"/proc/{pid}/stat")
        assert not status.exists() or ") Z " in status.read_text()
