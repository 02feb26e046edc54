"""JSON lines and raw bytes: the rows as they are, one behind the other; separators are part of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.formats.rows import contiguous

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.converters.base import Chunk, FileSchema, Kind
    from penstock.formats.base import Rows


@dataclass(frozen=True, slots=True)
class LinesFormat:
    """`format.class` json (`.json`) and bytes (`.bin`, `format.bytearray.extension`)."""

    accepts: tuple[Kind, ...]
    extension: str
    separator: bytes = b""

    def refuses(self, schema: FileSchema) -> None:
        """Nothing."""

    def encoder(self, schema: FileSchema, key: str) -> LinesEncoder:  # noqa: ARG002 - neither enters the file
        """Nothing is kept between chunks."""
        return LinesEncoder()


class LinesEncoder:
    """Copies rows."""

    def write(self, chunk: Chunk, rows: Rows) -> Iterator[memoryview]:
        """The rows' own bytes."""
        data, offsets = contiguous(chunk, rows)
        yield data[offsets[0] : offsets[-1]].data

    def finish(self) -> tuple[()]:
        """There is no end mark."""
        return ()

    def abandon(self) -> None:
        """Nothing waits."""
