"""How much memory a whole run takes, Spark's JVM included, while ten million records or one huge object go through."""

import re
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest
from benchmarks.cases import CASES, converter
from benchmarks.measuring import Watch, members
from benchmarks.shapes import Shape
from benchmarks.topics import Topic

pytestmark = [pytest.mark.stack, pytest.mark.spark]

TASKS = 2
# The JVM, the driver, and two workers whose queues of uploads are full because the store is slower than they are.
BOUND = 900_000_000
WORKER_BOUND = 400_000_000


@pytest.fixture
def run(stack, s3, bucket, tmp_path):
    """Starts `penstock run` on a topic of so many records; what it writes is deleted, for it is gigabytes."""
    topics = []

    def start(shape, records, **properties):
        topic = Topic.make(stack, f"large-{uuid.uuid4().hex[:8]}", shape)
        topics.append(topic)
        topic.fill(records)
        properties = {
            "name": topic.name,
            "topics": topic.name,
            "tasks.max": TASKS,
            "store.url": stack.store_url,
            "s3.region": stack.region,
            "s3.bucket.name": bucket,
            "aws.access.key.id": stack.access_key_id,
            "aws.secret.access.key": stack.secret_access_key,
            **properties,
        }
        worker, connector = tmp_path / "worker.properties", tmp_path / "connector.properties"
        worker.write_text(f"bootstrap.servers={stack.bootstrap_servers}\n")
        connector.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        command = [Path(sys.executable).with_name("penstock"), "run", worker, connector, "--until-done"]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)

    yield start
    for topic in topics:
        topic.delete()
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        names = [{"Key": each["Key"]} for each in page.get("Contents", ())]
        s3.delete_objects(Bucket=bucket, Delete={"Objects": names})


def test_ten_million_records_go_through_a_bounded_memory(run, stack):
    case, records = CASES["avro-avro"], 10_000_000
    settings = {**converter(case, stack.schema_registry_url), **case.properties, "flush.size": 100_000}
    with run(case.shape, records, **settings) as process, Watch(process.pid) as watch:
        said = process.communicate(timeout=550)[1]
    assert process.returncode == 0, said[-2000:]
    assert re.search(rf"\b{records} records in 100 objects", said), said[-2000:]
    assert watch.peak < BOUND


def test_an_object_of_a_gigabyte_goes_through_a_worker_of_400_megabytes(run):
    records, size = 1_000_000, 1_075
    settings = {"value.converter": "bytes", "format.class": "bytes", "flush.size": records}
    peaks, over = [], threading.Event()

    def look(session):
        while not over.wait(0.25):
            peaks.extend(peak_bytes(pid) for pid in members(session) if is_worker(pid))

    with run(Shape(kind="bytes", size=size, partitions=1, codec="none"), records, **settings) as process:
        looking = threading.Thread(target=look, args=[process.pid])
        looking.start()
        said = process.communicate(timeout=550)[1]
        over.set()
        looking.join()
    assert process.returncode == 0, said[-2000:]
    written = re.search(rf"\b{records} records in 1 objects? \((\d+) bytes\)", said)
    assert int(written[1]) > 1_000_000_000, said[-2000:]
    assert 100_000_000 < max(peaks) < WORKER_BOUND


def is_worker(pid):
    try:
        return "penstock.daemon" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


def peak_bytes(pid):
    """The largest resident size that a process ever had; 0 once it has ended."""
    try:
        peak = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(peak[1]) * 1024 if peak else 0
