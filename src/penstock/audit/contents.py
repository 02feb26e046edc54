"""One object's bytes against what was committed of it: size, checksum, and how many records they hold.

Nothing is decoded: Avro blocks and Parquet footers say how many records there are, lines are counted.
"""

from __future__ import annotations

import hashlib
from typing import IO, TYPE_CHECKING

import fastavro
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.audit.findings import Finding
from penstock.formats.blockgzip import Index
from penstock.formats.damage import DAMAGED
from penstock.formats.packing import unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from penstock.model import CommittedObject
    from penstock.store.local import Copy

_PIECE = 1024 * 1024


def check(copy: Copy, committed: CommittedObject, file_format: str, separator: bytes) -> list[Finding]:
    """What is wrong with an object. `file_format`: `format.class` of its view; `separator`: behind each bytes record.

    Records are counted only in the bytes that were committed: others are not worth another finding.
    """
    if copy.size != committed.size:
        return [Finding("object.size", committed.key, f"has {copy.size} bytes; {committed.size} were committed")]
    if copy.crc32c != committed.crc32c:
        what = f"has CRC-32C {copy.crc32c}; {committed.crc32c} was committed: its contents were changed"
        return [Finding("object.checksum", committed.key, what)]
    try:
        counted = _count(copy.file, committed.key, file_format, separator)
    except DAMAGED as error:
        what = f"is as it was written, but cannot be read as {file_format}: {error or type(error).__name__}"
        return [Finding("object.records", committed.key, what)]
    if counted is None or committed.records in counted:
        return []
    most = "" if len(counted) == 1 else "at most "
    what = f"holds {most}{counted.stop - 1} records, but its entry says {committed.records}"
    return [Finding("object.records", committed.key, what)]


def digest(file: IO[bytes], key: str, file_format: str) -> str:
    """Of the records alone: the same where another build of a library compressed the same records."""
    hasher = hashlib.blake2b(digest_size=16)
    file.seek(0)
    if file_format == "avro":
        for block in fastavro.block_reader(unpacked(file, key)):
            hasher.update(block.bytes_.getvalue())  # type: ignore[attr-defined]  # not in its types
    elif file_format == "parquet":
        for batch in pq.ParquetFile(file).iter_batches():
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            hasher.update(sink.getvalue())
    else:
        for piece in _pieces(unpacked(file, key)):
            hasher.update(piece)
    return hasher.hexdigest()


def _count(file: IO[bytes], key: str, file_format: str, separator: bytes) -> range | None:
    """How many records there may be; None where the format does not tell."""
    counter = _COUNTERS.get(file_format)
    if counter is None:
        return None
    file.seek(0)
    return counter(unpacked(file, key), separator)


def _avro(file: IO[bytes], _separator: bytes) -> range:
    count = sum(block.num_records for block in fastavro.block_reader(file))
    return range(count, count + 1)


def _parquet(file: IO[bytes], _separator: bytes) -> range:
    count = pq.ParquetFile(file).metadata.num_rows
    return range(count, count + 1)


def _json(file: IO[bytes], _separator: bytes) -> range:
    count = sum(piece.count(b"\n") for piece in _pieces(file))
    return range(count, count + 1)


def _bytes(file: IO[bytes], separator: bytes) -> range | None:
    """Separators may also be part of records, so there are at most as many records as separators."""
    if not separator:
        return None
    count, tail = 0, b""
    for piece in _pieces(file):
        *whole, tail = (tail + piece).split(separator)
        count += len(whole)
        tail = tail[max(len(tail) - len(separator) + 1, 0) :]
    return range(count + 1)


def _index(file: IO[bytes], _separator: bytes) -> range:
    """Of the object beside it, by the index of block-GZIP."""
    count = sum(member.num_records for member in msgspec.json.decode(file.read(), type=Index).chunks)
    return range(count, count + 1)


_COUNTERS: Mapping[str, Callable[[IO[bytes], bytes], range | None]] = {
    "avro": _avro,
    "json": _json,
    "bytes": _bytes,
    "parquet": _parquet,
    "block_gzip": _bytes,
    "index": _index,
}


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece
