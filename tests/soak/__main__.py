"""`make soak SECONDS=600`: real broker, S3 server and connectors; the last line says what came of it."""

from __future__ import annotations

import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import click

from penstock.dev import stack as dev_stack
from soak.course import RULES, Course, Trouble, bounce_embedded, last_line


@click.command()
@click.option("--seconds", default=600.0, show_default=True, help="How long it goes on.")
@click.option("--seed", default=0, help="Of everything that happens at random; 0 for another one each time.")
@click.option("--connector", "names", multiple=True, type=click.Choice(list(RULES)), help="Which; all by default.")
@click.option("--spark/--no-spark", default=True, help="Whether one of the connectors runs on Spark.")
def main(seconds: float, seed: int, names: tuple[str, ...], spark: bool) -> None:
    """Producers, connectors, kills, zombies, S3 faults and broker restarts; then every record is counted."""
    began, seed = time.monotonic(), seed or time.time_ns() % 1_000_000
    chosen = names or tuple(RULES)

    def say(what: str) -> None:
        click.echo(f"{time.monotonic() - began:7.1f} s  {what}", err=True)

    with tempfile.TemporaryDirectory(prefix="penstock-soak-") as temporary:
        home = Path(temporary) / "stack"
        try:
            say(f"seed {seed}; starting the stack")
            info = dev_stack.start(home, echo=lambda _: None)
            trouble = Trouble(kill_s=8, stop_s=25, broker_s=45, s3_rate=0.08, latency_s=(0.0, 0.02))
            with_spark = frozenset(chosen[:1]) if spark else frozenset()
            course = Course(
                info,
                Path(temporary),
                seconds,
                trouble,
                chosen,
                partial(bounce_embedded, home),
                with_spark=with_spark,
                seed=seed,
                say=say,
            )
            result = course.run()
        finally:
            dev_stack.destroy(home, lambda _: None)
    for member in result.members:
        click.echo(f"{member.name}: {member.kills} kills, {member.stops} stops, {result.audits[member.name]}")
    for text in result.failed:
        click.echo(f"ended without a cause: {text}")
    click.echo(f"{result.brokers} broker restarts, {result.requests} S3 requests spoilt")
    click.echo(last_line(result))
    sys.exit(1 if result.lost or result.doubled else 0)


main()
