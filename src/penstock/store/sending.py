"""Pieces of bytes as a file that botocore sends, without joining or copying them."""

from __future__ import annotations

import io
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.spool import Held
    from penstock.store.base import Body


def sendable(body: Body) -> bytes | Pieces:
    """What boto3 takes as a request's body; a new one for each request, as it remembers how far it was sent."""
    return body if isinstance(body, bytes) else Pieces(body)


class Pieces:
    """A file to be read from its beginning, as often as it is rewound."""

    def __init__(self, held: Held) -> None:
        self._held = held
        self._next = 0

    def __len__(self) -> int:
        return len(self._held)

    def read(self, size: int = -1) -> bytes | memoryview:
        """The next piece, however many bytes are asked for: urllib3 would else send 16 KiB at a time."""
        del size
        if self._next == len(self._held.pieces):
            return b""
        self._next += 1
        return self._held.pieces[self._next - 1]

    def tell(self) -> int:
        """Where the next piece begins."""
        return sum(map(len, self._held.pieces[: self._next]))

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to the beginning of a piece, or to the end. Raises ValueError for any other place."""
        at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.tell(), io.SEEK_END: len(self)}[whence]
        edges = list(accumulate(map(len, self._held.pieces), initial=0))
        if at not in edges:
            msg = f"byte {at} is not where a piece begins"
            raise ValueError(msg)
        self._next = edges.index(at)
        return at
