"""Objects as files that can be read twice, and what stands in them."""

from __future__ import annotations

import io
import tempfile
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from penstock.store.base import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.config import SinkConfig
    from penstock.model import CommittedObject
    from penstock.store.base import Store

_IN_MEMORY = 32 * 1024 * 1024
_BLOCK = 8 * 1024 * 1024


@contextmanager
def fetched(store: Store, committed: CommittedObject) -> Iterator[IO[bytes] | None]:
    """The object as a file, on disk where it is large; None if it is not there."""
    key, size = committed.key, committed.size
    with io.BytesIO() if size <= _IN_MEMORY else tempfile.TemporaryFile() as file:
        try:
            if size <= _BLOCK:
                file.write(store.get(key))
            else:
                _copy(store, key, file)
        except NotFoundError:
            yield None
            return
        file.seek(0)
        yield file


def _copy(store: Store, key: str, file: IO[bytes]) -> None:
    start = 0
    while block := store.get(key, start, start + _BLOCK):
        file.write(block)
        start += len(block)


def file_format(config: SinkConfig, committed: CommittedObject) -> str:
    """`format.class` of an object. `config`: what it was written with."""
    formats = {
        "value": config.format_class,
        "keys": config.records.keys_format,
        "headers": config.records.headers_format,
        "errors": "json",
        "index": "index",
    }
    return formats[committed.view]


def separator(config: SinkConfig) -> bytes:
    """What stands behind each record of a value file; nothing where that does not tell records apart."""
    if config.format_class != "block_gzip":
        return config.bytearray_separator.encode()
    return config.block_gzip.value_delimiter.encode() if config.block_gzip.records == "text" else b""
