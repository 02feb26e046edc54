"""Committed objects on local disk, checked against what their commit says before the first record is read."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.store.base import NotFoundError
from penstock.store.local import copied

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.model import CommittedObject
    from penstock.store.base import Store


@contextmanager
def fetched(store: Store, held: CommittedObject) -> Iterator[IO[bytes]]:
    """While entered, a temporary file with the object's bytes; on disk where it is large.

    Raises:
        PenstockError: the object is gone, or is not the one that was committed.
        StoreUnavailable: the store does not answer.
    """
    with ExitStack() as resources:
        try:
            copy = resources.enter_context(copied(store, held.key))
        except NotFoundError as error:
            msg = (
                f"`{held.key}` is named by the state log but is not in the bucket; bring it back from a bucket version"
            )
            raise PenstockError(msg) from error
        if (copy.size, copy.crc32c) != (held.size, held.crc32c):
            msg = (
                f"`{held.key}` is damaged: {copy.size} bytes with CRC-32C {copy.crc32c}, but {held.size} bytes with "
                f"{held.crc32c} were committed; bring it back from a bucket version"
            )
            raise PenstockError(msg)
        yield copy.file
