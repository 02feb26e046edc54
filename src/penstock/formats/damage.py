"""What the readers of our formats raise for bytes that are not what their object's name says."""

from __future__ import annotations

import binascii
import lzma
import zlib

import msgspec
import pyarrow as pa

from penstock.zstandard import zstd

DAMAGED = (
    ValueError,
    EOFError,
    KeyError,
    IndexError,
    TypeError,
    StopIteration,
    OSError,
    lzma.LZMAError,
    zlib.error,
    zstd.ZstdError,
    msgspec.DecodeError,
    pa.ArrowException,
    binascii.Error,
)
