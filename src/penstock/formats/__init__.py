"""The family of file formats, found by the short name of `format.class`. docs/formats.md has the table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.formats.avro import AvroFormat
from penstock.formats.blockgzip import BlockGzipFormat
from penstock.formats.compression import COMPRESSIONS, CompressedFormat
from penstock.formats.lines import LinesFormat
from penstock.formats.parquet import ParquetFormat
from penstock.spool import Budget

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.formats.base import Format


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """What formats take from the configuration."""

    avro_codec: str = "null"
    bytes_extension: str = ".bin"
    bytes_separator: bytes = b"\n"
    compression: str = "none"
    compression_level: int = -1
    parquet_codec: str = "snappy"
    block_size: int = 64 * 1024 * 1024
    block_separator: bytes = b"\n"
    budget: Budget = field(default_factory=Budget, compare=False)


def _compressed(inner: Format, options: FormatOptions) -> Format:
    """The format inside what `s3.compression.type` says."""
    compression = COMPRESSIONS.get(options.compression)
    return inner if compression is None else CompressedFormat(inner, compression, options.compression_level)


FORMATS: dict[str, Callable[[FormatOptions], Format]] = {
    "avro": lambda options: AvroFormat(options.avro_codec, options.budget),
    "parquet": lambda options: ParquetFormat(options.parquet_codec, options.budget),
    "block_gzip": lambda options: BlockGzipFormat(options.block_size, options.block_separator),
    "json": lambda options: _compressed(LinesFormat(("json",), ".json"), options),
    "bytes": lambda options: _compressed(
        LinesFormat(("bytes", "text"), options.bytes_extension, options.bytes_separator), options
    ),
}
