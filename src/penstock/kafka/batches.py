"""Record batches of a fetch response to Records: checked, decompressed, filtered, laid out. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import google_crc32c
import numpy as np

from penstock.errors import DataError
from penstock.kafka import walk
from penstock.kafka.aborted import CONTROL, aborted_batches
from penstock.kafka.decompress import BodyError
from penstock.kafka.walk import ATTRIBUTES, BASE_OFFSET, BODY_END, BODY_START, CRC, END, LAST_OFFSET, POSITION, RECORDS
from penstock.model import Records, Slices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from penstock.kafka.aborted import AbortedTransaction
    from penstock.kafka.decompress import Arena
    from penstock.model import Gather, PlannedRange, TopicPartition

    Bytes = NDArray[np.uint8]
    Ints = NDArray[np.int64]

_CODEC = 7  # attribute bits
_CRC_FROM = 21  # the checksum covers a batch from its attributes on
_ENOUGH = 2 << 20  # decompressed bytes that make one Records

_LOOK = "look at it with kafka-dump-log on the broker, and repair the replica or delete the records up to there"
_WRONG = {
    walk.OLD_MAGIC: "written by a producer older than Kafka 0.11 (message format 0 or 1), which is not read; "
    "write these records anew with a newer producer, or start behind them",
    walk.NEW_MAGIC: "a record batch of an unknown version (only version 2 is known); a newer Penstock may know it",
    walk.BAD_LENGTH: f"a record batch with an impossible length; {_LOOK}",
    walk.BAD_OFFSETS: f"a record batch whose offsets do not ascend; {_LOOK}",
    walk.BAD_COUNT: f"a record batch with a negative number of records; {_LOOK}",
    walk.BAD_RECORD: f"a malformed record batch (a length does not fit its record); {_LOOK}",
    walk.BAD_RECORD_OFFSET: f"a malformed record batch (offsets of its records do not ascend); {_LOOK}",
    walk.BAD_HEADERS: f"a malformed record batch (a record's headers do not fit it); {_LOOK}",
    walk.TRAILING_BYTES: f"a malformed record batch (bytes behind its last record); {_LOOK}",
}


@dataclass(frozen=True, slots=True)
class Fetched:
    """The batches of one topic-partition in one response. `data`: the whole response; `table`: see walk.scan."""

    range: PlannedRange
    data: Bytes
    table: Ints
    aborted: tuple[AbortedTransaction, ...] = ()


def tabulate(tp: TopicPartition, data: Bytes, start: int, end: int, position: int) -> tuple[Ints, DataError | None]:
    """The table of the batches in `data[start:end]`, and what is wrong behind them, if anything is.

    `position`: the offset that was asked for, to name where the fault is when nothing came before it.
    """
    room = np.empty((max(end - start, 0) // walk.HEADER_SIZE, walk.COLUMNS), np.int64)
    found, wrong, at = walk.scan(data, start, end, room)
    table = room[:found].copy()
    if wrong == walk.FINE:
        return table, None
    claimed = int.from_bytes(data[at : at + 8].tobytes(), "big", signed=True)
    behind = int(table[-1, LAST_OFFSET]) + 1 if found else 0
    place = max(claimed if wrong in {walk.OLD_MAGIC, walk.NEW_MAGIC} else behind, position)
    return table, DataError(tp, place, _WRONG[wrong])


def decode(fetched: Fetched, start: int, gather: Gather, arena: Arena, *, check_crcs: bool = True) -> Iterator[Records]:
    """The visible records of a response from `start` on, and how far they reach, in one Records or a few.

    Raises:
        DataError: behind everything that is sound before it.
    """
    tp, end = fetched.range.tp, fetched.range.end
    table = fetched.table[fetched.table[:, BASE_OFFSET] < end]
    hidden, fault = _hidden(fetched, table, check_crcs)
    sound = table[: len(hidden)]
    position = start
    for data, rows in _bodies(tp, start, fetched.data, sound[~hidden & (sound[:, LAST_OFFSET] >= start)], arena):
        for records in _records(fetched.range, start, data, rows, gather):
            position = records.next_offset
            yield records
    reached = min(int(sound[-1, LAST_OFFSET]) + 1, end) if len(sound) else start
    if reached > position:
        yield nothing(fetched.range, reached, gather)
    if fault:
        raise DataError(tp, _place(table[len(sound)], start), fault)


def nothing(planned: PlannedRange, reached: int, gather: Gather) -> Records:
    """No records, and that a range has been seen up to `reached`."""
    no_bytes, no_batches = np.frombuffer(b"", np.uint8), np.empty((0, walk.COLUMNS), np.int64)
    (records,) = _records(planned, reached, no_bytes, no_batches, gather, reached)
    return records


def _hidden(fetched: Fetched, table: Ints, check_crcs: bool) -> tuple[NDArray[np.bool_], str]:
    """Whether each batch holds no visible record, for the batches before the first bad one; and why that is bad."""
    sound, fault = len(table), ""
    if check_crcs:
        sound = _checksums(fetched.data, table)
        if sound < len(table):
            fault = f"a record batch with a wrong checksum (damaged on a disk or on the way); {_LOOK}"
    aborted, judged = aborted_batches(fetched.data, table[:sound], fetched.aborted)
    if judged < sound:
        fault = f"a malformed control batch; {_LOOK}"
    return (aborted | (table[:sound, ATTRIBUTES] & CONTROL != 0))[:judged], fault


def _checksums(data: Bytes, table: Ints) -> int:
    """How many batches have the right CRC32C, up to the first that has not."""
    for row, (at, end, crc) in enumerate(table[:, [POSITION, END, CRC]].tolist()):
        if google_crc32c.value(data[at + _CRC_FROM : end]) != crc:
            return row
    return len(table)


def _bodies(tp: TopicPartition, start: int, data: Bytes, table: Ints, arena: Arena) -> Iterator[tuple[Bytes, Ints]]:
    """Consecutive batches whose bodies lie uncompressed in one buffer, which is reused for the next ones."""
    codecs = (table[:, ATTRIBUTES] & _CODEC).tolist()
    if not any(codecs):
        if len(table):
            yield data, table
        return
    first = row = 0
    arena.clear()
    try:
        for row, (begin, end) in enumerate(table[:, [BODY_START, BODY_END]].tolist()):
            body = data[begin:end]
            if arena.used >= _ENOUGH or not _place_body(arena, codecs[row], body, table[row]):
                yield arena.data, table[first:row]
                arena.clear()
                first = row
                _place_body(arena, codecs[row], body, table[row])
    except BodyError as error:
        yield arena.data, table[first:row]
        msg = f"a record batch that {error}; {_LOOK}"
        raise DataError(tp, _place(table[row], start), msg) from None
    yield arena.data, table[first:]


def _place_body(arena: Arena, codec: int, body: Bytes, row: Ints) -> bool:
    """Put a body into the arena and its new place into the batch's row; False if there is no room for it."""
    before = arena.used
    if not arena.add(codec, body):
        return False
    row[BODY_START], row[BODY_END] = before, arena.used
    return True


