"""What a format is: chunks of rows in, the bytes of one file out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from penstock.converters.base import Chunk, FileSchema, Kind

    Rows = slice | NDArray[np.int64]


class Encoder(Protocol):
    """The encoder of one file. What it gives depends on the rows alone, never on how they are handed over in chunks."""

    def write(self, chunk: Chunk, rows: Rows) -> Iterable[bytes | memoryview]:
        """Append rows: the bytes that are ready, valid until the next call."""
        ...

    def finish(self) -> Iterable[bytes | memoryview]:
        """End the file: the rest of its bytes."""
        ...

    def abandon(self) -> None:
        """The file is not wanted: give back what waits."""
        ...


class Format(Protocol):
    """A file format with its options."""

    @property
    def accepts(self) -> tuple[Kind, ...]:
        """The kinds it can write, the best first."""
        ...

    @property
    def extension(self) -> str:
        """What file names end with."""
        ...

    @property
    def separator(self) -> bytes:
        """What the reader puts behind each value of kind `text` or `bytes`."""
        ...

    def refuses(self, schema: FileSchema) -> str | None:
        """Why records of a schema cannot be written, in words that follow "its schema "; None if they can."""
        ...

    def encoder(self, schema: FileSchema, key: str) -> Encoder:
        """An encoder for the file with that object key."""
        ...
