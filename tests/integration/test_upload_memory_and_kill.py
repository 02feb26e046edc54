"""A large object by a process of its own: what it holds in memory, and what is left of it when it is killed."""

import os
import pickle
import signal
import subprocess
import sys

import pytest

from penstock.store.s3 import StoreOptions, store
from penstock.store.upload import abort_leftovers

pytestmark = pytest.mark.stack

MIB = 1024 * 1024
WRITER = """
import os, pickle, resource, sys
from penstock.store.s3 import store
from penstock.store.upload import Owner, Uploads
options, size = pickle.loads(bytes.fromhex(os.environ["OPTIONS"])), int(sys.argv[1])
opened = store(options)
opened.check()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
writer = Uploads(opened, Owner("x", 5), 5 << 20, memory=40 << 20).open("topics/t/big", 0)
block = os.urandom(1 << 20)
for _ in range(size):
    writer.write(block)
if len(sys.argv) > 2:
    print("written", flush=True)
    sys.stdin.read()
print(writer.close({"records": "1"}).result().size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.fixture
def options(stack, bucket):
    return StoreOptions(
        bucket,
        stack.region,
        stack.store_url,
        access_key_id=stack.access_key_id,
        secret_access_key=stack.secret_access_key,
    )


def writer(options, *arguments):
    command = [sys.executable, "-c", WRITER, *arguments]
    environment = {**os.environ, "OPTIONS": pickle.dumps(options).hex()}
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_hundred_megabytes_pass_through_a_bounded_memory(options):
    with writer(options, "100") as process:
        size, grown_kib = map(int, process.communicate(timeout=120)[0].split())
    assert size == 100 * MIB
    assert store(options).head("topics/t/big").size == size
    assert grown_kib < 64 * 1024


def test_a_process_killed_in_the_middle_leaves_no_object_and_the_next_start_sweeps(options):
    with writer(options, "40", "wait") as process:
        assert process.stdout.readline() == "written\n"
        os.kill(process.pid, signal.SIGKILL)
    opened = store(options)
    assert opened.head("topics/t/big") is None
    assert abort_leftovers(opened, "topics/t/") == 1
    assert list(opened.uploads("")) == []
    assert list(opened.list("")) == []
