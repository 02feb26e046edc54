"""`make fuzz`: mutated record batches against the compiled walk, which must give the records or one clear error.

Every buffer ends where unmapped memory begins, or begins where it ends, so that a read beyond it kills the process.
Checksums are made right after the mutation, so that the walk is reached. What is read, and what is refused, is compared
with a slow reader in plain Python, record by record. With NUMBA_BOUNDSCHECK=1 a wrong index raises IndexError as well.
"""

from __future__ import annotations

import ctypes
import io
import mmap
import os
import random
import struct
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import cramjam
import google_crc32c
import numpy as np

import record_batches as rb
from penstock.errors import DataError
from penstock.kafka.aborted import AbortedTransaction
from penstock.kafka.batches import Fetched, decode, header_pairs, tabulate
from penstock.kafka.decompress import Arena
from penstock.kafka.walk import END, POSITION
from penstock.model import Gather, PlannedRange, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.model import Records

TP = TopicPartition("t", 0)
RANGE = PlannedRange(TP, 0, 1 << 40)
ABORTED = (AbortedTransaction(9, 0),)
GATHERS = (Gather(keys=True, headers=True), Gather(strip=5, separator=b"\n", keys=True, headers=True), Gather())
EXTREMES = (0, 1, -1, -2, 127, 128, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63), 2**62)
CODECS = (rb.NONE, rb.GZIP, rb.SNAPPY, rb.LZ4, rb.ZSTD)
HEADER = 61
DECOMPRESS = {
    rb.NONE: bytes,
    rb.GZIP: cramjam.gzip.decompress,
    rb.SNAPPY: cramjam.snappy.decompress_raw,
    rb.LZ4: cramjam.lz4.decompress,
    rb.ZSTD: cramjam.zstd.decompress,
}
# (place, bytes) of each number in a batch's header that its checksum covers.
NUMBERS = ((21, 2), (23, 4), (27, 8), (35, 8), (43, 8), (51, 2), (53, 4), (57, 4))
_ROOM = 1 << 20


class Guarded:
    """Memory between two pages that nobody may touch; what is put there touches one of the two."""

    def __init__(self, room: int = _ROOM) -> None:
        page = mmap.PAGESIZE
        self._map = mmap.mmap(-1, room + 2 * page)
        whole = np.frombuffer(self._map, np.uint8)
        libc = ctypes.CDLL(None, use_errno=True)
        for start in (0, room + page):
            if libc.mprotect(ctypes.c_void_p(whole.ctypes.data + start), ctypes.c_size_t(page), 0) != 0:
                raise OSError(ctypes.get_errno(), "mprotect")
        self._space = whole[page : page + room]

    def put(self, data: bytes, *, at_end: bool = True) -> np.ndarray:
        """A read-only array of `data` whose end (or beginning) is a guard page's edge."""
        start = len(self._space) - len(data) if at_end else 0
        self._space[start : start + len(data)] = np.frombuffer(data, np.uint8)
        view = self._space[start : start + len(data)]
        view.flags.writeable = False
        return view


class GuardedArena:
    """The reader's arena; the bodies it holds are handed out in guarded memory."""

    def __init__(self) -> None:
        self._inner, self._memory = Arena(_ROOM), Guarded()

    @property
    def data(self) -> np.ndarray:
        return self._memory.put(self._inner.data.tobytes())

    @property
    def used(self) -> int:
        return self._inner.used

    def clear(self) -> None:
        self._inner.clear()

    def add(self, codec: int, body: np.ndarray) -> bool:
        return self._inner.add(codec, body)


@dataclass
class Tally:
    """How many responses ended in an error, and how many records were read and found right."""

    responses: int = 0
    errors: int = 0
    records: int = 0
    compared: int = 0

    def __str__(self) -> str:
        return (
            f"{self.responses} responses, {self.errors} clear errors, {self.records} records, {self.compared} compared"
        )


@dataclass(frozen=True)
class Reader:
    """Reads responses as the sink does, and checks whatever comes of it."""

    memory: Guarded
    arena: GuardedArena
    tally: Tally

    @classmethod
    def make(cls) -> Reader:
        return cls(Guarded(), GuardedArena(), Tally())

    def read(self, data: bytes, gather: Gather, *, at_end: bool = True, aborted: bool = False) -> None:
        """Anything but records or a DataError in one sentence is a failure."""
        self.tally.responses += 1
        buffer = self.memory.put(data, at_end=at_end)
        last = -1
        try:
            table, fault = tabulate(TP, buffer, 0, len(buffer), 0)
            fetched = Fetched(RANGE, buffer, table, ABORTED if aborted else ())
            found: list[Records] = []
            for records in decode(fetched, 0, gather, self.arena):
                last = check(records, last)
                found.append(records)
            if fault is not None:
                raise fault
        except DataError as error:
            self.tally.errors += clear(error)
        self.tally.records += sum(len(records) for records in found)
        if gather == GATHERS[0] and not aborted:
            self.compare(table, buffer, found)

    def compare(self, table: np.ndarray, buffer: np.ndarray, found: list[Records]) -> None:
        """Exactly the records of the batches before the first malformed one, by the slow reader's judgement."""
        expected = []
        for position, end in table[:, [POSITION, END]].tolist():
            batch = reference(buffer[position:end].tobytes())
            if batch is None:
                break
            expected += batch
        ours = [
            (int(records.offsets[n]), int(records.timestamps[n]), records.keys[n], records.values[n])
            for records in found
            for n in range(len(records))
        ]
        assert ours == [each for each in expected if 0 <= each[0] < RANGE.end]
        self.tally.compared += len(ours)


