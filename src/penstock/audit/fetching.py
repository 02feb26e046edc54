"""Objects as files that can be read twice, and what stands in them."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from penstock.store.base import NotFoundError
from penstock.store.local import copied

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.config import SinkConfig
    from penstock.model import CommittedObject
    from penstock.store.base import Store
    from penstock.store.local import Copy


@contextmanager
def fetched(store: Store, key: str) -> Iterator[Copy | None]:
    """The object as a local file; None if it is not there."""
    with ExitStack() as resources:
        try:
            copy = resources.enter_context(copied(store, key))
        except NotFoundError:
            yield None
            return
        yield copy


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
