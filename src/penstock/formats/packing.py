"""Files that were compressed whole (`s3.compression.type`): the end of their name says how."""

from __future__ import annotations

import gzip
from typing import IO, TYPE_CHECKING, cast

from penstock.zstandard import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PACKINGS: Mapping[str, Callable[[IO[bytes]], IO[bytes]]] = {
    ".gz": lambda file: cast("IO[bytes]", gzip.GzipFile(fileobj=file, mode="rb")),
    ".zst": lambda file: cast("IO[bytes]", zstd.ZstdFile(file)),
}


def unpacked(file: IO[bytes], key: str) -> IO[bytes]:
    """What is inside, to be read forwards; the file itself where it is not compressed."""
    return next((unpack(file) for ending, unpack in _PACKINGS.items() if key.endswith(ending)), file)


def inner(key: str) -> str:
    """The name without the end that says how the file is compressed."""
    return next((key.removesuffix(ending) for ending in _PACKINGS if key.endswith(ending)), key)
