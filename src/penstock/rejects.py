"""Records that cannot be written, under `errors.tolerance=all`: counted, kept as error objects, sent to a topic.

An error object is one more file of the cut that its records fall into, so it is committed once, like all others. The
dead-letter topic gets its records before the commit: after a crash in between it may get them again.
"""

from __future__ import annotations

import base64
import pickle
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import msgspec

from penstock.converters.base import SCHEMALESS
from penstock.kafka.batches import header_pairs
from penstock.model import Rejected
from penstock.openfile import Extent, committed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Future

    from penstock.model import CommittedObject, CutReason, Gather, Reason, Records, TopicPartition
    from penstock.spool import Budget, Spool
    from penstock.store.upload import ObjectWriter, StoredObject

_PIECE = 500
MOST_TOLD = 10


class DeadLetters(Protocol):
    """Sends records to the dead-letter topic."""

    def send(self, records: Iterator[Rejected]) -> None:
        """All of them are with the brokers when this returns. Raises `KafkaUnavailable`."""
        ...


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """What becomes of records that cannot be written.

    `tolerate`: they are left out; otherwise the first one stops its topic-partition. `open_object`: (topic-partition,
    offset) -> the key of an error object and a writer for it, or None without error objects. `report_nulls`: null
    values that are left out are dead letters too.
    """

    tolerate: bool = False
    open_object: Callable[[TopicPartition, int], tuple[str, ObjectWriter]] | None = None
    dead_letters: DeadLetters | None = None
    report_nulls: bool = False


@dataclass(frozen=True, slots=True)
class ClosedRejects:
    """What a cut holds of them. `letters`: for the dead-letter topic, read once."""

    count: int = 0
    files: tuple[tuple[RejectFile, Future[StoredObject]], ...] = ()
    letters: Spool | None = None
    pieces: int = 0


@dataclass(slots=True)
class RejectFile:
    """An open error object: a JSON object on a line for each record."""

    key: str
    writer: ObjectWriter
    extent: Extent

    def write(self, rejected: Rejected) -> None:
        """Append a record."""
        extent = self.extent
        extent.end, extent.records = rejected.offset + 1, extent.records + 1
        extent.min_timestamp = min(extent.min_timestamp, rejected.timestamp)
        extent.max_timestamp = max(extent.max_timestamp, rejected.timestamp)
        document = {
            "topic": rejected.topic,
            "partition": rejected.partition,
            "offset": rejected.offset,
            "timestamp": rejected.timestamp,
            "stage": rejected.reason.stage,
            "reason": rejected.reason.text,
            "key": _base64(rejected.key),
            "value": _base64(rejected.value),
            "headers": [{"key": name, "value": _base64(value)} for name, value in rejected.headers],
        }
        self.writer.write(msgspec.json.encode(document) + b"\n")

    def close(self) -> Future[StoredObject]:
        """Let the upload finish."""
        return self.writer.close({"records": str(self.extent.records)})

    def committed(self, stored: StoredObject, reason: CutReason) -> CommittedObject:
        """This file as a commit names it."""
        return replace(committed(self.key, "", self.extent, SCHEMALESS, stored, reason), view="errors")


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode("ascii")


@dataclass(slots=True)
class Rejects:
    """The refused records of one range, from cut to cut."""

    policy: ErrorPolicy
    budget: Budget
    told: list[str] = field(default_factory=list)
    _count: int = 0
    _file: RejectFile | None = None
    _letters: Spool | None = None
    _pieces: int = 0

    @property
    def count(self) -> int:
        """How many there are since the last cut."""
        return self._count

    def add(self, records: Records, reasons: Mapping[int, Reason], gather: Gather) -> None:
        """Rows of a batch that are not written, in row order."""
        self._count += len(reasons)
        found = [_rejected(records, row, reason, gather) for row, reason in reasons.items()]
        for each in found:
            if not each.reason.null:
                self._keep(records.tp, each)
        letters = [each for each in found if not each.reason.null or self.policy.report_nulls]
        if self.policy.dead_letters is None or not letters:
            return
        if self._letters is None:
            self._letters = self.budget.spool()
        for start in range(0, len(letters), _PIECE):
            pickle.dump(letters[start : start + _PIECE], self._letters, protocol=5)
            self._pieces += 1

    def _keep(self, tp: TopicPartition, rejected: Rejected) -> None:
        if len(self.told) < MOST_TOLD:
            self.told.append(f"{tp}@{rejected.offset}: {rejected.reason.text}")
        if self.policy.open_object is None:
            return
        if self._file is None:
            key, writer = self.policy.open_object(tp, rejected.offset)
            self._file = RejectFile(key, writer, Extent(rejected.offset))
        self._file.write(rejected)

    def close(self) -> ClosedRejects:
        """What there is since the last cut becomes part of this one."""
        files = () if self._file is None else ((self._file, self._file.close()),)
        closed = ClosedRejects(self._count, files, self._letters, self._pieces)
        self._count, self._file, self._letters, self._pieces = 0, None, None, 0
        return closed

    def abandon(self) -> None:
        """What no cut closed is read again later: nothing of it stays."""
        if self._file is not None:
            self._file.writer.abandon()
        if self._letters is not None:
            self._letters.clear()

    def send(self, closed: ClosedRejects) -> None:
        """Give a cut's dead letters to the brokers. Raises `KafkaUnavailable`."""
        if closed.letters is not None and self.policy.dead_letters is not None:
            self.policy.dead_letters.send(_read(closed.letters, closed.pieces))


def _read(letters: Spool, pieces: int) -> Iterator[Rejected]:
    reader = letters.reader()
    for _ in range(pieces):
        yield from pickle.load(reader)  # noqa: S301 - written above, in a file without a name


def _rejected(records: Records, row: int, reason: Reason, gather: Gather) -> Rejected:
    """A row as Kafka has it: what the reader took off the value, or put behind it, is undone."""
    if (made := records.transformed) is not None:
        records, gather = made.originals, made.gather
    value = records.values[row]
    if value is not None:
        value = value.removesuffix(gather.separator) if gather.separator else value
        if records.schema_ids is not None and records.schema_ids[row] >= 0:
            value = b"\x00" + int(records.schema_ids[row]).to_bytes(4, "big") + value
    key = None if records.keys is None else records.keys[row]
    headers = () if records.headers is None else tuple(header_pairs(records.headers[row] or b""))
    offset, timestamp = int(records.offsets[row]), int(records.timestamps[row])
    return Rejected(records.tp.topic, records.tp.partition, offset, timestamp, reason, key, value, headers)
