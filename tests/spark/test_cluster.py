"""A job on a real Spark cluster, whatever happens to its executors: the objects are those of an undisturbed run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cluster import Cluster, spark_cluster
from confluent_kafka import Producer
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from connecting import InProcess
from penstock.loading import load
from penstock.loop import keep_running
from penstock.running import Running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.stack, pytest.mark.spark]

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
PARTITIONS, RECORDS, FLUSH = 6, 60_000, 2_000


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> Iterator[dict[str, str]]:
    """The properties that `penstock package` prints; the archive is large, so it is not left behind."""
    target = tmp_path_factory.mktemp("package") / "penstock.tar.gz"
    done = subprocess.run([PENSTOCK, "package", "-o", target], capture_output=True, text=True, check=True)
    yield dict(line.split("=", 1) for line in done.stdout.splitlines())
    target.unlink()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with spark_cluster(tmp_path_factory.mktemp("cluster"), workers=2) as running:
        yield running
    for name in ("work-0", "work-1", "local"):  # what executors unpacked there is half a gigabyte each
        shutil.rmtree(running.folder / name, ignore_errors=True)


@pytest.fixture(scope="module")
def topic(stack, make_topic) -> str:
    name = make_topic(PARTITIONS)
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers, "linger.ms": 50})
    for n in range(RECORDS):
        producer.produce(name, b'{"n":%d}' % n, partition=n % PARTITIONS, timestamp=1_700_000_000_000)
        producer.poll(0)
    assert producer.flush(60) == 0
    return name


@pytest.fixture(scope="module")
def connector(stack, topic) -> Callable[[str], dict[str, str]]:
    def properties(bucket: str) -> dict[str, str]:
        return {
            "name": bucket,
            "connector.class": "io.confluent.connect.s3.S3SinkConnector",
            "topics": topic,
            "tasks.max": str(PARTITIONS),
            "flush.size": str(FLUSH),
            "s3.bucket.name": bucket,
            "storage.class": "io.confluent.connect.s3.storage.S3Storage",
            "format.class": "json",
            "value.converter": "json",
            "value.converter.schemas.enable": "false",
            **{n: v for n, v in stack.as_json().items() if n in ("s3.region", "store.url") or n.startswith("aws.")},
        }

    return properties


def written(s3, bucket: str) -> dict[str, bytes]:
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="topics/")
    found = {}
    for key in [each["Key"] for page in pages for each in page.get("Contents", [])]:
        with suppress(s3.exceptions.NoSuchKey):  # s3proxy lists files that it is still writing
            found[key] = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    return found


@pytest.fixture(scope="module")
def undisturbed(stack, s3, connector) -> dict[str, bytes]:
    """The objects as one process writes them."""
    bucket = f"undisturbed-{os.getpid()}"
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": stack.region})
    config, kafka = load(connector(bucket), {"bootstrap.servers": stack.bootstrap_servers}, None)
    with Running.open(config, kafka, InProcess(kafka)) as running:
        keep_running(running, threading.Event(), until_done=True)
    return written(s3, bucket)


GATE = """
import os, pathlib, time
from penstock.partitioners.default import DefaultPartitioner

class Gate:
    def __init__(self, options):
        self.inner = DefaultPartitioner()

    def encode(self, batch):
        folder = os.environ.get("GATE")
        if folder and batch.records.tp.partition >= int(os.environ["GATE_FROM"]):
            pathlib.Path(folder, f"waits-{os.getpid()}").touch()
            while not pathlib.Path(folder, "open").exists():
                time.sleep(0.05)
            pathlib.Path(folder, f"went-{os.getpid()}").touch()
        return self.inner.encode(batch)
