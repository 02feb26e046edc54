"""A record on its way back, and what readers of files are."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.restore.plan import Carried

    HeaderPairs = tuple[tuple[str, bytes | None], ...]


class Record(msgspec.Struct, frozen=True, gc=False):  # one or two are made for each record: a dataclass is slower
    """A record as far as its objects say. `timestamp`, `offset`: None where they are not stored."""

    value: bytes | None
    key: bytes | None = None
    headers: HeaderPairs = ()
    timestamp: int | None = None
    offset: int | None = None


class ValueReader(Protocol):
    """Reads files of values of one configuration."""

    @property
    def carried(self) -> Carried:
        """What each record carries beside its value."""
        ...

    def read(self, file: IO[bytes], key: str, topic: str) -> Iterator[Record]:
        """The records of a file in its order, one at a time; `key`: the object's. Raises one of `DAMAGED`."""
        ...


class PartReader(Protocol):
    """Reads files of one part of the records: their values, or their keys, as Kafka had them."""

    def __call__(self, file: IO[bytes], key: str, topic: str) -> Iterator[bytes | None]:
        """The parts in the file's order, one at a time. Raises one of `DAMAGED`, or PenstockError."""
        ...