def clear(error: DataError) -> int:
    """Counts an error that is one sentence with its place."""
    assert error.offset >= 0
    assert "\n" not in str(error)
    assert str(error).startswith(f"t-0@{error.offset}: ")
    return 1


def check(records: Records, last: int) -> int:
    """What holds of all Records; returns the offset of the last."""
    offsets = records.offsets
    assert (np.diff(offsets) > 0).all()
    if len(offsets):
        assert offsets[0] > last
        assert offsets[0] >= 0
        assert offsets[-1] < records.next_offset <= RANGE.end
        last = int(offsets[-1])
    for column in filter(None, (records.values, records.keys, records.headers)):
        assert len(column) == len(records)
        assert (np.diff(column.offsets) >= 0).all()
        assert column.offsets[0] == 0
        assert column.offsets[-1] == len(column.data)
    if records.headers is not None:
        for n in range(len(records)):
            header_pairs(records.headers[n])
    return last


def reference(batch: bytes) -> list[tuple[int, int, bytes | None, bytes | None]] | None:
    """Offset, time, key and value of each visible record of one batch, read slowly; None where it is malformed."""
    if google_crc32c.value(batch[21:]) != struct.unpack_from(">I", batch, 17)[0]:
        return None
    base, attributes, last, first_time, newest = struct.unpack(">q13xhiqq", batch[:43])
    if attributes & rb.CONTROL:
        return []
    try:
        body = io.BytesIO(bytes(DECOMPRESS[attributes & 7](batch[HEADER:])))
        found, before = [], -1
        for _ in range(struct.unpack_from(">i", batch, 57)[0]):
            delta, time_delta, key, value = one_record(io.BytesIO(exactly(body, number(body), least=1)))
            if not before < delta <= last:
                return None
            before = delta
            moment = newest if attributes & rb.APPEND_TIME else wrapped(first_time + time_delta)
            found.append((base + delta, moment, key, value))
    except (cramjam.DecompressionError, LookupError, EOFError):
        return None
    return None if body.read(1) else found


def one_record(body: io.BytesIO) -> tuple[int, int, bytes | None, bytes | None]:
    exactly(body, 1)
    time_delta, delta = number(body), number(body)
    key, value = (optional(body) for _ in range(2))
    count = number(body)
    if count < 0:
        raise EOFError
    for _ in range(count):
        exactly(body, number(body))
        optional(body)
    if body.read(1):
        raise EOFError
    return delta, time_delta, key, value


