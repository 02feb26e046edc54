"""`penstock verify`: an audit of one connector."""

from __future__ import annotations

import functools
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from penstock.cli.known import connector_argument, known
from penstock.cli.options import command, dir_option, output_option, worker_option
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.cli.output import Output


@command(
    "verify",
    example="penstock verify etc/quickstart-s3.properties\n"
    "penstock verify my-sink.properties --worker worker.properties --against-kafka --output json",
)
@connector_argument
@click.option("--against-kafka", is_flag=True, help="Also compare with the records that are still in Kafka.")
@click.option("--no-contents", is_flag=True, help="Do not read the objects: only whether they are there, with size.")
@click.option("--master", help="The Spark master for large audits, in place of one inside this process.")
@worker_option
@output_option
@dir_option
def verify(
    connector: str,
    against_kafka: bool,
    no_contents: bool,
    master: str | None,
    worker: Path | None,
    output: Output,
    directory: Path,
) -> None:
    """Audit a connector: its state log, its objects, and with --against-kafka every record that Kafka still has.

    Changes nothing, and the connector may run meanwhile. Ends with exit code 1 if anything is not as it must be.
    """
    from penstock.audit.auditing import audit
    from penstock.spark import context

    config, kafka = known(connector, worker, directory)
    settings = {**config.spark, **({} if master is None else {"spark.master": master})}
    report = audit(
        config,
        kafka,
        functools.partial(context, config.tasks_max, settings),
        read_contents=not no_contents,
        against_kafka=against_kafka,
    )
    rows = [{"finding": each.kind, "where": each.where, "what": each.what} for each in report.findings]
    notes = [asdict(each) for each in report.notes]
    output.tables({"findings": rows, "notes": notes}, facts=report.facts)
    if rows:
        found = "1 finding" if len(rows) == 1 else f"{len(rows)} findings"
        msg = f"connector `{config.name}`: {found}; docs/operating.md says what each means"
        raise PenstockError(msg)
    click.echo("sound", err=True)