"""


def kill_executor(cluster: Cluster, task: int) -> None:
    """The machine of one task is gone; Spark starts another executor and does its tasks again."""
    os.kill(cluster.executor_of(task), signal.SIGKILL)


def kill_task(_: Cluster, task: int) -> None:
    """The process of one task is gone; its executor says so, and the task is tried again."""
    os.kill(task, signal.SIGKILL)


def pause_executor(cluster: Cluster, task: int) -> None:
    """A task hangs until Spark lets another executor do the same; then it goes on all the same, as a zombie."""
    os.kill(task, signal.SIGSTOP)
    os.kill(cluster.executor_of(task), signal.SIGSTOP)


def nothing(cluster: Cluster, task: int) -> None:
    """For what needs no undoing."""


def resume_executor(cluster: Cluster, task: int) -> None:
    """The task first, so that it writes its objects before Spark can tell it that nobody waits for them."""
    os.kill(task, signal.SIGCONT)
    eventually((cluster.folder / "gate" / f"went-{task}").exists)
    os.kill(cluster.executor_of(task), signal.SIGCONT)


EVENTS = {
    "an executor killed": (kill_executor, nothing),
    "a task killed": (kill_task, nothing),
    "an executor paused, with speculation": (pause_executor, resume_executor),
}
if os.environ.get("PENSTOCK_FULL") != "1":
    EVENTS = {"an executor killed": EVENTS["an executor killed"]}


@pytest.mark.parametrize("query", ["", "SELECT * FROM records"], ids=["copied", "transformed"])
@pytest.mark.parametrize(("disturb", "undo"), EVENTS.values(), ids=EVENTS)
def test_the_objects_are_those_of_an_undisturbed_run(
    disturb, undo, query, cluster, packed, undisturbed, connector, stack, s3, bucket, tmp_path
):
    gate = cluster.folder / "gate"
    shutil.rmtree(gate, ignore_errors=True)
    gate.mkdir()
    (gate / "gate.py").write_text(GATE)
    spark = {
        **packed,
        "spark.executorEnv.PYTHONPATH": f"{packed['spark.executorEnv.PYTHONPATH']}:{gate}",
        "spark.executorEnv.GATE": str(gate),
        "spark.executorEnv.GATE_FROM": str(PARTITIONS - 2),
        "spark.pyspark.python": str(bare_python(tmp_path)),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.speculation": "true",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.1",
    }
    worker = tmp_path / "worker.properties"
    worker.write_text(lines({"bootstrap.servers": stack.bootstrap_servers, **spark}))
    file = tmp_path / "connector.properties"
    transformation = {"transform.sql": query} if query else {}
    file.write_text(lines({**connector(bucket), "partitioner.class": "gate:Gate", **transformation}))
    command = [PENSTOCK, "run", "--master", cluster.url, worker, file, "--until-done"]
    environment = {**os.environ, "PYTHONPATH": str(gate)}
    with (tmp_path / "said").open("wb") as said, subprocess.Popen(command, stderr=said, env=environment) as running:
        try:
            eventually(lambda: len(list(gate.glob("waits-*"))) == 2 or running.poll() is not None)
            assert running.poll() is None, (tmp_path / "said").read_text()
            before = written(s3, bucket)
            task = int(next(gate.glob("waits-*")).name.partition("-")[2])
            disturb(cluster, task)
            (gate / "open").touch()
            eventually(lambda: len(written(s3, bucket)) == len(undisturbed) or running.poll() is not None)
            undo(cluster, task)
            assert running.wait(300) == 0, (tmp_path / "said").read_text()
        finally:
            running.kill()
    assert 0 < len(before) < len(undisturbed)
    assert written(s3, bucket) == undisturbed
    assert f"{RECORDS} records in {len(undisturbed)} objects" in (tmp_path / "said").read_text()


def bare_python(folder: Path) -> Path:
    """The Python below this environment, without any package: all must come from the archive."""
    script = folder / "bare-python"
    script.write_text(f'#!/bin/sh\nexec "{Path(sys._base_executable).resolve()}" -S "$@"\n')
    script.chmod(0o755)
    return script


def lines(properties: dict[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def eventually(happened: Callable[[], bool]) -> None:
    Retrying(stop=stop_after_delay(400), wait=wait_fixed(0.1), retry=retry_if_result(lambda done: not done))(happened)
