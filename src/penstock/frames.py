"""What stands around the keys and values of block-GZIP's records (reference peers A.6), and the records within it.

Text: `[key, key delimiter] value, value delimiter`. Binary: `[length, key] length, value`, lengths as four big-endian
bytes. As with the connector a null key is an empty one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LENGTH = 4


@dataclass(frozen=True, slots=True)
class Frames:
    """What stands around keys and values.

    `keys`: whether keys are written. `lengths`: binary frames, without delimiters. `once`: a value that ends with its
    delimiter gets none.
    """

    keys: bool = False
    lengths: bool = False
    key_delimiter: bytes = b""
    value_delimiter: bytes = b"\n"
    once: bool = False


def unframed(pieces: Iterable[bytes], frames: Frames) -> Iterator[tuple[bytes | None, bytes]]:
    """The (key, value) of each record in bytes that come in pieces of any size.

    The key is None where frames have none, or where a text has no key delimiter.

    Raises:
        ValueError: the last piece ends within a record.
    """
    held = bytearray()
    for piece in pieces:
        held += piece
        at = 0
        while (found := _next(held, at, frames)) is not None:
            key, value, at = found
            yield key, value
        del held[:at]
    if held:
        msg = "it ends within a record"
        raise ValueError(msg)


def _next(held: bytearray, at: int, frames: Frames) -> tuple[bytes | None, bytes, int] | None:
    """The record at a place and the place behind it; None where it is not there as a whole."""
    record_key = None
    if frames.lengths:
        if frames.keys:
            part = _sized(held, at)
            if part is None:
                return None
            record_key, at = part
        part = _sized(held, at)
        return None if part is None else (record_key, *part)
    end = held.find(frames.value_delimiter, at) if frames.value_delimiter else -1  # nothing would end everywhere
    if end < 0:
        return None
    behind = end + len(frames.value_delimiter)
    if not frames.keys:
        return None, bytes(held[at:end]), behind
    border = held.find(frames.key_delimiter, at, end)
    if border < 0:
        return None, bytes(held[at:end]), behind
    return bytes(held[at:border]), bytes(held[border + len(frames.key_delimiter) : end]), behind


def _sized(held: bytearray, at: int) -> tuple[bytes, int] | None:
    """Bytes behind their length, and the place behind them."""
    start = at + LENGTH
    end = start + int.from_bytes(held[at:start], "big")
    return None if start > len(held) or end > len(held) else (bytes(held[start:end]), end)
