"""Segments to records: the objects of a bundle side by side, overlapping bundles merged by offset."""

from __future__ import annotations

import heapq
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, TypeVar

import fastavro
import msgspec

from penstock.errors import PenstockError, StateError
from penstock.formats.damage import DAMAGED
from penstock.formats.packing import unpacked
from penstock.restore import parquet
from penstock.restore.download import fetched
from penstock.restore.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType

    from penstock.model import CommittedObject
    from penstock.restore.plan import Bundle, Carried, Segment
    from penstock.restore.records import HeaderPairs, PartReader, ValueReader
    from penstock.store.base import Store

T = TypeVar("T")
_HEADERS = msgspec.json.Decoder(dict[str, list[dict[str, str | None]]])


@dataclass(frozen=True, slots=True)
class Readers:
    """How the files of one recorded configuration are read. `keys`: None where none are stored.

    `separated`: views whose records are told apart by a separator, which their values may hold as well.
    """

    values: ValueReader
    keys: PartReader | None = None
    separated: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PlainValues:
    """Values whose records carry nothing else. `part`: how they are read."""

    part: PartReader
    carried: Carried = frozenset()

    def read(self, file: IO[bytes], key: str, topic: str) -> Iterator[Record]:
        """A record for each value."""
        return (Record(value) for value in self.part(file, key, topic))


@dataclass(frozen=True, slots=True)
class Opened:
    """A segment whose objects are all there and whole. Its temporary files are closed with it."""

    records: Iterator[Record]
    _files: ExitStack

    def __enter__(self) -> Opened:  # noqa: PYI034 - Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()


@dataclass(frozen=True, slots=True)
class Reading:
    """Opens segments. `readers`: those of a shape, by its number; asked by several threads."""

    store: Store
    readers: Callable[[int], Readers]

    def open(self, segment: Segment) -> Opened:
        """The wanted records of a segment, in order.

        Raises:
            PenstockError: an object is missing, damaged, or cannot be restored.
        """
        with ExitStack() as resources:
            views = [self._bundle(bundle, resources) for bundle in segment.bundles]
            merged = views[0] if len(views) == 1 else heapq.merge(*views, key=_offset)
            wanted = (each for each in merged if segment.span.holds(each.offset, each.timestamp))
            return Opened(wanted, resources.pop_all())

    def _bundle(self, bundle: Bundle, resources: ExitStack) -> Iterator[Record]:
        files = {each.view: resources.enter_context(fetched(self.store, each)) for each in bundle.objects}
        readers = self.readers(bundle.shape)
        for each in bundle.objects:
            if each.records != bundle.any.records:
                msg = f"state log: `{each.key}` and `{bundle.any.key}` are of the same records, but not as many"
                raise StateError(msg)
            if each.view in readers.separated:
                for _ in self._view(readers, each, files[each.view], bundle.tp.topic):
                    pass
                files[each.view].seek(0)
        views = {each.view: self._view(readers, each, files[each.view], bundle.tp.topic) for each in bundle.objects}
        return _side_by_side(bundle, views)

    def _view(self, readers: Readers, held: CommittedObject, file: IO[bytes], topic: str) -> Iterator[Any]:
        """What one object says of each record: a record, a key, or headers."""
        if held.view == "value":
            return _counted(readers.values.read(file, held.key, topic), held)
        if held.view == "headers":
            return _counted(_headers(file, held.key), held)
        if readers.keys is None:
            msg = f"`{held.key}` was written with keys, but the configuration in the state log stores none"
            raise PenstockError(msg)
        return _counted(readers.keys(file, held.key, topic), held)


def _offset(record: Record) -> int:
    return -1 if record.offset is None else record.offset


def _side_by_side(bundle: Bundle, views: Mapping[Any, Iterator[Any]]) -> Iterator[Record]:
    """Records with what keys, headers and the commit say of them; all views are of one length."""
    held = bundle.any
    timestamp = held.min_timestamp if held.min_timestamp == held.max_timestamp else None
    offset = held.start if bundle.is_contiguous else None
    for number in range(held.records):
        record: Record = next(views["value"]) if "value" in views else Record(None)
        yield Record(
            record.value,
            next(views["keys"]) if "keys" in views else record.key,
            next(views["headers"]) if "headers" in views else record.headers,
            timestamp if record.timestamp is None else record.timestamp,
            record.offset if offset is None else offset + number,
        )
    for view in views.values():
        next(view, None)


def _counted(items: Iterator[T], held: CommittedObject) -> Iterator[T]:
    """The items, as many as were committed.

    Raises:
        PenstockError: the file is damaged, or holds another number.
    """
    count = 0
    try:
        for item in items:
            count += 1
            if count > held.records:
                break
            yield item
    except DAMAGED as error:
        msg = f"`{held.key}` cannot be read after record {count} of {held.records}: {error}"
        raise PenstockError(msg) from error
    if count != held.records:
        many = "more" if count > held.records else str(count)
        msg = (
            f"`{held.key}` was committed with {held.records} records, but {many} can be told apart in it; a value "
            "holds the separator, so that it is not known where records end"
        )
        raise PenstockError(msg)


def _headers(file: IO[bytes], key: str) -> Iterator[HeaderPairs]:
    """The headers of each record; values that were no text are stored in base64, and stay so."""
    opened = unpacked(file, key)
    if key.endswith(".parquet"):
        yield from parquet.headers(file)
        return
    if ".avro" in key:
        for found in fastavro.reader(opened):
            yield _pairs(found)
        return
    for line in opened:
        yield _pairs(_HEADERS.decode(line)["headers"])


def _pairs(found: Any) -> HeaderPairs:  # noqa: ANN401 - a list of dictionaries
    return tuple((each["key"], None if each["value"] is None else each["value"].encode()) for each in found)
