"""docs/spark.md is a notebook: its code is run in order, and what it prints is what the page shows."""

import contextlib
import io
import re
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.stack]

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
CELL = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<shown>.*?)```)?", re.DOTALL)


def test_the_walk_through_prints_what_it_shows(spark, stack, tmp_path):
    given = stack.as_json()
    store = [name for name in given if name.startswith(("s3.", "aws.", "store."))]
    names = {"spark": spark, "stack": given, "store": store, "checkpoint": str(tmp_path / "checkpoint")}
    cells = list(CELL.finditer(PAGE.read_text(encoding="utf-8")))
    assert len(cells) >= 6
    for cell in cells:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(cell["code"], names)  # noqa: S102 - the page is ours
        if cell["shown"] is not None:
            assert [line.rstrip() for line in printed.getvalue().strip().splitlines()] == cell["shown"].splitlines()
