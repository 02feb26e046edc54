"""`penstock start | stop | destroy`: the embedded stack."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

import click

from penstock.cli.options import command, dir_option, output_option
from penstock.cli.output import JsonOutput
from penstock.config.secret import HIDDEN

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.cli.output import Output


def _say(line: str) -> None:
    click.echo(line, err=True)


@command("start", example="penstock start\npenstock start --s3 moto --output json")
@click.option(
    "--s3",
    type=click.Choice(["s3proxy", "moto"]),
    default="s3proxy",
    show_default=True,
    help="The S3 server: s3proxy keeps objects on disk, moto in memory.",
)
@click.option("--bucket", help="The bucket that is made; default: that of etc/quickstart-s3.properties.")
@output_option
@dir_option
def start(s3: Literal["s3proxy", "moto"], bucket: str | None, output: Output, directory: Path) -> None:
    """Start Kafka, an S3 server, a Schema Registry and a worker on loopback; come back when all answer."""
    from penstock.dev import stack

    info = stack.start(directory, s3=s3, bucket=bucket, echo=_say)
    # Scripts need the secret; a terminal's scrollback does not.
    shown = info.as_json() if isinstance(output, JsonOutput) else {**info.as_json(), "aws.secret.access.key": HIDDEN}
    output.fields(shown)


@command("stop", example="penstock stop")
@dir_option
def stop(directory: Path) -> None:
    """Stop the embedded stack; its data stays."""
    from penstock.dev.stack import stop as stop_stack

    stop_stack(directory, _say)


@command("destroy", example="penstock destroy")
@click.option("--yes", is_flag=True, help="Do not ask, even on a terminal.")
@dir_option
def destroy(yes: bool, directory: Path) -> None:
    """Stop the embedded stack and delete its folder with all topics, objects and schemas."""
    from penstock.dev import stack

    if not yes and sys.stdin.isatty():
        click.confirm(f"Delete {directory} with all topics, objects and schemas in it?", abort=True, err=True)
    stack.destroy(directory, _say)
