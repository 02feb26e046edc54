"""`penstock read`: records from an offset on, with as few bytes fetched as the format allows."""

from __future__ import annotations

import itertools
import json
import sys
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.objects import SCHEME, connector_option, opened
from penstock.cli.options import command, dir_option
from penstock.cli.places import place
from penstock.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from penstock.frames import Frames
    from penstock.store.s3 import S3Store

_EXAMPLE = """\
penstock read s3-sink s3_topic-0 --from-offset 4 --limit 2
penstock read s3://my-bucket/topics/t/partition=0/t+0+0000000000.avro --limit 10
penstock read s3://my-bucket/systest/2026-11-21/t-00000-000000000000.gz --from-offset 1042 --limit 5"""


@command("read", example=_EXAMPLE)
@click.argument("what", metavar="URL|NAME")
@click.argument("topic_partition", metavar="[TOPIC-PARTITION]", default="")
@click.option("--from-offset", type=click.IntRange(0), help="Begin with this Kafka offset.")
@click.option("--limit", type=click.IntRange(1), help="Print so many records at most.")
@connector_option
@dir_option
def read(
    what: str, topic_partition: str, from_offset: int | None, limit: int | None, connector: Path | None, directory: Path
) -> None:
    """Print the records of an object, or of a topic-partition that a connector committed, as JSON lines.

    URL is s3://BUCKET/KEY. NAME is a connector of the embedded stack, or a connector's file; its state log says which
    objects hold the TOPIC-PARTITION, and records are printed with their offsets where the object holds all of a range.

    Of a block-GZIP object only the index and the members that are needed are fetched. For a URL, `--connector` says
    how its records are framed, where that is not one text a line.
    """
    if what.startswith(SCHEME):
        if topic_partition:
            msg = f"a TOPIC-PARTITION goes with the NAME of a connector, not with a URL; got `{topic_partition}`"
            raise UsageError(msg)
        found = _object(what, from_offset, limit, connector, directory)
    else:
        found = _committed(what, topic_partition, from_offset, limit, connector, directory)
    for record in found:
        sys.stdout.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")


def _committed(
    name: str, text: str, start: int | None, limit: int | None, connector: Path | None, directory: Path
) -> Iterator[Any]:
    from penstock.cli.committed import source_options
    from penstock.sources.lookup import records
    from penstock.sources.object_options import parse

    if not text:
        msg = f"say of which topic-partition, for instance `penstock read {name} s3_topic-0`; or give s3://BUCKET/KEY"
        raise UsageError(msg)
    tp, offset = place(text)
    if offset is not None and start is not None:
        msg = f"give the offset once: `{text}`, or --from-offset {start}"
        raise UsageError(msg)
    first = start if offset is None else offset
    return records(parse(source_options(name, connector, directory)), tp, first or 0, limit)


def _object(
    url: str, start: int | None, limit: int | None, connector: Path | None, directory: Path
) -> Iterator[dict[str, Any]]:
    store, key = opened(url, connector, directory)
    found = _sought(store, key, connector, start or 0, limit) if key.endswith(".gz") else None
    if found is None and start is not None:
        msg = (
            f"`{key}` has no index beside it, so no offset can be looked up; leave --from-offset out, or give the "
            "connector's name and the topic-partition in place of the object"
        )
        raise UsageError(msg)
    return itertools.islice(_whole(store, key) if found is None else found, limit)


def _sought(
    store: S3Store, key: str, connector: Path | None, start: int, limit: int | None
) -> Iterator[dict[str, Any]] | None:
    """None where the object has no index."""
    from penstock.seeking import read_index, readable, records
    from penstock.store.base import NotFoundError

    try:
        index = read_index(store, key)
    except NotFoundError:
        return None
    frames = _frames(connector)
    return (
        {"offset": each.offset, **readable(each.key, each.value, frames)}
        for each in records(store, key, index, frames, start, limit)
    )


def _whole(store: S3Store, key: str) -> Iterator[Any]:
    from penstock.formats.read import records
    from penstock.store.local import ranged

    return records(ranged(store, key), key)


def _frames(connector: Path | None) -> Frames:
    from penstock.frames import Frames
    from penstock.loading import load
    from penstock.parts import frames

    return Frames() if connector is None else frames(load(connector, {"bootstrap.servers": "unused:9092"})[0])
