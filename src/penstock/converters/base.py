"""What a converter is: a batch of raw record values in, the bytes that a format wants out.

A *kind* is a representation of one value. A converter says which kinds it can give, a format which it accepts; where
they agree, payload bytes are copied and never decoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from penstock.model import Gather, Records

Kind = Literal["avro", "json", "text", "bytes"]
"""`avro`: a binary datum of the chunk's schema. `json`: one document and a line feed. `text`: UTF-8 and the format's
separator. `bytes`: as they are, and the format's separator."""


@dataclass(frozen=True, slots=True)
class FileSchema:
    """The schema of a file's records. `text`: what the file's header says, or "" for kinds that have none.

    `fingerprint`: names the schema in receipts. `name`, `version`: as the registry has them, where it has.
    """

    text: str = ""
    fingerprint: str = ""
    name: str = ""
    version: int | None = None


SCHEMALESS = FileSchema()


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of one topic-partition in one kind: row i is `data[offsets[i]:offsets[i + 1]]`.

    `schemas`: int32 per row, codes for `Converter.schema`; None where every row has code 0.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    schemas: NDArray[np.int32] | None = None


@dataclass(frozen=True, slots=True)
class RowFault:
    """A row that cannot be converted, and why, in words that follow "topic-partition@offset: "."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class Converted:
    """A batch in the wanted kind. `faults`: in row order; the chunk is right for all rows before the first."""

    chunk: Chunk
    faults: tuple[RowFault, ...] = ()


class Converter(Protocol):
    """Converts record values to one kind. May be kept for the life of a process: it caches schemas by id."""

    @property
    def gather(self) -> Gather:
        """How the reader has to lay out values for it."""
        ...

    def convert(self, records: Records) -> Converted:
        """Convert a batch of at least one record. Raises `RegistryUnavailable`."""
        ...

    def schema(self, code: int) -> FileSchema:
        """The schema that a code of a chunk stands for."""
        ...


NULL_VALUE = "the value is null, and behavior.on.null.values is `fail`; produce no null values to this topic"


def excerpt(value: bytes | None, size: int = 40) -> str:
    """A value for a message: bounded in length, unprintable bytes escaped."""
    if value is None:
        return "null"
    shown = value[:size].decode("utf-8", "backslashreplace").encode("unicode_escape").decode("ascii")
    return f"`{shown}`" if len(value) <= size else f"`{shown}`... ({len(value)} bytes)"
