"""What is in a stored object: its type without reading all of it, and its rows as Arrow arrays."""

from __future__ import annotations

import gzip
import io
import json
from itertools import islice
from typing import TYPE_CHECKING, Any

import fastavro
import google_crc32c
import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.columnar.schema import NoColumnsError
from penstock.errors import PenstockError
from penstock.fields.avro import boundaries, tables
from penstock.formats.damage import DAMAGED
from penstock.sources import json as documents
from penstock.sources.avro import AvroReader
from penstock.sources.types import conform, spark_like
from penstock.store.base import NotFoundError
from penstock.zstandard import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.sources.framing import Framing
    from penstock.sources.listing import StoredObject
    from penstock.store.base import Store

VALUE = "value"
"""The column of records that have no fields."""

_HEAD = 64 * 1024
_ENOUGH = 4 << 20
_ROWS = 1 << 16
_SAMPLE = 1000
_WHOLE: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".zst": zstd.decompress}


def kind_of(key: str) -> str:
    """What the extension says that an object holds, compressed whole or not."""
    name = _unpacked(key)
    return next((kind for kind in ("avro", "json", "parquet") if name.endswith(f".{kind}")), "lines")


def type_of(store: Store, stored: StoredObject, framing: Framing) -> pa.DataType:
    """The struct type of an object's rows. JSON is looked at up to its 1000th record.

    Raises:
        PenstockError: the object is not there, is damaged, or has no type in Spark.
    """
    with _Naming(stored):
        kind = kind_of(stored.key)
        if kind == "avro":
            found = _avro_type(store, stored.key)
        elif kind == "json":
            lines = _unpack(stored.key, store.get(stored.key)).splitlines()
            found = documents.merged(documents.type_of(msgspec.json.decode(each)) for each in lines[:_SAMPLE])
        elif kind == "parquet":
            found = pa.struct(list(pq.read_schema(pa.BufferReader(store.get(stored.key)))))
        else:
            found = framing.type
        return _as_struct(spark_like(found))


def arrays(store: Store, stored: StoredObject, target: pa.StructType, framing: Framing) -> Iterator[pa.StructArray]:
    """The rows of an object as structs of the target. `framing`: of records that are neither Avro, JSON nor Parquet.

    Raises:
        PenstockError: the object is not there, or is not what was committed; names it.
    """
    with _Naming(stored):
        data = store.get(stored.key)
        _check(stored, data)
        kind = kind_of(stored.key)
        if kind == "avro":
            found = _avro(data)
        elif kind == "parquet":
            found = _parquet(data)
        elif kind == "json":
            found = _json(_unpack(stored.key, data), target)
        else:
            found = iter((framing.rows(_unpack(stored.key, data)),))
        for each in found:
            yield conform(each if pa.types.is_struct(each.type) else _wrapped(each), target)


class MissingError(PenstockError):
    """An object that was committed is not there any more."""


class _Naming:
    """Names the object in whatever goes wrong with it."""

    def __init__(self, stored: StoredObject) -> None:
        self._stored = stored

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        key = self._stored.key
        if isinstance(error, NotFoundError):
            msg = (
                f"`{key}` was committed by entry {self._stored.entry} and is not there any more; restore it from a "
                "backup or a bucket version, or leave it out with a filter"
            )
            raise MissingError(msg) from error
        if isinstance(error, NoColumnsError):
            msg = f"`{key}` has no type in Spark: its schema {error}; read it as a file"
            raise PenstockError(msg) from error
        if isinstance(error, DAMAGED):
            msg = f"`{key}` is damaged ({error}); restore it from a backup or a bucket version"
            raise PenstockError(msg) from error


def _unpacked(key: str) -> str:
    return key.removesuffix(next((each for each in _WHOLE if key.endswith(each)), ""))


def _unpack(key: str, data: bytes) -> bytes:
    return next((unpack(data) for ending, unpack in _WHOLE.items() if key.endswith(ending)), data)


def _check(stored: StoredObject, data: bytes) -> None:
    """Whether the bytes are those that were committed."""
    found = f"{google_crc32c.value(data):08x}"
    if len(data) != stored.size or (stored.crc32c and found != stored.crc32c):
        msg = f"its {len(data)} bytes are not those that entry {stored.entry} of the state log committed"
        raise ValueError(msg)


def _as_struct(found: pa.DataType) -> pa.DataType:
    return found if pa.types.is_struct(found) else pa.struct([pa.field(VALUE, found)])


def _wrapped(values: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays([values], fields=[pa.field(VALUE, values.type)])


def _avro_type(store: Store, key: str) -> pa.DataType:
    """From the header, of which only so much is read as it takes."""
    size = _HEAD
    while True:
        head = store.get(key, 0, size)
        try:
            return AvroReader.of(fastavro.block_reader(io.BytesIO(head)).metadata["avro.schema"]).type
        except (EOFError, IndexError, ValueError):
            if len(head) < size:
                raise
            size *= 16


def _avro(data: bytes) -> Iterator[pa.Array]:
    blocks = fastavro.block_reader(io.BytesIO(data))
    text = blocks.metadata["avro.schema"]
    reader, walkable = AvroReader.of(text), tables(json.loads(text))
    bodies: list[bytes] = []
    count = size = 0
    each: Any
    for each in blocks:
        bodies.append(each.bytes_.getvalue())
        count, size = count + each.num_records, size + len(bodies[-1])
        if size >= _ENOUGH:
            yield _data(reader, walkable, b"".join(bodies), count)
            bodies, count, size = [], 0, 0
    if count:
        yield _data(reader, walkable, b"".join(bodies), count)


def _data(reader: AvroReader, walkable: Any, body: bytes, count: int) -> pa.Array:  # noqa: ANN401 - two numpy arrays
    data = np.frombuffer(body, np.uint8)
    return reader.array(data, boundaries(data, count, walkable), np.arange(count))


def _parquet(data: bytes) -> Iterator[pa.Array]:
    for batch in pq.ParquetFile(pa.BufferReader(data)).iter_batches(_ROWS):
        yield batch.to_struct_array()


def _json(data: bytes, target: pa.StructType) -> Iterator[pa.Array]:
    """Documents that are no objects are the one field `value`."""
    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw == ord("\n")) + 1
    offsets = np.concatenate([[0], ends, [len(raw)] if len(raw) and raw[-1] != ord("\n") else []]).astype(np.int64)
    for start in range(0, len(offsets) - 1, _ROWS):
        mine = offsets[start : start + _ROWS + 1]
        part = raw[mine[0] : mine[-1]]
        kind = target
        if len(part) and part[0] != ord("{") and VALUE in [each.name for each in target]:
            kind = target.field(VALUE).type
        found, bad = documents.rows(part, mine - mine[0], kind)
        for row, why in islice(bad.items(), 1):
            msg = f"record {start + row}: {why}"
            raise ValueError(msg)
        yield found
