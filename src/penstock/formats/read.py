"""Records of an object of ours, for people: by the extension of its name."""

from __future__ import annotations

import base64
import json
from typing import IO, TYPE_CHECKING, Any

import fastavro
import pyarrow.parquet as pq

from penstock.errors import PenstockError
from penstock.formats.damage import DAMAGED
from penstock.formats.packing import inner, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ROWS = 1000


def records(file: IO[bytes], key: str) -> Iterator[Any]:
    """The records as JSON values: Avro data, JSON documents, or the lines of anything else; `.gz` and `.zst` unpacked.

    Raises:
        PenstockError: the object is not what its name says; names it and the record.
    """
    read = next((each for extension, each in _READERS.items() if inner(key).endswith(extension)), _lines)
    count = 0
    try:
        for record in read(unpacked(file, key)):
            yield record
            count += 1
    except DAMAGED as error:
        msg = f"`{key}` is damaged after record {count}: {error}; compare its size and checksum with the state log"
        raise PenstockError(msg) from error


def _avro(file: IO[bytes]) -> Iterator[Any]:
    for record in fastavro.reader(file):
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


def _json(file: IO[bytes]) -> Iterator[Any]:
    for line in file:
        yield json.loads(line)


def _parquet(file: IO[bytes]) -> Iterator[Any]:
    for batch in pq.ParquetFile(file, pre_buffer=False).iter_batches(_ROWS):
        for record in batch.to_pylist():
            yield plain(record)


def _lines(file: IO[bytes]) -> Iterator[str]:
    for line in file:
        yield line.removesuffix(b"\n").decode("utf-8", "backslashreplace")


_READERS: dict[str, Callable[[IO[bytes]], Iterator[Any]]] = {".avro": _avro, ".json": _json, ".parquet": _parquet}
