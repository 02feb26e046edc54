"""`penstock package`: what a Spark cluster needs to run connectors."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.options import command


@command(
    "package",
    example="penstock package >> worker.properties\n"
    "penstock run --master spark://host:7077 worker.properties my-sink.properties",
)
@click.option(
    "-o", "--output", "target", type=click.Path(path_type=Path, dir_okay=False), help="Where to; default: here."
)
def package(target: Path | None) -> None:
    """Pack Penstock and all it imports into one archive for Spark's executors; prints the properties that use it.

    Nothing is fetched. Executors need Spark, and the same version of Python as this one.
    """
    from penstock import archive

    path = (target or Path(archive.name())).expanduser().absolute()
    files = archive.build(path)
    click.echo(f"{path}: {files} files, {path.stat().st_size} bytes", err=True)
    for name, value in archive.settings(path).items():
        click.echo(f"{name}={value}")
