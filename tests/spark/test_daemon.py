"""The daemon that Spark's Python workers are forked from."""

import os
import subprocess
import sys
import zipimport
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark


def test_loading_starts_no_thread_for_none_would_survive_a_fork():
    program = "import os; from penstock.daemon import load; load(); print(len(os.listdir('/proc/self/task')))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "1\n"


def test_no_task_reads_the_names_in_the_archives_that_are_on_the_path(spark):
    def look(_):
        yield sys.path, [each for each in sys.path_importer_cache.values() if isinstance(each, zipimport.zipimporter)]

    ((path, finders),) = spark.sparkContext.parallelize([1], 1).mapPartitions(look).collect()
    assert finders == []
    assert not [each for each in path if "spark-core" in each]


def test_a_worker_begins_with_what_its_parent_has_loaded(spark):
    def look(_):
        yield " ".join(Path(f"/proc/{os.getppid()}/cmdline").read_text().split("\0")), "penstock.job" in sys.modules

    ((parent, loaded),) = spark.sparkContext.parallelize([1], 1).mapPartitions(look).collect()
    assert "-m penstock.daemon" in parent
    assert loaded
