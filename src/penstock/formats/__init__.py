"""The family of file formats, found by the short name of `format.class`. docs/formats.md has the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.formats.avro import AvroFormat
from penstock.formats.lines import LinesFormat

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.formats.base import Format


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """What formats take from the configuration."""

    avro_codec: str = "null"
    bytes_extension: str = ".bin"
    bytes_separator: bytes = b"\n"


FORMATS: dict[str, Callable[[FormatOptions], Format]] = {
    "avro": lambda options: AvroFormat(options.avro_codec),
    "json": lambda _: LinesFormat(("json",), ".json"),
    "bytes": lambda options: LinesFormat(("bytes", "text"), options.bytes_extension, options.bytes_separator),
}
