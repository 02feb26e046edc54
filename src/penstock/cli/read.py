"""`penstock read`: records of an object from an offset on, with as few bytes fetched as the format allows."""

from __future__ import annotations

import itertools
import json
import sys
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.objects import connector_option, opened
from penstock.cli.options import command, dir_option
from penstock.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from penstock.frames import Frames
    from penstock.seeking import Found
    from penstock.store.s3 import S3Store

_EXAMPLE = """\
penstock read s3://my-bucket/topics/t/partition=0/t+0+0000000000.avro --limit 10
penstock read s3://my-bucket/systest/2026-11-21/t-00000-000000000000.gz --from-offset 1042 --limit 5"""


@command("read", example=_EXAMPLE)
@click.argument("url")
@click.option("--from-offset", type=click.IntRange(0), help="Begin with this Kafka offset (block-GZIP: by its index).")
@click.option("--limit", type=click.IntRange(1), help="Print so many records at most.")
@connector_option
@dir_option
def read(url: str, from_offset: int | None, limit: int | None, connector: Path | None, directory: Path) -> None:
    """Print the records of an object as JSON lines.

    Of a block-GZIP object only the index and the members that are needed are fetched; `--connector` says how its
    records are framed, where that is not one text a line.
    """
    store, key = opened(url, connector, directory)
    found = _sought(store, key, connector, from_offset or 0, limit) if key.endswith(".gz") else None
    if found is None and from_offset is not None:
        msg = f"`{key}` has no index beside it, so no offset can be looked up; leave --from-offset out"
        raise UsageError(msg)
    for record in itertools.islice(_whole(store, key) if found is None else found, limit):
        sys.stdout.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")


def _sought(
    store: S3Store, key: str, connector: Path | None, start: int, limit: int | None
) -> Iterator[dict[str, Any]] | None:
    """None where the object has no index."""
    from penstock.seeking import read_index, records
    from penstock.store.base import NotFoundError

    try:
        index = read_index(store, key)
    except NotFoundError:
        return None
    frames = _frames(connector)
    return (_shown(found, frames) for found in records(store, key, index, frames, start, limit))


def _shown(found: Found, frames: Frames) -> dict[str, Any]:
    shown = {"offset": found.offset, "value": found.value.decode("utf-8", "backslashreplace")}
    if frames.keys:
        shown["key"] = None if found.key is None else found.key.decode("utf-8", "backslashreplace")
    return shown


def _whole(store: S3Store, key: str) -> Iterator[Any]:
    from penstock.formats.read import records

    return records(store.get(key), key)


def _frames(connector: Path | None) -> Frames:
    from penstock.frames import Frames
    from penstock.loading import load
    from penstock.parts import frames

    return Frames() if connector is None else frames(load(connector, {"bootstrap.servers": "unused:9092"})[0])
