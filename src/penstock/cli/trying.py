"""`penstock try`: what a connector's transformation makes of the newest records."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.options import command, dir_option, output_option, worker_option
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.cli.output import Json, Output
    from penstock.transform.trying import Trial


@command(
    "try",
    example="penstock try my-sink.properties --limit 20\npenstock try my-sink.properties --output json",
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many records.")
@click.option("--master", default="local[1]", show_default=True, help="The Spark master.")
@worker_option
@output_option
@dir_option
def try_(file: Path, limit: int, master: str, worker: Path | None, output: Output, directory: Path) -> None:
    """Show the newest records and what transform.sql, or transform.python, makes of each. Nothing is written."""
    from pyspark.sql import SparkSession

    from penstock.loading import load
    from penstock.spark import session
    from penstock.transform.runner import Transformer
    from penstock.transform.trying import trials

    config, kafka = load(file, worker, directory)
    if not config.transform.wanted:
        msg = f"{file}: there is nothing to try: neither transform.sql nor transform.python is set"
        raise UsageError(msg)
    is_ours = SparkSession.getActiveSession() is None
    spark = session(1, {**config.spark, "spark.master": master})
    try:
        found = trials(Transformer(lambda: spark, kafka), config, limit, time.time_ns() // 1_000_000)
    finally:
        if is_ours:
            spark.stop()
    output.tables({"records": [_row(each) for each in found]}, facts={})


def _row(trial: Trial) -> dict[str, Json]:
    """One line: documents side by side, since records may differ in their fields."""
    return {
        "record": f"{trial.tp}@{trial.offset}",
        "input": trial.fields or None,
        "output": None if trial.note else trial.result,
        "note": trial.note,
    }
