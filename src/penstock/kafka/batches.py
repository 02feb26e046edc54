"""The record batches of one fetched partition as `Records`: CRC, decompression, transactions, then the compiled walk.

Python's work is per batch and per response; per record everything is compiled. The rules are those of Kafka's record
batch, version 2; what is malformed is a `DataError` that names topic-partition and offset.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import cramjam
import google_crc32c
import numpy as np

from penstock.errors import DataError
from penstock.kafka import walk
from penstock.model import Records, Slices

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from penstock.model import Gather, TopicPartition

_CODEC, _TRANSACTIONAL, _CONTROL = 0x07, 0x10, 0x20
_CRC_FROM = 21  # of a batch: the CRC covers everything behind itself
_ABORT = 0
_ROWS = 1024
_LARGEST_BODY = 2**31 - 1
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one response holds of a partition. `table`: a row per whole batch (walk.COLUMNS).

    `aborted`: (producer id, first offset) of the aborted transactions that overlap it.
    """

    tp: TopicPartition
    data: bytes
    table: NDArray[np.int64]
    aborted: Sequence[tuple[int, int]] = ()

    @property
    def next_offset(self) -> int | None:
        """The offset behind its last whole batch, if it has one."""
        return int(self.table[-1, walk.LAST_OFFSET]) + 1 if len(self.table) else None


def index(tp: TopicPartition, data: bytes, position: int, aborted: Sequence[tuple[int, int]] = ()) -> Fetched:
    """Find the whole batches in a response; one that is cut off at its end is left for the next request.

    Raises:
        DataError: what follows is no record batch; `position` is where the partition was read from.
    """
    buffer = np.frombuffer(data, np.uint8)
    table = np.empty((_ROWS, walk.COLUMNS), np.int64)
    found, wrong, _ = walk.scan(buffer, 0, len(buffer), table)
    while wrong == walk.NO_ROOM:
        table = np.empty((8 * len(table), walk.COLUMNS), np.int64)
        found, wrong, _ = walk.scan(buffer, 0, len(buffer), table)
    table = table[:found]
    if wrong != walk.FINE and not found:
        raise DataError(tp, position, _MEANING[wrong])
    return Fetched(tp, data, table, aborted)


def decode(fetched: Fetched, start: int, end: int, gather: Gather, *, check_crc: bool = True) -> Records:
    """The visible records of a response with `start <= offset < end`.

    Raises:
        DataError: a batch is damaged.
    """
    table = fetched.table
    if check_crc:
        _check_crcs(fetched)
    wanted = _visible(fetched) & (table[:, walk.LAST_OFFSET] >= start) & (table[:, walk.BASE_OFFSET] < end)
    buffer, bodies = _bodies(fetched, table[wanted])
    room = int(np.minimum(bodies[:, walk.RECORDS], _most_records(bodies)).sum())
    offsets, timestamps = np.empty(room, np.int64), np.empty(room, np.int64)
    spans = np.empty((room, 6), np.int64)
    count, wrong, batch = walk.walk(buffer, bodies, start, end, offsets, timestamps, spans)
    if wrong != walk.FINE:
        raise DataError(fetched.tp, max(int(bodies[batch, walk.BASE_OFFSET]), start), _MEANING[wrong])
    spans = spans[:count]
    values, ids = _values(buffer, spans, gather)
    next_offset = fetched.next_offset
    return Records(
        fetched.tp,
        offsets[:count],
        timestamps[:count],
        values,
        start if next_offset is None else min(next_offset, end),
        ids,
        _slices(buffer, spans, walk.KEY_START) if gather.keys else None,
        _slices(buffer, spans, walk.HEADERS_START) if gather.headers else None,
    )


