"""Where Spark calls a data source: a foreseeable failure arrives as its sentence, without a traceback."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Iterator

_HIDE = "SPARK_HIDE_TRACEBACK"


@contextmanager
def plainly() -> Iterator[None]:
    """Let Spark show only the sentence of a PenstockError.

    PySpark's worker reads this variable where it reports an error, and ends then: no later error is touched.
    """
    try:
        yield
    except PenstockError:
        os.environ[_HIDE] = "1"
        raise
