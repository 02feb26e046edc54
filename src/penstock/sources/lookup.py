"""Records of one topic-partition from an offset on: the state log says which objects hold them."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from penstock import seeking
from penstock.errors import PenstockError
from penstock.formats import read
from penstock.formats.packing import unpacked
from penstock.sources.contents import Naming, kind_of
from penstock.sources.framing import Framing
from penstock.sources.listing import committed, head_of
from penstock.store.base import NotFoundError
from penstock.store.local import ranged
from penstock.store.s3 import store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.model import TopicPartition
    from penstock.sources.listing import StoredObject
    from penstock.sources.object_options import ObjectOptions
    from penstock.store.base import Store

    Json = Any

_PIECE = 1 << 20


def records(options: ObjectOptions, tp: TopicPartition, start: int, limit: int | None) -> Iterator[dict[str, Json]]:
    """Records with their offsets, object by object in the order of their first ones; `limit` at most.

    An object that does not hold every offset of its range, because of fields, filters or gaps in Kafka, is read from
    its beginning, and its records have no offset. Of block-GZIP only the members that are needed are fetched.

    Raises:
        StateError: there is no such log.
        PenstockError: nothing is committed there, or an object is missing or damaged.
    """
    framing = Framing.of(head_of(options).config or {})
    mine = [each for each in committed(options) if (each.topic, each.partition) == (tp.topic, tp.partition)]
    wanted = sorted((each for each in mine if each.end > start), key=lambda each: (each.start, each.entry))
    if not wanted:
        last = max((each.end for each in mine), default=None)
        what = "nothing" if last is None else f"nothing from offset {start} on, only up to offset {last - 1}"
        msg = f"{options.url} has committed {what} of {tp}; `penstock state show` says where it stands"
        raise PenstockError(msg)
    opened, left = store(options.data), limit
    for each in wanted:
        for record in _of(opened, each, framing, start, left):
            yield record
            left = None if left is None else left - 1
        if left == 0:
            return


def _of(
    opened: Store, stored: StoredObject, framing: Framing, start: int, limit: int | None
) -> Iterator[dict[str, Json]]:
    is_raw = kind_of(stored.key) == "lines"
    if is_raw and stored.key.endswith(".gz"):
        try:
            index = seeking.read_index(opened, stored.key)
        except NotFoundError:  # raw bytes in whole-file gzip
            pass
        else:
            for found in seeking.records(opened, stored.key, index, framing.frames, start, limit):
                yield {"offset": found.offset, **seeking.readable(found.key, found.value, framing.frames)}
            return
    file = ranged(opened, stored.key, stored.size)
    values = _raw(file, stored.key, framing) if is_raw else ({"value": each} for each in read.records(file, stored.key))
    is_whole = stored.records == stored.end - stored.start
    rows = ({"offset": stored.start + number if is_whole else None, **row} for number, row in enumerate(values))
    first = max(start - stored.start, 0) if is_whole else 0
    with Naming(stored):
        yield from islice(rows, first, None if limit is None else first + limit)


def _raw(file: Any, key: str, framing: Framing) -> Iterator[dict[str, Json]]:  # noqa: ANN401
    for some in framing.rows(iter(partial(unpacked(file, key).read, _PIECE), b"")):
        for row in some.to_pylist():
            yield seeking.readable(row.get("key"), row["value"], framing.frames)
