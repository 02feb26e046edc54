"""`penstock ls` and `penstock cat`: what is in the bucket."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.options import command, dir_option, output_option
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.cli.output import Output
    from penstock.store.options import StoreOptions
    from penstock.store.s3 import S3Store

SCHEME = "s3://"
connector_option = click.option(
    "--connector",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A connector's file that says where the store is; default: the embedded stack.",
)


@command("ls", example="penstock ls\npenstock ls s3-sink\npenstock ls s3://my-bucket/topics/s3_topic/")
@click.argument("what", default="")
@connector_option
@click.option("--as-of", type=click.IntRange(min=1), help="Of NAME: what was committed up to that entry of its log.")
@output_option
@dir_option
def ls(what: str, connector: Path | None, as_of: int | None, output: Output, directory: Path) -> None:
    """List what the connector NAME committed, or the objects under a URL.

    WHAT is a connector's NAME or file, or s3://BUCKET/PREFIX; without it, everything under topics/ in the embedded
    stack's bucket is listed, committed or not.
    """
    if what and not what.startswith(SCHEME):
        output.tables({"objects": _committed(what, connector, as_of, directory)}, facts={})
        return
    store, prefix = opened(what, connector, directory)
    found = store.list(prefix if what else "topics/")
    output.tables({"objects": [{"key": each.key, "size": each.size} for each in found]}, facts={})


def _committed(name: str, connector: Path | None, as_of: int | None, directory: Path) -> list[dict[str, str | int]]:
    from penstock.cli.committed import source_options
    from penstock.sources.listing import committed, head_of
    from penstock.sources.object_options import parse

    options = parse(
        {**source_options(name, connector, directory), **({} if as_of is None else {"asOfEntry": str(as_of)})}
    )
    head_of(options)
    return [
        {
            "entry": each.entry,
            "topic": each.topic,
            "partition": each.partition,
            "start": each.start,
            "end": each.end,
            "records": each.records,
            "size": each.size,
            "object": each.key,
        }
        for each in committed(options)
    ]


@command("cat", example="penstock cat s3://my-bucket/topics/t/partition=0/t+0+0000000000.avro")
@click.argument("urls", nargs=-1, required=True)
@connector_option
@dir_option
def cat(urls: tuple[str, ...], connector: Path | None, directory: Path) -> None:
    """Print the records of objects (Avro, JSON, bytes) as JSON lines."""
    from penstock.formats.read import records
    from penstock.store.local import ranged

    for url in urls:
        store, key = opened(url, connector, directory)
        for record in records(ranged(store, key), key):
            sys.stdout.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")


def opened(url: str, connector: Path | None, directory: Path) -> tuple[S3Store, str]:
    """The bucket of a URL, reached as the connector's file, the stack or boto3's chain has it; and the key."""
    from penstock.store.s3 import store as connected

    bucket, _, key = url.removeprefix(SCHEME).partition("/")
    if url and not (url.startswith(SCHEME) and bucket):
        msg = f"an object is s3://BUCKET/KEY, got `{url}`"
        raise UsageError(msg)
    return connected(_way(bucket, connector, directory)), key


def _way(bucket: str, connector: Path | None, directory: Path) -> StoreOptions:
    from penstock.dev import stack
    from penstock.sources.object_options import of_store, parse

    named = {"name": "any", **({"s3.bucket.name": bucket} if bucket else {})}
    if connector is not None:
        return parse({**named, "connector": str(connector.absolute())}).data
    info = stack.load_info(directory)
    if info is None and not bucket:
        msg = "name a bucket (s3://BUCKET/PREFIX), or start the embedded stack with `penstock start`"
        raise UsageError(msg)
    return parse({**of_store({} if info is None else info.as_json()), **named}).data
