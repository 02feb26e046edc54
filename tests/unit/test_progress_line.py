"""The line of `penstock run`: its words, and what it leaves on a terminal."""

import io
import re

import pytest

from penstock.cli import progress
from penstock.cli.progress import Progress, line
from penstock.summary import Activity, CycleSummary

DONE = CycleSummary(1234567, 12, 10**9)


def test_one_connector_is_told_without_its_name():
    said = line({"s3-sink": Activity("writing 9 offsets of 4 topic-partitions", DONE, 3210)}, 10)
    assert said == "1,234,567 records in 12 objects, 123,457/s, lag 3,210, writing 9 offsets of 4 topic-partitions"


def test_several_connectors_stand_side_by_side():
    activities = {"b": Activity("planning", CycleSummary(), 5), "a": Activity("waiting: x", CycleSummary(1, 1, 1), 0)}
    assert line(activities, 0) == (
        "a: 1 records in 1 objects, 0/s, lag 0, waiting: x | b: 0 records in 0 objects, 0/s, lag 5, planning"
    )


@pytest.fixture
def terminal(monkeypatch):
    """A console of given properties in the place of standard error; what it gets."""
    made = progress.Console

    def use(**given):
        file = io.StringIO()
        monkeypatch.setattr(progress, "Console", lambda **_: made(file=file, **given))
        return file

    return use


@pytest.mark.parametrize("given", [{"force_terminal": False}, {"force_terminal": True, "_environ": {"TERM": "dumb"}}])
def test_without_a_terminal_that_can_there_is_no_line(terminal, given):
    said = terminal(**given)
    with Progress() as shown:
        shown.teller("s3-sink")(Activity("planning", DONE, 0))
    assert said.getvalue() == ""


def test_on_a_terminal_the_line_fits_and_is_cleared_at_the_end(terminal):
    said = terminal(force_terminal=True, width=60, _environ={"TERM": "xterm"})
    with Progress() as shown:
        shown.teller("s3-sink")(
            Activity("waiting: [red] no\nbroker " + 80 * "x" + " behind it", CycleSummary(7, 1, 9), 2)
        )
    written = said.getvalue()
    assert "7 records in 1 objects, " in written
    assert "lag 2, waiting: [red] no" in written
    assert "behind it" not in written
    assert re.search(r"\x1b\[2K", written.rpartition("7 records")[2])
