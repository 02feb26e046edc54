"""Records of an object of ours, for people: by the extension of its name."""

from __future__ import annotations

import base64
import gzip
import io
import json
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow.parquet as pq

from penstock.errors import PenstockError
from penstock.formats.damage import DAMAGED
from penstock.zstandard import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ROWS = 10_000
_WHOLE: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".zst": zstd.decompress}


def records(data: bytes, key: str) -> Iterator[Any]:
    """The records as JSON values: Avro data, JSON documents, or the lines of anything else; `.gz` and `.zst` unpacked.

    Raises:
        PenstockError: the object is not what its name says; names it and the record.
    """
    packing = next((each for each in _WHOLE if key.endswith(each)), "")
    name = key.removesuffix(packing)
    read = next((each for extension, each in _READERS.items() if name.endswith(extension)), _lines)
    count = 0
    try:
        data = _WHOLE[packing](data) if packing else data
        for record in read(data):
            yield record
            count += 1
    except DAMAGED as error:
        msg = f"`{key}` is damaged after record {count}: {error}; compare its size and checksum with the state log"
        raise PenstockError(msg) from error


def _avro(data: bytes) -> Iterator[Any]:
    for record in fastavro.reader(io.BytesIO(data)):
        yield plain(record)


def plain(value: Any) -> Any:  # noqa: ANN401 - Avro data
    """As JSON can hold it: bytes in base64, dates and decimals as text."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _json(data: bytes) -> Iterator[Any]:
    for line in data.splitlines():
        yield json.loads(line)


def _parquet(data: bytes) -> Iterator[Any]:
    for batch in pq.ParquetFile(io.BytesIO(data)).iter_batches(_ROWS):
        for record in batch.to_pylist():
            yield plain(record)


def _lines(data: bytes) -> Iterator[str]:
    for line in data.removesuffix(b"\n").split(b"\n"):
        yield line.decode("utf-8", "backslashreplace")


_READERS: dict[str, Callable[[bytes], Iterator[Any]]] = {".avro": _avro, ".json": _json, ".parquet": _parquet}
