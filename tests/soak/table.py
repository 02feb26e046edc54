"""The table of faults in docs/delivery.md, measured anew: `PYTHONPATH=tests .venv/bin/python -m soak.table`.

The same faults were put to Confluent's sink in the same way; its figures stand beside ours in docs/delivery.md.
"""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from faulty_s3 import FAULTS, Request, at_random
from penstock.dev import stack as dev_stack
from soak.course import RULES, Course, Result, Trouble

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.dev.settings import StackInfo

LATENCY = (0.01, 0.05)
PEERS = ("drop.before", "drop.after", "503", "slow")
LABELS = {
    "size": "default partitioner, flush.size=1000",
    "schedule": "rotate.schedule.interval.ms=3000",
    "wallclock": "Wallclock extractor, rotate.interval.ms=2000",
    "hourly": "hourly, Record time",
    "changing": "flush.size changed at each restart",
}
# Files of two parts each.
BIG = {
    "size": {"s3.part.size": str(5 << 20), "flush.size": "500"},
    "schedule": {"s3.part.size": str(5 << 20), "rotate.schedule.interval.ms": "12000"},
}


@dataclass
class RepeatedComplete:
    """Every second completion is done and not heard of; its repetition is answered 404 by the server, or 412 by us."""

    answer: str
    others: Callable[[Request], str | None]
    dice: random.Random = field(default_factory=lambda: random.Random(4))
    unheard: set[str] = field(default_factory=set)

    def __call__(self, request: Request) -> str | None:
        if request.kind != "complete":
            return self.others(request)
        if request.target in self.unheard:
            return "412" if self.answer == "412" else None
        if self.dice.random() < 0.5:
            return None
        self.unheard.add(request.target)
        return "drop.after"


@click.command()
@click.option("--seconds", default=120.0, show_default=True, help="Of each of the five rounds.")
def main(seconds: float) -> None:
    """Five rounds of faults, a row of Markdown for each connector."""
    click.echo(
        "| test | faults | produced | lost | doubled | failed until a manual restart |\n|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory(prefix="penstock-faults-") as temporary:
        home = Path(temporary) / "stack"
        try:
            info = dev_stack.start(home, echo=lambda _: None)
            measure(info, Path(temporary), seconds)
        finally:
            dev_stack.destroy(home, lambda _: None)


def measure(info: StackInfo, folder: Path, seconds: float) -> None:
    every = tuple(RULES)
    kills = Course(info, folder / "kills", seconds, Trouble(kill_s=seconds / 60, latency_s=LATENCY), every, seed=1)
    show(kills.run(), "SIGKILL")
    pairs = ("size", "schedule", "wallclock", "hourly")
    stops = Course(info, folder / "stops", seconds, Trouble(stop_s=seconds / 30, latency_s=LATENCY), pairs, seed=2)
    show(stops.run(), "two instances, one stopped and resumed")
    some = at_random(0.04, 3, PEERS)
    faults = Course(info, folder / "s3", seconds, Trouble(latency_s=LATENCY), every, seed=3, choose=some)
    show_all(faults.run(), "S3 faults 4 % (drops before and after, 503, slow), five connectors")
    for answer, rule in (("404", "size"), ("412", "schedule")):
        choose = RepeatedComplete(answer, at_random(0.06, 4, FAULTS))
        course = Course(info, folder / answer, seconds, Trouble(latency_s=LATENCY), (rule,), seed=4, choose=choose)
        course.per_second, course.padding, course.extra = 200, 12_000, BIG[rule]
        show_all(course.run(), f"S3 faults 6 % of every kind, a repeated Complete answers {answer}, {LABELS[rule]}")


def show(result: Result, what: str) -> None:
    """A row per connector."""
    tell(result)
    for member in result.members:
        found = result.audits[member.name]
        caused = f"{member.kills or member.stops} {'kills' if member.kills else 'stops'}"
        label = LABELS[member.name.rpartition("-")[2]]
        row = (f"{label}: {what}", caused, f"{found.records:,}", found.lost, found.doubled, len(member.failed))
        click.echo("| " + " | ".join(map(str, row)) + " |")


def tell(result: Result) -> None:
    """What ended although nobody caused it."""
    for text in result.failed:
        click.echo(text, err=True)


def show_all(result: Result, what: str) -> None:
    """One row for all of them."""
    tell(result)
    row = (what, result.requests, f"{result.records:,}", result.lost, result.doubled, len(result.failed))
    click.echo("| " + " | ".join(map(str, row)) + " |")


if __name__ == "__main__":
    main()
