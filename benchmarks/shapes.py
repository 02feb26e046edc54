"""The generator: what records look like, and record batches of them as a producer would send them.

All contenders read topics that come from here. A template of a few thousand distinct batches is encoded once, by
aiokafka's builder, and sent again and again with new times, so that a topic of 60 million records takes a minute.
"""

from __future__ import annotations

import io
import json
import random
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import fastavro
import google_crc32c
from aiokafka.record.default_records import DefaultRecordBatchBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["avro", "json", "bytes"]
Content = Literal["words", "same", "random"]
Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "country", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "note", "type": "string"},
    ],
}
FIRST_MS = 1_717_200_000_000
COUNTRIES = tuple(f"{a}{b}" for a in "ABCDE" for b in "WXYZ")
_CODECS: dict[Codec, int] = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
_WORDS = (
    *("invoice", "paid", "late", "parcel", "returned", "customer", "asked", "twice"),
    *("about", "delivery", "in", "spring", "and", "then", "called", "again"),
)
_TEMPLATE_BYTES, _TEMPLATE_RECORDS, _BATCH_BYTES = 64 << 20, 50_000, 64 << 10
_AROUND_AVRO, _AROUND_JSON = 18, 60  # bytes of a value that are not `note`


@dataclass(frozen=True, slots=True)
class Shape:
    """What the records of a topic look like.

    `size`: bytes of a value, about. `labels`: distinct values of the field `country`. `skew`: 0 is even; with 0.9,
    partition 0 has nine tenths of all records. `headers`: how many a record has. `batch`: records of a batch at most;
    a batch is also full at 64 KiB of values, as with a producer's `batch.size=65536`. `per_hour`: records of a
    partition that make an hour of record time.
    """

    kind: Kind = "avro"
    size: int = 107
    partitions: int = 4
    skew: float = 0.0
    keys: bool = False
    headers: int = 0
    codec: Codec = "lz4"
    content: Content = "words"
    labels: int = 20
    batch: int = 1000
    per_hour: int = 50_000

    @property
    def per_batch(self) -> int:
        """Records of a full batch."""
        return max(1, min(self.batch, _BATCH_BYTES // max(self.size, 1)))

    @property
    def step_ms(self) -> int:
        """Between the times of two records of a partition."""
        return max(1, 3_600_000 // self.per_hour)

    @property
    def distinct_batches(self) -> int:
        """How many batches there are until values repeat."""
        records = min(_TEMPLATE_RECORDS, max(1, _TEMPLATE_BYTES // max(self.size, 1)))
        return max(1, records // self.per_batch)

    def shares(self, records: int) -> list[int]:
        """How many of `records` each partition gets."""
        first = records // self.partitions if not self.skew else int(records * self.skew)
        others = [(records - first) // max(self.partitions - 1, 1)] * (self.partitions - 1)
        return [first, *others] if self.skew else [records // self.partitions] * self.partitions


def label(number: int, labels: int) -> str:
    """The value of `country` of a partition's record."""
    code = number * 7 % labels
    return COUNTRIES[code] if labels <= len(COUNTRIES) else f"L{code:05d}"


def fields(shape: Shape, number: int) -> dict[str, object]:
    """The fields of a partition's record. The same number gives the same ones."""
    around = _AROUND_JSON if shape.kind == "json" else _AROUND_AVRO
    note = _filler(shape.content, max(shape.size - around, 1), number)
    return {"id": number, "country": label(number, shape.labels), "amount": number / 4, "note": note}


def value(shape: Shape, number: int, schema_id: int) -> bytes:
    """The value of a partition's record, as Kafka has it."""
    if shape.kind == "bytes":
        return _filler(shape.content, shape.size, number).encode()
    if shape.kind == "json":
        return json.dumps(fields(shape, number)).encode()
    body = io.BytesIO()
    body.write(struct.pack(">bI", 0, schema_id))
    fastavro.schemaless_writer(body, _PARSED, fields(shape, number))
    return body.getvalue()


def batches(shape: Shape, schema_id: int) -> Iterator[bytes]:
    """The template: full record batches whose times begin at 0. See `stamped`."""
    for index in range(shape.distinct_batches):
        yield batch(shape, schema_id, index * shape.per_batch, shape.per_batch)


def batch(shape: Shape, schema_id: int, first: int, count: int) -> bytes:
    """One record batch of `count` records whose values are those of the numbers from `first` on."""
    builder = DefaultRecordBatchBuilder(2, _CODECS[shape.codec], 0, -1, -1, -1, 1 << 30)
    for delta in range(count):
        number = first + delta
        key = f"key-{number % 1000}".encode() if shape.keys else None
        headers = [(f"h{i}", b"some header") for i in range(shape.headers)]
        builder.append(delta, delta * shape.step_ms, key, value(shape, number, schema_id), headers)
    return bytes(builder.build())


def stamped(template: bytes, first_ms: int) -> bytes:
    """A template batch with its times moved to begin at `first_ms`, and the checksum that fits."""
    moved = bytearray(template)
    first, last = struct.unpack_from(">qq", moved, 27)
    struct.pack_into(">qq", moved, 27, first + first_ms, last + first_ms)
    struct.pack_into(">I", moved, 17, google_crc32c.value(bytes(moved[21:])))
    return bytes(moved)


def _filler(content: Content, size: int, number: int) -> str:
    """Text of `size` characters: of words (shrinks to about a half), of one letter, or of hex digits at random."""
    if content == "same":
        return "x" * size
    if content == "random":
        return random.Random(number).randbytes((size + 1) // 2).hex()[:size]  # noqa: S311 - filler
    some = [f"{number:x}"]
    length, state = 0, number
    while length < size:
        state = (state * 1_103_515_245 + 12_345) & 0x7FFFFFFF
        some.append(_WORDS[state >> 8 & 15])
        length += len(some[-1]) + 1
    return " ".join(some)[:size]


_PARSED = fastavro.parse_schema(SCHEMA)
