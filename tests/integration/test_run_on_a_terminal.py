"""`penstock run` with a terminal for stderr: a line that refreshes itself, and what else is said above it."""

import os
import pty
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from confluent_kafka import Producer

pytestmark = [pytest.mark.stack, pytest.mark.spark]

PENSTOCK = str(Path(sys.executable).with_name("penstock"))


@pytest.fixture
def files(stack, bucket, tmp_path, topic):
    """A worker's and a connector's file, the latter with a name given twice; five records to write."""
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers})
    for number in range(5):
        producer.produce(topic, f"value {number}")
    assert producer.flush(30) == 0
    info = stack.as_json()
    properties = {
        "name": "lines",
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": topic,
        "s3.bucket.name": bucket,
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "format.class": "json",
        "value.converter": "string",
        **{key: info[key] for key in ("s3.region", "store.url", "aws.access.key.id", "aws.secret.access.key")},
    }
    lines = ["flush.size=7", *(f"{key}={value}" for key, value in properties.items()), "flush.size=2"]
    (tmp_path / "sink.properties").write_text("\n".join(lines))
    (tmp_path / "worker.properties").write_text(f"bootstrap.servers={stack.bootstrap_servers}\n")
    return str(tmp_path / "worker.properties"), str(tmp_path / "sink.properties")


def on_a_terminal(*command):
    """The exit code, stdout, and what a terminal of 150 columns got on stderr."""
    ours, theirs = pty.openpty()
    said: list[bytes] = []

    def read():
        try:
            while data := os.read(ours, 65536):
                said.append(data)
        except OSError:  # so ends a terminal whose other side is closed
            pass

    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "150"}
    process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    reader = threading.Thread(target=read)
    reader.start()
    stdout, _ = process.communicate(timeout=300)
    reader.join()
    os.close(ours)
    return process.returncode, stdout, b"".join(said).decode().replace("\r\n", "\n")


def test_the_line_is_refreshed_and_cleared_and_nothing_is_on_stdout(files):
    code, stdout, said = on_a_terminal(PENSTOCK, "run", *files, "--until-done")
    assert code == 0, said
    assert stdout == b""
    assert "warning: " in said
    assert "flush.size is given again" in said
    assert re.search(r"0 records in 0 objects, 0/s, lag \d, writing \d offsets of 1 topic-partitions", said), said
    assert "INFO cut.committed topic=" in said
    assert said.index("warning: ") < said.index(" records in ") < said.index("4 records in 2 objects (")
    assert "1 record left open" in said
    last_line = said[said.rindex("/s, lag ") :]
    assert "\x1b[2K" in last_line  # cleared
    assert said.rindex("\x1b[?25h") > said.rindex("\x1b[?25l")  # the cursor is back


def test_without_a_terminal_there_are_log_lines(files):
    done = subprocess.run(
        [PENSTOCK, "run", *files, "--until-done"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "\x1b" not in done.stderr
    assert "INFO cut.committed topic=" in done.stderr
    warned = [each for each in done.stderr.splitlines() if each.startswith("warning: ")]
    assert len(warned) == 1
    assert warned[0].endswith("sink.properties:1 is not used")


def test_validate_tells_what_is_odd(files):
    done = subprocess.run([PENSTOCK, "validate", *files], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "ok\n")
    (warning,) = done.stderr.splitlines()
    assert warning.startswith("warning: ")
    assert "flush.size is given again" in warning
