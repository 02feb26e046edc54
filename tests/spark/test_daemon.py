"""The daemon that Spark's Python workers are forked from."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark


def test_loading_starts_no_thread_for_none_would_survive_a_fork():
    program = "import os; from penstock.daemon import load; load(); print(len(os.listdir('/proc/self/task')))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "1\n"


def test_a_worker_begins_with_what_its_parent_has_loaded(spark):
    def look(_):
        yield " ".join(Path(f"/proc/{os.getppid()}/cmdline").read_text().split("\0")), "penstock.job" in sys.modules

    ((parent, loaded),) = spark.sparkContext.parallelize([1], 1).mapPartitions(look).collect()
    assert "-m penstock.daemon" in parent
    assert loaded
