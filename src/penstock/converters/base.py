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

    from penstock.columns import Field
    from penstock.model import Gather, Records

Kind = Literal["avro", "json", "text", "bytes"]
"""`avro`: a binary datum of the chunk's schema. `json`: one document and a line feed. `text`: UTF-8 and the format's
separator. `bytes`: as they are, and the format's separator."""


@dataclass(frozen=True, slots=True)
class FileSchema:
    """The schema of a file's records. `text`: what the file's header says, or "" for kinds that have none.

    `fingerprint`: names the schema in receipts. `name`, `version`: as the registry has them, where it has. `around`: of
    an envelope, the fingerprints of key and value, "" for one that is null and fits into any file.
    """

    text: str = ""
    fingerprint: str = ""
    name: str = ""
    version: int | None = None
    around: tuple[str, str] | None = None


SCHEMALESS = FileSchema()


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of one topic-partition in one kind: row i is `data[offsets[i]:offsets[i + 1]]`.

    `schemas`: int32 per row, codes for `Converter.schema`; None where every row has code 0. `positions`: the Kafka
    offset of each row, once a batch is sifted.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    schemas: NDArray[np.int32] | None = None
    positions: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True)
class RowFault:
    """A row that cannot be converted, and why, in words that follow "topic-partition@offset: "."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class Converted:
    """A batch in the wanted kind.

    `faults`: all of them, in row order; what the chunk has in their rows means nothing. `nulls`: whether the value of
    each row is null, None where none is; what the chunk has there means nothing either.
    """

    chunk: Chunk
    faults: tuple[RowFault, ...] = ()
    nulls: NDArray[np.bool_] | None = None


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

    def field(self, records: Records, path: str) -> Field:
        """A field of the values by its dotted path. Raises `RegistryUnavailable`."""
        ...

    def project(self, records: Records, rows: NDArray[np.int64], code: int) -> Converted:
        """Rows of a batch in the kind, under the schema of `code`; faults count from these rows."""
        ...


NULL_VALUE = "the value is null, and behavior.on.null.values is `fail`; set it to `ignore` or `write`"


def excerpt(value: bytes | None, size: int = 40) -> str:
    """A value for a message: bounded in length, unprintable bytes escaped."""
    if value is None:
        return "null"
    shown = value[:size].decode("utf-8", "backslashreplace").encode("unicode_escape").decode("ascii")
    return f"`{shown}`" if len(value) <= size else f"`{shown}`... ({len(value)} bytes)"
