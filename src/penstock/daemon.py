"""`python -m penstock.daemon`: Spark's parent of Python workers, with what they need loaded once and shared by all.

Spark's own daemon leaves the loading to each worker, because threads do not survive a fork; the two threads that these
libraries would start are told not to (decision 0012).
"""

from __future__ import annotations

import gc
import os
import sys
import zipimport
from pathlib import Path

_NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}


def load() -> None:
    """Import what a task runs, and load its compiled code; starts no thread."""
    os.environ.update(_NO_THREADS)  # read when the libraries are loaded
    import pyspark.worker  # noqa: F401, PLC0415

    import penstock.job  # noqa: F401, PLC0415
    from penstock.memory import give_back  # noqa: PLC0415
    from penstock.warm import ALWAYS  # noqa: PLC0415

    for module in ALWAYS:
        module.warm()
    _forget_archives()
    gc.collect()
    gc.freeze()  # a later collection would write to the shared pages, and so copy them
    give_back()  # workers would use what is free, each in copies of its own


def _forget_archives() -> None:
    """Drop what remembers the names in pyspark.zip and Spark's own jar, which is on the path too and has no Python.

    Each package of the zip has a finder of its own, and a worker's first task has all of them read the whole archive
    again: 24 MB a worker. What is imported later makes new ones.
    """
    sys.path[:] = [each for each in sys.path if not Path(each).match("spark-core_*.jar")]
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[path]


if __name__ == "__main__":
    from pyspark.daemon import manager

    load()
    manager()