def _records(
    planned: PlannedRange, start: int, data: Bytes, table: Ints, gather: Gather, reached: int = -1
) -> Iterator[Records]:
    """The records of batches whose bodies lie in `data`; then the DataError of a malformed one."""
    room = int(np.minimum(table[:, RECORDS], (table[:, BODY_END] - table[:, BODY_START]) // walk.SMALLEST_RECORD).sum())
    offsets, timestamps = np.empty(room, np.int64), np.empty(room, np.int64)
    spans = np.empty((room, 6), np.int64)
    count, wrong, batch = walk.walk(data, table, start, planned.end, offsets, timestamps, spans)
    if batch > 0:
        reached = min(int(table[batch - 1, LAST_OFFSET]) + 1, planned.end)
    if reached >= 0:
        values, ids = _slices(data, spans[:count], walk.VALUE_START, gather.separator, gather.strip)
        yield Records(
            tp=planned.tp,
            offsets=offsets[:count],
            timestamps=timestamps[:count],
            values=values,
            next_offset=reached,
            schema_ids=ids if gather.strip else None,
            keys=_slices(data, spans[:count], walk.KEY_START)[0] if gather.keys else None,
            headers=_slices(data, spans[:count], walk.HEADERS_START)[0] if gather.headers else None,
            timestamp_types=_timestamp_types(table, offsets[:count]) if gather.timestamp_types else None,
        )
    if wrong != walk.FINE:
        raise DataError(planned.tp, _place(table[batch], start), _WRONG[wrong])


def _timestamp_types(table: Ints, offsets: Ints) -> NDArray[np.int32]:
    """Whose time each record has, which is an attribute of its batch."""
    batches = np.searchsorted(table[:, LAST_OFFSET], offsets)
    types: NDArray[np.int32] = (table[batches, ATTRIBUTES] & walk.APPEND_TIME != 0).astype(np.int32)
    return types


def _slices(
    data: Bytes, spans: Ints, column: int, separator: bytes = b"", strip: int = 0
) -> tuple[Slices, NDArray[np.int32]]:
    """The byte strings of two columns of a span table, copied side by side, and the schema ids of values."""
    ends = np.empty(len(spans) + 1, np.int64)
    ids = np.empty(len(spans) if strip else 0, np.int32)
    nulls = walk.lay(data, spans, column, strip, len(separator), ends, ids)
    out = np.empty(int(ends[-1]), np.uint8)
    if not walk.gather(data, spans, column, np.frombuffer(separator, np.uint8), ends, out):
        msg = "spans outside their buffer"
        raise AssertionError(msg)
    return Slices(out, ends, spans[:, column + 1] >= 0 if nulls else None), ids


def relaid(items: Slices, gather: Gather) -> tuple[Slices, NDArray[np.int32] | None]:
    """Byte strings laid out as `gather` says of values, and their schema ids where it strips."""
    spans = np.zeros((len(items), 6), dtype=np.int64)
    spans[:, walk.VALUE_START] = items.offsets[:-1]
    spans[:, walk.VALUE_SIZE] = np.diff(items.offsets)
    if items.valid is not None:
        spans[~items.valid, walk.VALUE_SIZE] = -1
    laid, ids = _slices(items.data, spans, walk.VALUE_START, gather.separator, gather.strip)
    return laid, ids if gather.strip else None


def header_pairs(area: bytes) -> list[tuple[str, bytes | None]]:
    """The headers in a record's header area, which the walk has checked."""
    count, at = _varint(area, 0)
    pairs: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        size, at = _varint(area, at)
        name, at = area[at : at + size].decode("utf-8", "replace"), at + size
        size, at = _varint(area, at)
        pairs.append((name, None if size < 0 else area[at : at + size]))
        at += max(size, 0)
    return pairs


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the continuation bit
            break
        shift += 7
    return (value >> 1) ^ -(value & 1), at


def _place(row: Ints, start: int) -> int:
    """Where the reader stands when it cannot read this batch."""
    return max(int(row[BASE_OFFSET]), start)