def _most_records(bodies: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many records a body can hold at most, whatever its header says."""
    return (bodies[:, walk.BODY_END] - bodies[:, walk.BODY_START]) // walk.SMALLEST_RECORD


def _check_crcs(fetched: Fetched) -> None:
    data = memoryview(fetched.data)
    for row in fetched.table:
        body = data[int(row[walk.POSITION]) + _CRC_FROM : int(row[walk.END])]
        if google_crc32c.value(bytes(body)) != int(row[walk.CRC]):
            reason = (
                "the record batch is damaged (its CRC does not match); check the broker's disk and network, "
                "and read it from another replica"
            )
            raise DataError(fetched.tp, int(row[walk.BASE_OFFSET]), reason)


def _visible(fetched: Fetched) -> NDArray[np.bool_]:
    """Which batches hold records for consumers: no control batches, nothing of aborted transactions."""
    attributes = fetched.table[:, walk.ATTRIBUTES]
    control = (attributes & _CONTROL) != 0
    visible: NDArray[np.bool_] = ~control
    if not fetched.aborted:
        return visible
    types = np.empty(len(fetched.table), np.int64)
    controls = np.flatnonzero(control)
    kinds = np.full(len(controls), walk.NO_MARKER, np.int64)
    walk.markers(np.frombuffer(fetched.data, np.uint8), fetched.table[controls], kinds)
    types[controls] = kinds
    waiting = sorted((first, producer) for producer, first in fetched.aborted)
    aborting: set[int] = set()
    for row, batch in enumerate(fetched.table):
        while waiting and waiting[0][0] <= batch[walk.LAST_OFFSET]:
            aborting.add(waiting.pop(0)[1])
        producer = int(batch[walk.PRODUCER_ID])
        if control[row]:
            if types[row] == _ABORT:
                aborting.discard(producer)
        elif attributes[row] & _TRANSACTIONAL and producer in aborting:
            visible[row] = False
    return visible


def _bodies(fetched: Fetched, table: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The buffer that the records of these batches are in, uncompressed, and the table that points into it."""
    if not (table[:, walk.ATTRIBUTES] & _CODEC).any():
        return np.frombuffer(fetched.data, np.uint8), table
    table, bodies, at = table.copy(), [], 0
    for row in table:
        body = _body(fetched, row)
        bodies.append(body)
        row[walk.BODY_START], row[walk.BODY_END] = at, at + len(body)
        at += len(body)
    return np.frombuffer(b"".join(bodies), np.uint8), table


def _body(fetched: Fetched, row: NDArray[np.int64]) -> bytes | memoryview:
    data = memoryview(fetched.data)[int(row[walk.BODY_START]) : int(row[walk.BODY_END])]
    codec = int(row[walk.ATTRIBUTES]) & _CODEC
    if codec == 0:
        return data
    offset = int(row[walk.BASE_OFFSET])
    if codec not in _DECOMPRESS:
        raise DataError(fetched.tp, offset, f"the record batch has the unknown compression `{codec}`")
    try:
        return _DECOMPRESS[codec](bytes(data))
    except (cramjam.DecompressionError, zlib.error, EOFError, ValueError, OSError) as error:
        reason = f"the record batch cannot be decompressed ({error}); produce its records again"
        raise DataError(fetched.tp, offset, reason) from error


def _snappy(data: bytes) -> bytes:
    """Raw, or in the frames of the Java producer: a header, then blocks behind their lengths."""
    if not data.startswith(_XERIAL):
        return bytes(cramjam.snappy.decompress_raw(data))
    at, blocks = _XERIAL_HEADER, []
    while at + 4 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        if size > len(data) - at - 4:
            msg = "a snappy block is longer than the batch"
            raise ValueError(msg)
        blocks.append(bytes(cramjam.snappy.decompress_raw(data[at + 4 : at + 4 + size])))
        at += 4 + size
    return b"".join(blocks)


_DECOMPRESS: dict[int, Callable[[bytes], bytes]] = {
    1: gzip.decompress,
    2: _snappy,
    3: lambda data: bytes(cramjam.lz4.decompress(data)),
    4: lambda data: bytes(cramjam.zstd.decompress(data)),
}


def _values(
    buffer: NDArray[np.uint8], spans: NDArray[np.int64], gather: Gather
) -> tuple[Slices, NDArray[np.int32] | None]:
    ids = np.empty(len(spans) if gather.strip else 0, np.int32)
    slices = _slices(buffer, spans, walk.VALUE_START, gather.strip, gather.separator, ids)
    return slices, ids if gather.strip else None


def _slices(
    buffer: NDArray[np.uint8],
    spans: NDArray[np.int64],
    column: int,
    strip: int = 0,
    separator: bytes = b"",
    ids: NDArray[np.int32] | None = None,
) -> Slices:
    """Byte strings of the spans, copied one behind the other."""
    ends = np.empty(len(spans) + 1, np.int64)
    ids = np.empty(0, np.int32) if ids is None else ids
    nulls = walk.lay(buffer, spans, column, strip, len(separator), ends, ids)
    out = np.empty(int(ends[-1]), np.uint8)
    if not walk.gather(buffer, spans, column, np.frombuffer(separator, np.uint8), ends, out):
        msg = "the record spans do not fit their buffer"
        raise ValueError(msg)
    return Slices(out, ends, spans[:, column + 1] >= 0 if nulls else None)


_BROKEN = "the record batch is malformed ({}); produce its records again, or skip them"
_MEANING = {
    walk.OLD_MAGIC: (
        "its message format is older than Kafka 0.11's; produce the records again, or have the broker convert the "
        "topic (message.format.version) and compact it"
    ),
    walk.NEW_MAGIC: "its message format is newer than this Penstock knows; upgrade Penstock",
    walk.BAD_LENGTH: _BROKEN.format("its length is impossible"),
    walk.BAD_OFFSETS: _BROKEN.format("its offsets do not follow the batch before"),
    walk.BAD_COUNT: _BROKEN.format("its record count is negative"),
    walk.BAD_BODY: _BROKEN.format("its body is outside of the response"),
    walk.BAD_VARINT: _BROKEN.format("a length does not end"),
    walk.BAD_RECORD: _BROKEN.format("a record is longer than the batch"),
    walk.BAD_RECORD_OFFSET: _BROKEN.format("a record's offset is outside of the batch"),
    walk.BAD_HEADERS: _BROKEN.format("a record's headers are cut off"),
    walk.TRAILING_BYTES: _BROKEN.format("bytes follow its last record"),
    walk.NO_ROOM: _BROKEN.format("it says more records than it can hold"),
}
