"""Block-GZIP's records with keys or lengths, back from their frames (see `penstock.converters.framed`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from penstock.restore.payloads import pieces, unpacked
from penstock.restore.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.restore.plan import Carried

_LENGTH = 4


@dataclass(frozen=True, slots=True)
class DelimitedRecords:
    """Text records with their keys. `before`: the key's delimiter; `behind`: the value's. An empty key is null."""

    before: bytes
    behind: bytes
    carried: Carried = frozenset({"key"})

    def read(self, file: IO[bytes], key: str, topic: str) -> Iterator[Record]:  # noqa: ARG002 - as the others
        """A key ends where its delimiter first stands."""
        for record in pieces(unpacked(file, key), self.behind):
            found, delimiter, value = record.partition(self.before)
            if not delimiter:
                msg = "a record has no key delimiter"
                raise ValueError(msg)
            yield Record(value, found or None)


@dataclass(frozen=True, slots=True)
class LengthRecords:
    """Binary records: four bytes of length before the key, if there are keys, and before the value."""

    has_keys: bool

    @property
    def carried(self) -> Carried:
        """The key, if there are keys."""
        return frozenset({"key"}) if self.has_keys else frozenset()

    def read(self, file: IO[bytes], key: str, topic: str) -> Iterator[Record]:  # noqa: ARG002 - as the others
        """One record at a time."""
        opened = unpacked(file, key)
        while head := opened.read(_LENGTH):
            found = None
            if self.has_keys:
                found = _exactly(opened, int.from_bytes(head, "big")) or None
                head = _exactly(opened, _LENGTH)
            yield Record(_exactly(opened, int.from_bytes(head, "big")), found)


def _exactly(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        msg = "it ends within a record"
        raise EOFError(msg)
    return data
