"""`penstock run` and `penstock validate`: connectors in the foreground, and what is wrong with their files."""

from __future__ import annotations

import contextvars
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.options import command, dir_option
from penstock.errors import ConfigError, PenstockError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from penstock.cli.progress import Progress
    from penstock.config.properties import Properties
    from penstock.report import RunSummary
    from penstock.sink import Sink

_SHOW_CURSOR = "\x1b[?25h"  # the progress line hides it
_FILE = click.Path(path_type=Path, dir_okay=False)


@command(
    "run",
    example="penstock run etc/quickstart-s3.properties --until-done\npenstock run worker.properties my-sink.properties",
)
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.option("--until-done", is_flag=True, help="End once all that can be closed now is committed.")
@click.option("--master", help="The Spark master, in place of one inside this process.")
@dir_option
def run(files: tuple[Path, ...], until_done: bool, master: str | None, directory: Path) -> None:
    """Run connectors in the foreground: [WORKER.properties] CONNECTOR.properties...

    A file with bootstrap.servers and no connector.class is the worker's. Without one, the embedded stack is used. Stops
    after the running cycle on Ctrl-C or SIGTERM, at once on a second one; either way nothing is lost.
    """
    from penstock.cli.progress import Progress
    from penstock.sink import Sink

    worker, connectors = _sort(files)
    extra = {} if master is None else {"spark.master": master}
    sinks = [Sink.from_properties(_with(each, extra), worker, directory=directory) for each in connectors]
    _configure_logging()
    stop = threading.Event()
    _stop_on_signals(stop)
    _warn(sinks)
    with Progress() as progress:
        outcomes = _run_all(sinks, stop, progress, until_done=until_done)
    failures = [failure for sink, failure in outcomes if failure]
    if failures:
        worst = max(failures, key=lambda failure: failure.exit_code)
        raise worst


@command("validate", example="penstock validate my-sink.properties worker.properties")
@click.argument("files", nargs=-1, required=True, type=_FILE)
@dir_option
def validate(files: tuple[Path, ...], directory: Path) -> None:
    """Name every mistake of a connector's file, with that of its worker if given, without touching the network."""
    from penstock.sink import Sink

    worker, connectors = _sort(files)
    if worker is None:
        from penstock.config.properties import of_mapping
        from penstock.dev import stack

        if stack.load_info(directory) is None:
            worker = of_mapping({"bootstrap.servers": "127.0.0.1:9092"}, "no worker file")
    problems: list[str] = []
    sinks = []
    for each in connectors:
        try:
            sinks.append(Sink.from_properties(each, worker, directory=directory))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    _warn(sinks)
    click.echo("ok")
    for file, sink in zip(connectors, sinks, strict=True):
        if sink.config.transform.wanted:
            told = f"{sink.config.transform.name} itself is checked at the start, and by `penstock try {file.file}`"
            click.echo(told, err=True)


def _sort(files: Sequence[Path]) -> tuple[Properties | None, list[Properties]]:
    """The worker's file, if there is one, and the connectors'. Raises ConfigError for all unreadable ones at once."""
    from penstock.config.load import is_worker
    from penstock.config.properties import read

    found: list[Properties] = []
    problems: list[str] = []
    for file in files:
        try:
            found.append(read(file))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    workers = [each for each in found if is_worker(each)]
    connectors = [each for each in found if not is_worker(each)]
    if len(workers) > 1 or not connectors:
        msg = "give at most one worker file (with bootstrap.servers) and at least one connector file"
        raise UsageError(msg)
    return (workers[0] if workers else None), connectors


def _with(properties: Properties, extra: dict[str, str]) -> Properties:
    from dataclasses import replace

    from penstock.config.properties import Value

    added = {name: Value(text, "the command line") for name, text in extra.items()}
    return replace(properties, entries={**properties.entries, **added})


def _configure_logging() -> None:
    from penstock.worker.logs import configure

    configure()


def _stop_on_signals(stop: threading.Event) -> None:
    def ask(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            if sys.stderr.isatty():
                click.echo(_SHOW_CURSOR, nl=False, err=True)
            os._exit(128 + number)
        stop.set()
        click.echo("stopping after the running cycle; once more to stop at once", err=True)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask)


def _warn(sinks: Sequence[Sink]) -> None:
    """Say what is odd about the configurations, once where several share it."""
    for warning in dict.fromkeys(text for sink in sinks for text in sink.warnings):
        click.echo(f"warning: {warning}", err=True)


def _run_all(
    sinks: Sequence[Sink], stop: threading.Event, progress: Progress, *, until_done: bool
) -> list[tuple[Sink, PenstockError | None]]:
    """Each sink in a thread of its own, so that signals reach the main thread at once."""
    from penstock.worker.logs import CONNECTOR

    outcomes: list[tuple[Sink, PenstockError | None]] = []
    began = time.monotonic()

    def go(sink: Sink) -> None:
        if len(sinks) > 1:
            CONNECTOR.set(sink.name)
        try:
            summary = sink.run(until_done=until_done, stop=stop, tell=progress.teller(sink.name))
        except PenstockError as error:
            outcomes.append((sink, _told(error, sink, sinks)))
            return
        _show(sink, summary, began)
        stopped = summary.faults
        outcomes.append((sink, PenstockError("\n".join(text for _, text in stopped)) if stopped else None))

    def guarded(sink: Sink) -> None:
        try:
            go(sink)
        except Exception as error:
            logging.getLogger("penstock").debug("run.failed", exc_info=True)
            inside = PenstockError(f"an error inside Penstock: {type(error).__name__}: {error}")
            outcomes.append((sink, _told(inside, sink, sinks)))

    threads = [threading.Thread(target=contextvars.copy_context().run, args=(guarded, sink)) for sink in sinks]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.2)
    return outcomes


def _told(error: PenstockError, sink: Sink, sinks: Sequence[Sink]) -> PenstockError:
    """The error, logged where others go on: only one error ends the command, when all have ended."""
    if len(sinks) > 1:
        logging.getLogger("penstock.sink").error("connector.failed name=%s reason=%s", sink.name, error)
    return error


def _show(sink: Sink, summary: RunSummary, began: float) -> None:
    for tp, records in summary.open:
        click.echo(f"{sink.name}: {tp}: {records} record{'' if records == 1 else 's'} left open", err=True)
    done = summary.committed
    seconds = time.monotonic() - began
    what = f"{done.records} records in {done.objects} objects ({done.bytes} bytes)"
    click.echo(f"{sink.name}: {what} committed, {seconds:.1f} s", err=True)
