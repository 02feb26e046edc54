"""`penstock sql`: a query over what a connector committed."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.options import command, dir_option, output_option
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from penstock.cli.output import Json, Output

_LOOKS_PER_SECOND = 4
_VIEW = "records"


@command(
    "sql",
    example=(
        'penstock sql s3-sink "SELECT _partition, count(*) AS n FROM records GROUP BY _partition"\n'
        'penstock sql my-sink.properties "SELECT * FROM records" --limit 5 --output json'
    ),
)
@click.argument("name")
@click.argument("query")
@click.option("--as-of", type=click.IntRange(min=1), help="Only what was committed up to that entry of the state log.")
@click.option("--details", is_flag=True, help="With columns for offsets, times and encoded partition of the object.")
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="Most rows to print.")
@click.option("--master", default="local[*]", show_default=True, help="The Spark master.")
@click.option(
    "--connector",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The connector's file, where it is not one of the embedded stack.",
)
@output_option
@dir_option
def sql(  # noqa: PLR0913 - one argument per option
    name: str,
    query: str,
    as_of: int | None,
    details: bool,
    limit: int,
    master: str,
    connector: Path | None,
    output: Output,
    directory: Path,
) -> None:
    """Run a query over the view `records`: all records that the connector NAME committed, by Spark.

    NAME is a connector of the embedded stack, or a connector's file. _topic, _partition and _object say where a record
    is from; filters on them are decided before any object is opened.
    """
    from penstock.cli.committed import source_options

    options = {**source_options(name, connector, directory), "details": str(details).lower()}
    if as_of is not None:
        options["asOfEntry"] = str(as_of)
    rows, more = _run(options, query, limit, master)
    output.tables({"rows": rows}, facts={})
    if more:
        click.echo(f"only the first {limit} rows; --limit shows more", err=True)


def _run(options: Mapping[str, str], query: str, limit: int, master: str) -> tuple[list[dict[str, Json]], bool]:
    """The first rows of the answer, and whether there are more. Raises PenstockError in one sentence."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from penstock import register
    from penstock.formats.read import plain
    from penstock.sources.edge import sentence
    from penstock.sources.object_options import parse
    from penstock.spark import session

    parse(options)  # before Spark takes its time to start
    logging.getLogger("SQLQueryContextLogger").disabled = True  # it would print a traceback beside our sentence
    is_ours = SparkSession.getActiveSession() is None
    spark = session(2, {"spark.master": master})
    try:
        register(spark)
        spark.read.format("penstock").options(**options).load().createOrReplaceTempView(_VIEW)
        with _progress(spark):
            found = spark.sql(query).limit(limit + 1).collect()
    except (PySparkException, Py4JError) as error:
        raise PenstockError(sentence(error)) from error
    finally:
        if is_ours:
            spark.stop()
    return [plain(row.asDict(recursive=True)) for row in found[:limit]], len(found) > limit


@contextmanager
def _progress(spark: SparkSession) -> Iterator[None]:
    """A bar of the tasks that are done, while a query runs and standard error is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield
        return
    ended = threading.Event()
    columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn(), TextColumn("tasks"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        thread = threading.Thread(target=_follow, args=(spark, bar, ended), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _follow(spark: SparkSession, bar: object, ended: threading.Event) -> None:
    """Count the tasks of every stage that was seen."""
    from rich.progress import Progress

    assert isinstance(bar, Progress)  # noqa: S101 - imported late
    shown, seen = bar.add_task("tasks", total=None), dict[int, tuple[int, int]]()
    tracker = spark.sparkContext.statusTracker()
    while not ended.wait(1 / _LOOKS_PER_SECOND):
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info is not None:
                seen[stage] = (info.numCompletedTasks, info.numTasks)
        done, total = (sum(each[side] for each in seen.values()) for side in (0, 1))
        bar.update(shown, completed=done, total=total or None)