def number(body: io.BytesIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = exactly(body, 1)[0]
        value |= (byte & 127) << shift
        if byte < 128:
            value &= (1 << 64) - 1
            return (value >> 1) ^ -(value & 1)
    raise EOFError


def optional(body: io.BytesIO) -> bytes | None:
    size = number(body)
    return None if size == -1 else exactly(body, size)


def exactly(body: io.BytesIO, size: int, least: int = 0) -> bytes:
    if size < least or size > len(body.getbuffer()) - body.tell():
        raise EOFError
    return body.read(size)


def wrapped(value: int) -> int:
    """As 64 bits hold it."""
    return (value + 2**63) % 2**64 - 2**63


@dataclass(frozen=True)
class Seed:
    """A valid batch, taken apart: its uncompressed records, and its header's numbers."""

    codec: int
    attributes: int
    producer: int
    base: int
    plain: bytes
    count: int
    last: int

    def sealed(self) -> bytes:
        body = rb.COMPRESS[self.codec](self.plain)
        recs = [rb.Rec(self.base), rb.Rec(self.base + self.last)]
        return rb.batch(
            recs,
            codec=self.codec,
            attributes=self.attributes,
            producer_id=self.producer,
            body=body,
            count=self.count,
        )


def seeds() -> list[Seed]:
    """Batches of every codec and kind, with null and empty keys, values and headers."""
    small = [rb.Rec(n, value=b"\x00\x00\x00\x00\x05v%d" % n, key=b"k", headers=((b"h", None),)) for n in range(5)]
    mixed = [
        rb.Rec(0, value=None),
        rb.Rec(2, value=b"", key=b""),
        rb.Rec(3, value=b"x" * 300, headers=((b"", b""), (b"name", b"value" * 30))),
        rb.Rec(9, value=b"{}", timestamp=1_700_000_000_000 - 5),
    ]
    kinds = ((0, -1), (rb.APPEND_TIME, -1), (rb.TRANSACTIONAL, 9), (rb.TRANSACTIONAL, 8))
    made = [
        Seed(codec, attributes, producer, 0, plain(recs), len(recs), recs[-1].offset)
        for codec in CODECS
        for attributes, producer in kinds
        for recs in (small, mixed)
    ]
    control = [rb.Rec(0, key=struct.pack(">hh", 0, kind), value=struct.pack(">hi", 0, 0)) for kind in (0, 1)]
    flags = rb.TRANSACTIONAL | rb.CONTROL
    made += [Seed(rb.NONE, flags, 9, 0, plain([each]), 1, 0) for each in control]
    return [*made, Seed(rb.NONE, 0, -1, 0, b"", 0, 4)]


def plain(recs: list[rb.Rec]) -> bytes:
    return b"".join(rb.record(each, 0, recs[0].timestamp) for each in recs)


def mutated(seed: Seed, pick: random.Random) -> bytes:
    """One batch with a few things wrong, most often sealed so that only the walk can notice."""
    if pick.random() < 0.8:
        seed = replace(seed, plain=_bent(seed.plain, pick))
    if pick.random() < 0.3:
        seed = replace(seed, count=pick.choice((seed.count + 1, seed.count - 1, pick.choice(EXTREMES) % 2**31)))
    data = bytearray(seed.sealed())
    if pick.random() < 0.3:
        at, size = pick.choice(NUMBERS)
        data[at : at + size] = (pick.choice(EXTREMES) % 256**size).to_bytes(size, "big")
    if pick.random() < 0.1:
        data[0:8] = (pick.choice(EXTREMES) % 2**64).to_bytes(8, "big")
    if pick.random() < 0.15:
        data[HEADER:] = _bent(bytes(data[HEADER:]), pick)  # the compressed bytes themselves
    data = bytearray(rb.resealed(data))
    if pick.random() < 0.05:
        data[pick.randrange(len(data))] ^= 1 << pick.randrange(8)
    return bytes(data)


def _bent(body: bytes, pick: random.Random) -> bytes:
    """Bytes changed, cut out, doubled, cut off, or a number put in that promises too much."""
    data = bytearray(body)
    for _ in range(pick.randrange(1, 4)):
        at = pick.randrange(len(data) + 1)
        match pick.randrange(6):
            case 0 | 1 if data:
                data[at % len(data)] = pick.randrange(pick.choice((24, 256)))
            case 2:
                del data[at : at + pick.randrange(1, 9)]
            case 3:
                data[at:at] = data[at : at + pick.randrange(1, 40)]
            case 4:
                data[at : at + pick.randrange(3)] = rb.varint(pick.choice(EXTREMES) % 2**62)
            case _ if pick.random() < 0.3:
                del data[at:]
    return bytes(data)


def fuzz(count: int, seed: int) -> Tally:
    """Read `count` responses of one to three mutated batches each."""
    pick, reader, corpus = random.Random(seed), Reader.make(), seeds()
    for _ in range(count):
        batches, base = [], 0
        for _ in range(pick.choice((1, 1, 1, 2, 3))):
            batches.append(mutated(replace(pick.choice(corpus), base=base), pick))
            base += 20
        data = b"".join(batches)
        if pick.random() < 0.1:
            data = data[: pick.randrange(len(data))]
        reader.read(data, pick.choice(GATHERS), at_end=pick.random() < 0.8, aborted=pick.random() < 0.3)
    return reader.tally


def truncations() -> Iterator[bytes]:
    """Every valid batch cut off behind each of its bytes: as it arrives, and with length and checksum made to fit."""
    for seed in seeds():
        whole = seed.sealed()
        for size in range(len(whole)):
            yield whole[:size]
            if size >= HEADER:
                yield rb.resealed(whole[:size])
        for size in range(len(seed.plain)):
            yield replace(seed, plain=seed.plain[:size]).sealed()


def truncated() -> Tally:
    """Read every truncation, from both edges."""
    reader = Reader.make()
    for data in truncations():
        for at_end in (True, False):
            reader.read(data, GATHERS[0], at_end=at_end, aborted=not at_end)
    return reader.tally


def main(count: int, seed: int) -> None:
    """Both, with a line each; the seed is told, so that a failure can be had again."""
    checked = "with bounds checks" if os.environ.get("NUMBA_BOUNDSCHECK") == "1" else "as shipped"
    for name, run in (("truncated", truncated), ("mutated", lambda: fuzz(count, seed))):
        began = time.monotonic()
        print(f"fuzz: {name} batches, {checked}, seed {seed}: {run()}, {time.monotonic() - began:.0f} s", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32))
