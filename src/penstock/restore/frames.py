"""Block-GZIP's records with keys or lengths, back from their frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from penstock.formats.packing import unpacked
from penstock.frames import unframed
from penstock.restore.payloads import PIECE
from penstock.restore.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.frames import Frames
    from penstock.restore.plan import Carried


@dataclass(frozen=True, slots=True)
class FramedRecords:
    """Records with what stands around them. An empty key is null."""

    frames: Frames

    @property
    def carried(self) -> Carried:
        """The key, if there are keys."""
        return frozenset({"key"}) if self.frames.keys else frozenset()

    def read(self, file: IO[bytes], key: str, topic: str) -> Iterator[Record]:  # noqa: ARG002 - as the others
        """One record at a time."""
        opened = unpacked(file, key)
        for found, value in unframed(iter(lambda: opened.read(PIECE), b""), self.frames):
            if self.frames.keys and found is None:
                msg = "a record has no key delimiter"
                raise ValueError(msg)
            yield Record(value, found or None)
