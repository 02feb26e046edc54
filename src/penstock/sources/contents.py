"""What is in a stored object: its type without reading all of it, and its rows as Arrow arrays."""

from __future__ import annotations

import json
from functools import partial
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

import fastavro
import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.columnar.schema import NoColumnsError
from penstock.errors import PenstockError
from penstock.fields.avro import boundaries, tables
from penstock.formats.damage import DAMAGED
from penstock.formats.packing import inner, unpacked
from penstock.sources import json as documents
from penstock.sources.avro import AvroReader
from penstock.sources.types import conform, spark_like
from penstock.store.base import NotFoundError
from penstock.store.local import copied, ranged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.sources.framing import Framing
    from penstock.sources.listing import StoredObject
    from penstock.store.base import Store
    from penstock.store.local import Copy

VALUE = "value"
"""The column of records that have no fields."""

_HEAD = 64 * 1024
_ENOUGH = 4 << 20
_ROWS = 1 << 16
_SAMPLE = 1000


def kind_of(key: str) -> str:
    """What the extension says that an object holds, compressed whole or not."""
    name = inner(key)
    return next((kind for kind in ("avro", "json", "parquet") if name.endswith(f".{kind}")), "lines")


def type_of(store: Store, stored: StoredObject, framing: Framing) -> pa.DataType:
    """The struct type of an object's rows, by as much of it as that takes. JSON is looked at up to its 1000th record.

    Raises:
        PenstockError: the object is not there, is damaged, or has no type in Spark.
    """
    with Naming(stored):
        kind = kind_of(stored.key)
        file = ranged(store, stored.key, stored.size, _HEAD if kind == "avro" else _ENOUGH)
        if kind == "avro":
            found = AvroReader.of(fastavro.block_reader(file).metadata["avro.schema"]).type
        elif kind == "json":
            lines = islice(unpacked(file, stored.key), _SAMPLE)
            found = documents.merged(documents.type_of(msgspec.json.decode(each)) for each in lines)
        elif kind == "parquet":
            found = pa.struct(list(pq.read_schema(pa.PythonFile(file, mode="r"))))
        else:
            found = framing.type
        return _as_struct(spark_like(found))


def arrays(store: Store, stored: StoredObject, target: pa.StructType, framing: Framing) -> Iterator[pa.StructArray]:
    """The rows of an object as structs of the target. `framing`: of records that are neither Avro, JSON nor Parquet.

    The object is on local disk while it is read, where it is large, and no more of it in memory than some batches.

    Raises:
        PenstockError: the object is not there, or is not what was committed; names it.
    """
    with Naming(stored), copied(store, stored.key) as copy:
        _check(stored, copy)
        kind = kind_of(stored.key)
        if kind == "avro":
            found = _avro(copy.file)
        elif kind == "parquet":
            found = _parquet(copy.file)
        elif kind == "json":
            found = _json(_blocks(unpacked(copy.file, stored.key)), target)
        else:
            found = framing.rows(iter(partial(unpacked(copy.file, stored.key).read, _ENOUGH), b""))
        for each in found:
            yield conform(each if pa.types.is_struct(each.type) else _wrapped(each), target)


class MissingError(PenstockError):
    """An object that was committed is not there any more."""


class Naming:
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


def _check(stored: StoredObject, copy: Copy) -> None:
    """Whether the bytes are those that were committed."""
    if copy.size != stored.size or (stored.crc32c and copy.crc32c != stored.crc32c):
        msg = f"its {copy.size} bytes are not those that entry {stored.entry} of the state log committed"
        raise ValueError(msg)


def _as_struct(found: pa.DataType) -> pa.DataType:
    return found if pa.types.is_struct(found) else pa.struct([pa.field(VALUE, found)])


def _wrapped(values: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays([values], fields=[pa.field(VALUE, values.type)])


def _avro(file: IO[bytes]) -> Iterator[pa.Array]:
    blocks = fastavro.block_reader(file)
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


def _parquet(file: IO[bytes]) -> Iterator[pa.Array]:
    opened = pq.ParquetFile(file, pre_buffer=False)
    groups = [opened.metadata.row_group(number) for number in range(opened.num_row_groups)]
    size = max(sum(each.total_byte_size for each in groups), 1)
    for batch in opened.iter_batches(max(1, min(_ROWS, _ENOUGH * opened.metadata.num_rows // size))):
        yield batch.to_struct_array()


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Whole lines, as many as fit into some MiB."""
    while block := file.read(_ENOUGH):
        yield block + file.readline()


def _json(blocks: Iterable[bytes], target: pa.StructType) -> Iterator[pa.Array]:
    """Documents that are no objects are the one field `value`."""
    count = 0
    for block in blocks:
        raw = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(raw == ord("\n")) + 1
        offsets = np.concatenate([[0], ends, [len(raw)] if raw[-1] != ord("\n") else []]).astype(np.int64)
        kind = target
        if raw[0] != ord("{") and VALUE in [each.name for each in target]:
            kind = target.field(VALUE).type
        found, bad = documents.rows(raw, offsets, kind)
        for row, why in islice(bad.items(), 1):
            msg = f"record {count + row}: {why}"
            raise ValueError(msg)
        yield found
        count += len(found)
