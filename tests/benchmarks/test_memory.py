"""How much memory a whole run takes, Spark's JVM included, while ten million records go through."""

import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from benchmarks.cases import CASES, converter
from benchmarks.measuring import Watch
from benchmarks.topics import Topic

pytestmark = [pytest.mark.stack, pytest.mark.spark]

RECORDS, TASKS = 10_000_000, 2
# The JVM, the driver, and two workers whose queues of uploads are full because the store is slower than they are.
BOUND = 1_500_000_000
CASE = CASES["avro-avro"]


@pytest.fixture
def topic(stack):
    filled = Topic.make(stack, f"large-{uuid.uuid4().hex[:8]}", CASE.shape)
    filled.fill(RECORDS)
    yield filled
    filled.delete()


@pytest.fixture
def files(stack, topic, s3, bucket, tmp_path):
    """The worker's and the connector's; what the run writes is deleted, for it is a gigabyte."""
    properties = {
        "name": topic.name,
        "topics": topic.name,
        "tasks.max": TASKS,
        "flush.size": 100_000,
        "store.url": stack.store_url,
        "s3.region": stack.region,
        "s3.bucket.name": bucket,
        "aws.access.key.id": stack.access_key_id,
        "aws.secret.access.key": stack.secret_access_key,
        **converter(CASE, stack.schema_registry_url),
        **CASE.properties,
    }
    worker, connector = tmp_path / "worker.properties", tmp_path / "connector.properties"
    worker.write_text(f"bootstrap.servers={stack.bootstrap_servers}\n")
    connector.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    yield worker, connector
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        names = [{"Key": each["Key"]} for each in page.get("Contents", ())]
        s3.delete_objects(Bucket=bucket, Delete={"Objects": names})


def test_ten_million_records_go_through_a_bounded_memory(files):
    program = Path(sys.executable).with_name("penstock")
    command = [program, "run", *files, "--until-done"]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process,
        Watch(process.pid) as watch,
    ):
        said = process.communicate(timeout=300)[1]
    assert process.returncode == 0, said[-2000:]
    assert re.search(rf"\b{RECORDS} records in 100 objects", said), said[-2000:]
    assert watch.peak < BOUND
