"""Frozen values that every layer speaks in.

Ranges are half-open, `[start, end)`. Offsets, sizes and counts are plain integers; times are milliseconds since 1970
UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

Closing = Literal["rotate.schedule.interval.ms", "max.latency.ms", "flush"]
"""What closes files although the records do not ask for it."""

CutReason = Literal[
    "flush.size",
    "flush.bytes",
    "rotate.interval.ms",
    "partition.change",
    "schema.change",
    "partitioner.max.open.files",
    "rotate.schedule.interval.ms",
    "max.latency.ms",
    "flush",
]


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """Offsets `[start, end)` of a topic-partition that one cycle reads.

    `closing`: why what is still open at `end` is closed there; where it is None, that is dropped and read again later.
    `arrivals`: when its records were first seen in Kafka (see `penstock.arrivals`), where that matters.
    """

    tp: TopicPartition
    start: int
    end: int
    closing: Closing | None = None
    arrivals: tuple[tuple[int, int], ...] = ()

    @property
    def offsets(self) -> int:
        """How many offsets it spans; records may be fewer (compaction, transactions)."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Plan:
    """What one cycle reads, and the `now` that everything clock-like in it uses."""

    ranges: tuple[PlannedRange, ...]
    now_ms: int


@dataclass(frozen=True, slots=True)
class Slices:
    """N byte strings in one buffer: item i is `data[offsets[i]:offsets[i + 1]]`.

    `data`: uint8. `offsets`: int64, n + 1 entries, ascending. `valid`: bool per item, or None where none is null; a
    null item has length 0.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    valid: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> bytes | None:
        if self.valid is not None and not self.valid[row]:
            return None
        return self.data[self.offsets[row] : self.offsets[row + 1]].tobytes()


@dataclass(frozen=True, slots=True)
class Gather:
    """How the reader lays out record values while it copies them once.

    `strip`: bytes dropped from the front of each value; 5 for the Confluent wire prefix, whose schema id is then read
    into `Records.schema_ids`. `separator`: bytes appended to each non-null value. `keys`, `headers`,
    `timestamp_types`: whether those are wanted.
    """

    strip: Literal[0, 5] = 0
    separator: bytes = b""
    keys: bool = False
    headers: bool = False
    timestamp_types: bool = False


@dataclass(frozen=True, slots=True)
class Records:
    """Consecutive visible records of one topic-partition, in offset order.

    `offsets`, `timestamps`: int64 per record. `schema_ids`: int32 per record with `Gather.strip == 5`, else None; -1
    where the value is not Confluent wire (first byte not 0, or shorter than 5), -2 where it is null. `next_offset`:
    every offset below it has been seen, so the range can end although its last offsets hold no visible record. May be
    empty. `headers`: the raw bytes of each record's header area (count varint included). `timestamp_types`: int32 per
    record, 0 for the producer's time and 1 for the broker's. `transformed`: where the values are a transformation's.
    """

    tp: TopicPartition
    offsets: NDArray[np.int64]
    timestamps: NDArray[np.int64]
    values: Slices
    next_offset: int
    schema_ids: NDArray[np.int32] | None = None
    keys: Slices | None = None
    headers: Slices | None = None
    timestamp_types: NDArray[np.int32] | None = None
    transformed: Transformed | None = None

    def __len__(self) -> int:
        return len(self.offsets)


@dataclass(frozen=True, slots=True)
class Transformed:
    """What a transformation made of a batch.

    `dropped`: rows that it left out. `refused`: rows that it was not asked about, or failed for, and why. `originals`:
    the batch as Kafka has it, laid out by `gather`; its values are null where nobody wants them.
    """

    dropped: NDArray[np.bool_]
    refused: Mapping[int, Reason]
    originals: Records
    gather: Gather


@dataclass(frozen=True, slots=True)
class CommittedObject:
    """One data object as a commit names it. `start` and `end` are its first record's offset and its last one's plus 1.

    `size`: bytes as stored. `crc32c`: of the stored bytes, 8 hex digits. `schema`: the schema's fingerprint, or "".
    `view`: what of the records it holds.
    """

    key: str
    start: int
    end: int
    records: int
    size: int
    etag: str
    crc32c: str
    encoded_partition: str
    schema: str
    min_timestamp: int
    max_timestamp: int
    reason: CutReason
    view: Literal["value", "keys", "headers", "errors", "index"] = "value"


@dataclass(frozen=True, slots=True)
class Commit:
    """The new position of one topic-partition with the objects that hold its records up to there.

    `skipped`: records in no object of values. `hidden`: offsets without a record (compaction, transactions).
    """

    tp: TopicPartition
    position: int
    objects: tuple[CommittedObject, ...] = ()
    skipped: int = 0
    hidden: int = 0


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a topic-partition stopped before the end of its range, in one sentence for people.

    `passing`: an outage that may end by itself. Otherwise it stays until a record, the configuration or a foreign
    object is mended.
    """

    message: str
    passing: bool
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the job reports for one planned range.

    `looked_to`: offsets below it were read. `open_records`: records between the commit's position and `looked_to`
    that are in no object yet; `base_ms`: the first one's extracted time, where times count. `rejected`: a
    sentence for each of the first records that were left out because they cannot be written. `grown`: the type of
    values that a transformation needs from `looked_to` on, as the JSON of a Spark type.
    """

    commit: Commit
    looked_to: int
    open_records: int = 0
    base_ms: int | None = None
    fault: Fault | None = None
    rejected: tuple[str, ...] = ()
    grown: str = ""


Stage = Literal["VALUE_CONVERTER", "KEY_CONVERTER", "TRANSFORMATION", "TASK_PUT"]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a record is refused. `stage`: where, in Kafka Connect's words; `null`: a null value that is left out."""

    stage: Stage
    text: str
    null: bool = False


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that is not written, as Kafka has it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    reason: Reason
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
