"""Where Spark calls a data source: a foreseeable failure arrives as its sentence, without a traceback."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Iterator

_HIDE = "SPARK_HIDE_TRACEBACK"
_OURS = re.compile(r"penstock\.errors\.\w+: (.*?)(?:\s+SQLSTATE: \w+.*|\n\tat .*)?$", re.DOTALL)
_CODE = re.compile(r"^\[[A-Z0-9_.]+\] ")
_THEIRS = re.compile(r"(.*?)\s*SQLSTATE: \w+", re.DOTALL)


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


def words(error: Exception) -> str:
    """The same in one line, without the code that Spark puts before it."""
    return " ".join(_CODE.sub("", sentence(error)).split()).rstrip(".")


def sentence(error: Exception) -> str:
    """What a failure of Spark's says to people: our own sentences where there are any, else Spark's first ones."""
    text = str(error)
    found = _OURS.search(text) or _THEIRS.match(text)
    return found[1].strip() if found else (text.strip().splitlines() or [repr(error)])[0]
