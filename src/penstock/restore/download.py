"""Committed objects on local disk, checked against what their commit says before the first record is read."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, cast

import google_crc32c

from penstock.errors import PenstockError
from penstock.store.base import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from tempfile import SpooledTemporaryFile

    from penstock.model import CommittedObject
    from penstock.store.base import Store

_PIECE = 8 << 20
_IN_MEMORY = 8 << 20


@contextmanager
def fetched(store: Store, held: CommittedObject) -> Iterator[IO[bytes]]:
    """While entered, a temporary file with the object's bytes; on disk where it is large.

    Raises:
        PenstockError: the object is gone, or is not the one that was committed.
        StoreUnavailable: the store does not answer.
    """
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
        try:
            size, crc = _copy(store, held, file)
        except NotFoundError as error:
            msg = (
                f"`{held.key}` is named by the state log but is not in the bucket; bring it back from a bucket version"
            )
            raise PenstockError(msg) from error
        if (size, crc) != (held.size, held.crc32c):
            msg = (
                f"`{held.key}` is damaged: {size} bytes with CRC-32C {crc}, but {held.size} bytes with {held.crc32c} "
                "were committed; bring it back from a bucket version"
            )
            raise PenstockError(msg)
        file.seek(0)
        yield cast("IO[bytes]", file)


def _copy(store: Store, held: CommittedObject, file: SpooledTemporaryFile[bytes]) -> tuple[int, str]:
    """Copy the object piece by piece; its size and checksum."""
    crc, size = 0, 0
    while size <= held.size:  # one request beyond its end shows that it has grown
        piece = store.get(held.key, size, size + _PIECE)
        file.write(piece)
        crc, size = google_crc32c.extend(crc, piece), size + len(piece)
        if len(piece) < _PIECE:
            break
    return size, f"{crc:08x}"
