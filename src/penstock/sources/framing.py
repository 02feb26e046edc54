"""Records of raw files: what stands between them, or their lengths, as the connector's configuration has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.config.kinds import Separator
from penstock.frames import Frames, unframed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ENOUGH = 4 << 20
_AROUND = 100  # bytes that Python takes for a record beside its value


@dataclass(frozen=True, slots=True)
class Framing:
    """How a raw file is read."""

    frames: Frames

    @classmethod
    def of(cls, config: Mapping[str, str]) -> Framing:
        """What the properties that shape files say, as the state log has them."""

        def text(name: str, default: str) -> bytes:
            return Separator().parse(config.get(name, default)).encode()

        if config.get("format.class") != "block_gzip":
            return cls(Frames(value_delimiter=text("format.bytearray.separator", "\n")))
        lengths = config.get("format") == "binary"
        between = text("format.key.delimiter", "")
        keys = config.get("format.include.keys", "").lower() == "true" if lengths else bool(between)
        return cls(Frames(keys, lengths, between, text("format.value.delimiter", "\n")))

    @property
    def type(self) -> pa.DataType:
        """The type of a record."""
        value = pa.field("value", pa.binary())
        return pa.struct([pa.field("key", pa.binary()), value] if self.frames.keys else [value])

    def rows(self, pieces: Iterator[bytes]) -> Iterator[pa.Array]:
        """The records of a file that comes in pieces, some at a time. Raises ValueError where a length does not fit."""
        if not self.frames.keys and not self.frames.lengths:
            # Split at once: without keys it is many times faster than record by record.
            for values in _split(pieces, self.frames.value_delimiter):
                yield pa.array([{"value": value} for value in values], self.type)
            return
        pairs = unframed(pieces if self.frames.lengths else _ended(pieces, self.frames.value_delimiter), self.frames)
        for some in _some(pairs):
            if self.frames.keys:
                yield pa.array([{"key": key, "value": value} for key, value in some], self.type)
            else:
                yield pa.array([{"value": value} for _, value in some], self.type)


def _split(pieces: Iterator[bytes], delimiter: bytes) -> Iterator[list[bytes]]:
    """The values of each piece; without a delimiter the whole file is one."""
    held = b""
    for piece in pieces:
        if not delimiter:
            held += piece
            continue
        *values, held = (held + piece).split(delimiter)
        if values:
            yield values
    if held:
        yield [held]


def _some(pairs: Iterator[tuple[bytes | None, bytes]]) -> Iterator[list[tuple[bytes | None, bytes]]]:
    """As many at a time as fit into some MiB."""
    held: list[tuple[bytes | None, bytes]] = []
    size = 0
    for pair in pairs:
        held.append(pair)
        size += _AROUND + len(pair[1])
        if size >= _ENOUGH:
            yield held
            held, size = [], 0
    if held:
        yield held


def _ended(pieces: Iterator[bytes], delimiter: bytes) -> Iterator[bytes]:
    """With the delimiter behind the last record, which others may leave out."""
    tail = delimiter
    for piece in pieces:
        tail = (tail + piece)[-len(delimiter) :] if delimiter else b""
        yield piece
    if tail != delimiter:
        yield delimiter
