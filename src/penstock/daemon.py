"""`python -m penstock.daemon`: Spark's parent of Python workers, with what they need loaded once and shared by all.

Spark's own daemon leaves the loading to each worker, because threads do not survive a fork; the two threads that these
libraries would start are told not to (decision 0012).
"""

from __future__ import annotations

import gc
import os

_NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}


def load() -> None:
    """Import what a task runs, and load its compiled code; starts no thread."""
    os.environ.update(_NO_THREADS)  # read when the libraries are loaded
    import pyspark.worker  # noqa: F401, PLC0415

    import penstock.job  # noqa: F401, PLC0415
    from penstock.warm import ALWAYS  # noqa: PLC0415

    for module in ALWAYS:
        module.warm()
    gc.collect()
    gc.freeze()  # a later collection would write to the shared pages, and so copy them


if __name__ == "__main__":
    from pyspark.daemon import manager

    load()
    manager()
