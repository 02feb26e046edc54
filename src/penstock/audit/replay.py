"""What the recorded plans make of the records that are still in Kafka, against what was committed.

A plan that is run again gives the same objects (docs/delivery.md), so each commit is made once more from its first
offset on, without writing anything, and compared by name, offsets, counts and contents.
"""

from __future__ import annotations

import tempfile
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, cast

import google_crc32c

from penstock.audit import contents
from penstock.audit.fetching import fetched, file_format
from penstock.audit.findings import Finding, Note
from penstock.errors import UnavailableError
from penstock.kafka.reader import read
from penstock.kafka.troubles import RangeFault
from penstock.model import CommittedObject, PlannedRange, Records
from penstock.pipeline import build, error_key
from penstock.rangewriter import RangeWriter
from penstock.rejects import ErrorPolicy
from penstock.store.create import StoredObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.audit.history import Move
    from penstock.config import SinkConfig
    from penstock.kafka.settings import KafkaSettings
    from penstock.model import Receipt, TopicPartition
    from penstock.store.base import Store
    from penstock.store.upload import ObjectWriter

_IN_MEMORY = 1024 * 1024
_COMPARED = ("start", "end", "records", "encoded_partition", "schema", "min_timestamp", "max_timestamp", "view")


def _spool() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)


@dataclass(slots=True)
class _Writer:
    """Takes the place of an upload: remembers the checksum, and the bytes as long as they may be needed."""

    key: str
    expected: str | None
    kept: dict[str, IO[bytes]]
    _file: IO[bytes] = field(default_factory=_spool)
    _crc: int = 0
    _size: int = 0

    def write(self, buffer: bytes | memoryview) -> None:
        """Append bytes."""
        data = bytes(buffer)
        self._file.write(data)
        self._crc, self._size = google_crc32c.extend(self._crc, data), self._size + len(data)

    def close(self, metadata: Mapping[str, str], end: int | None = None) -> Future[StoredObject]:
        """Done at once."""
        del metadata, end
        crc = f"{self._crc:08x}"
        if crc == self.expected:
            self._file.close()
        else:
            self.kept[self.key] = self._file
        done: Future[StoredObject] = Future()
        done.set_result(StoredObject(self._size, "", crc))
        return done

    def abandon(self) -> None:
        """Nothing stays."""
        self._file.close()


def compare(config: SinkConfig, kafka: KafkaSettings, store: Store, moves: Sequence[Move]) -> Iterator[Finding | Note]:
    """What the moves, each of another topic-partition, hold other than Kafka does. `config`: the one they share.

    Raises:
        UnavailableError: Kafka or the Schema Registry does not answer.
    """
    pipeline, options = build(config, kafka, 0)
    by_tp = {move.tp: move for move in moves}
    replays = {tp: _Replay(move, config) for tp, move in by_tp.items()}
    with closing(pipeline.budget):
        writers = {
            tp: RangeWriter(each.planned, replace(pipeline, open_object=each.open, errors=each.errors), each.now_ms)
            for tp, each in replays.items()
        }
        for item in read([each.planned for each in replays.values()], options, pipeline.gather):
            if isinstance(item, Records):
                writers[item.tp].write(item)
            elif isinstance(item, RangeFault):
                writers[item.tp].stop(item.error, item.offset)
        receipts = {tp: writer.finish() for tp, writer in writers.items()}
    try:
        for tp, receipt in receipts.items():
            yield from _judge(by_tp[tp], receipt, replays[tp].kept, config, store)
    finally:
        for file in (each for replay in replays.values() for each in replay.kept.values()):
            file.close()


class _Replay:
    """One move made again."""

    def __init__(self, move: Move, config: SinkConfig) -> None:
        self.expected = {each.key: each.crc32c for each in move.objects}
        self.kept: dict[str, IO[bytes]] = {}
        self.now_ms = move.now_ms
        self._config = config
        arrivals = move.planned.arrivals if move.planned is not None else ()
        # What closed the last cut then is not looked for again: the range ends where that cut did.
        self.planned = PlannedRange(move.tp, move.start, move.end, "flush", arrivals)
        has_errors = any(each.view == "errors" for each in move.objects)
        self.errors = ErrorPolicy(tolerate=True, open_object=self._open_error if has_errors else None)

    def open(self, key: str, first_offset: int) -> ObjectWriter:
        """A writer for the range writer, which needs no more of one than `_Writer` has."""
        del first_offset
        return cast("ObjectWriter", _Writer(key, self.expected.get(key), self.kept))

    def _open_error(self, tp: TopicPartition, offset: int) -> tuple[str, ObjectWriter]:
        key = error_key(self._config, tp, offset)
        return key, self.open(key, offset)


def _judge(
    move: Move, receipt: Receipt, kept: Mapping[str, IO[bytes]], config: SinkConfig, store: Store
) -> Iterator[Finding | Note]:
    where = f"{move.tp}@{move.start}"
    fault, commit = receipt.fault, receipt.commit
    if fault is not None:
        if fault.passing:
            raise UnavailableError(fault.message)
        yield Finding("kafka.unreadable", where, f"cannot be made again: {fault.message}")
        return
    if commit.hidden > move.commit.hidden:
        fewer = commit.hidden - move.commit.hidden
        yield Note(where, f"Kafka compacted {fewer} of the offsets [{move.start}, {move.end}) away; not compared")
        return
    made = {each.key: each for each in commit.objects}
    committed = {each.key: each for each in move.objects}
    for key in sorted(made.keys() | committed.keys()):
        what = _difference(made.get(key), committed.get(key))
        if what is None and made[key].crc32c != committed[key].crc32c:
            what = _contents_differ(store, committed[key], kept[key], config)
        if what is not None:
            yield Finding("kafka.differs", key, f"{what} (entry {move.entry}, {where} to {move.end})")


def _difference(made: CommittedObject | None, committed: CommittedObject | None) -> str | None:
    """Between what Kafka's records make and what was committed under one key, but for the bytes."""
    if committed is None:
        return "the records in Kafka make this object, and no entry names it"
    if made is None:
        return "the records in Kafka make no such object"
    for name in _COMPARED:
        now, then = getattr(made, name), getattr(committed, name)
        if now != then:
            return f"{name} is `{now}` by the records in Kafka; `{then}` was committed"
    return None


def _contents_differ(store: Store, committed: CommittedObject, made: IO[bytes], config: SinkConfig) -> str | None:
    """Whether the records differ, and not only the build of the library that compressed them."""
    kind = file_format(config, committed)
    with fetched(store, committed.key) as there:
        if there is None:
            return None
        theirs = contents.digest(there.file, committed.key, kind)
    made.seek(0)
    ours = contents.digest(made, committed.key, kind)
    return None if ours == theirs else f"its records have digest {theirs}; those in Kafka have {ours}"
