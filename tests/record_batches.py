"""Record batches made by hand for the reader's tests, so that every field can be what no producer would write."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import cramjam
import google_crc32c

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
APPEND_TIME, TRANSACTIONAL, CONTROL = 8, 16, 32
ABORT, COMMIT = 0, 1


@dataclass(frozen=True)
class Rec:
    offset: int
    value: bytes | None = b"value"
    key: bytes | None = None
    timestamp: int = 1_700_000_000_000
    headers: tuple[tuple[bytes, bytes | None], ...] = ()


def varint(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def header_area(headers: tuple[tuple[bytes, bytes | None], ...]) -> bytes:
    return varint(len(headers)) + b"".join(sized(name) + sized(value) for name, value in headers)


def record(rec: Rec, base_offset: int, base_timestamp: int) -> bytes:
    body = b"\x00" + varint(rec.timestamp - base_timestamp) + varint(rec.offset - base_offset)
    return sized(body + sized(rec.key) + sized(rec.value) + header_area(rec.headers))


def xerial(body: bytes, block: int = 100) -> bytes:
    blocks = [bytes(cramjam.snappy.compress_raw(body[at : at + block])) for at in range(0, len(body), block)]
    return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(b)) + b for b in blocks)


COMPRESS = {
    NONE: lambda body: body,
    GZIP: lambda body: bytes(cramjam.gzip.compress(body)),
    SNAPPY: lambda body: bytes(cramjam.snappy.compress_raw(body)),
    LZ4: lambda body: bytes(cramjam.lz4.compress(body)),
    ZSTD: lambda body: bytes(cramjam.zstd.compress(body)),
}


def batch(
    records: list[Rec],
    *,
    codec: int = NONE,
    attributes: int = 0,
    producer_id: int = -1,
    base_offset: int | None = None,
    last_offset: int | None = None,
    max_timestamp: int | None = None,
    body: bytes | None = None,
    count: int | None = None,
) -> bytes:
    """One batch; `body`: used as it is instead of the compressed records."""
    base = records[0].offset if base_offset is None else base_offset
    last = records[-1].offset if last_offset is None else last_offset
    first_time = records[0].timestamp if records else 0
    plain = b"".join(record(each, base, first_time) for each in records)
    newest = max((each.timestamp for each in records), default=0) if max_timestamp is None else max_timestamp
    covered = (
        struct.pack(">hiqqqhi", attributes | codec, last - base, first_time, newest, producer_id, 0, -1)
        + struct.pack(">i", len(records) if count is None else count)
        + (COMPRESS[codec](plain) if body is None else body)
    )
    head = struct.pack(">qiib", base, 9 + len(covered), 0, 2)
    return head + struct.pack(">I", google_crc32c.value(covered)) + covered


def marker(offset: int, producer_id: int, kind: int) -> bytes:
    end = Rec(offset, key=struct.pack(">hh", 0, kind), value=struct.pack(">hi", 0, 0))
    return batch([end], attributes=TRANSACTIONAL | CONTROL, producer_id=producer_id)


def resealed(data: bytes | bytearray) -> bytes:
    """One batch with the length and the checksum that fit its bytes."""
    fixed = bytearray(data)
    fixed[8:12] = struct.pack(">i", len(fixed) - 12)
    fixed[17:21] = struct.pack(">I", google_crc32c.value(bytes(fixed[21:])))
    return bytes(fixed)
