"""Objects as files, whatever their size: a copy on local disk, or one whose pieces are fetched when they are read."""

from __future__ import annotations

import io
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, cast

import google_crc32c

from penstock.errors import PenstockError
from penstock.spool import local_folder
from penstock.store.base import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.store.base import Store

_PIECE = 8 << 20


@dataclass(frozen=True, slots=True)
class Copy:
    """An object's bytes in a file that stands at its beginning; `crc32c`: eight hexadecimal digits."""

    file: IO[bytes]
    size: int
    crc32c: str


@contextmanager
def copied(store: Store, key: str) -> Iterator[Copy]:
    """While entered, the object in a temporary file, which is in memory up to 8 MiB.

    Raises as `Store.get` does, and PenstockError where the local disk does not take it.
    """
    folder = local_folder()
    with tempfile.SpooledTemporaryFile(max_size=_PIECE, dir=folder) as file:
        crc = size = 0
        while True:
            piece = store.get(key, size, size + _PIECE)
            try:
                file.write(piece)
            except OSError as error:
                msg = f"`{key}` does not fit into {folder} after {size} bytes: {error}; make room there"
                raise PenstockError(msg) from error
            crc, size = google_crc32c.extend(crc, piece), size + len(piece)
            if len(piece) < _PIECE:
                break
        file.seek(0)
        yield Copy(cast("IO[bytes]", file), size, f"{crc:08x}")


def ranged(store: Store, key: str, size: int | None = None, piece: int = _PIECE) -> IO[bytes]:
    """An object as a file: each `piece` that is read into is one request. `size`: where it is known already.

    Reading raises as `Store.get` does, seeking from its end NotFoundError.
    """
    return cast("IO[bytes]", io.BufferedReader(_Ranged(store, key, size), piece))


class _Ranged(io.RawIOBase):
    """Reads at any place."""

    def __init__(self, store: Store, key: str, size: int | None) -> None:
        self._store, self._key, self._size, self._at = store, key, size, 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        if whence == io.SEEK_END:
            offset += self._length()
        self._at = max(offset + (self._at if whence == io.SEEK_CUR else 0), 0)
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer, in its types
        """Fetch as much as the buffer takes."""
        stop = self._at + len(buffer)
        data = self._store.get(self._key, self._at, stop if self._size is None else min(stop, self._size))
        buffer[: len(data)] = data
        self._at += len(data)
        if 0 < len(data) < len(buffer):  # nothing at all: the end may lie anywhere before
            self._size = self._at
        return len(data)

    def readall(self) -> bytes:
        """The rest by one request."""
        data = self._store.get(self._key, self._at)
        self._at += len(data)
        return data

    def _length(self) -> int:
        if self._size is None:
            head = self._store.head(self._key)
            if head is None:
                self._store.get(self._key, 0, 1)  # tells a bucket that is not there from an object
                msg = f"there is no object `{self._key}`"
                raise NotFoundError(msg)
            self._size = head.size
        return self._size
