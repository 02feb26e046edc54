"""Records of raw files: what stands between them, or their lengths, as the connector's configuration has it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.config.kinds import Separator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Framing:
    """How a raw file is read. `lengths`: of keys and values stand before them; `keys`: whether there are any.

    `key_separator`: between key and value of text records with keys.
    """

    separator: bytes = b"\n"
    lengths: bool = False
    keys: bool = False
    key_separator: bytes = b""

    @classmethod
    def of(cls, config: Mapping[str, str]) -> Framing:
        """What the properties that shape files say, as the state log has them."""

        def text(name: str, default: str) -> bytes:
            return Separator().parse(config.get(name, default)).encode()

        if config.get("format.class") != "block_gzip":
            return cls(text("format.bytearray.separator", "\n"))
        lengths = config.get("format") == "binary"
        between = text("format.key.delimiter", "")
        keys = config.get("format.include.keys", "").lower() == "true" if lengths else bool(between)
        return cls(text("format.value.delimiter", "\n"), lengths, keys, between)

    @property
    def type(self) -> pa.DataType:
        """The type of a record."""
        value = pa.field("value", pa.binary())
        return pa.struct([pa.field("key", pa.binary()), value]) if self.keys else pa.struct([value])

    def rows(self, data: bytes) -> pa.Array:
        """The records of a file. Raises ValueError where a length does not fit."""
        pairs: list[tuple[bytes | None, bytes | None]]
        if self.lengths:
            parts = list(_by_length(data))
            pairs = list(zip(parts[::2], parts[1::2], strict=True)) if self.keys else [(None, each) for each in parts]
        else:
            pairs = [self._pair(each) for each in self._lines(data)]
        if not self.keys:
            return pa.array([{"value": value} for _, value in pairs], self.type)
        return pa.array([{"key": key, "value": value} for key, value in pairs], self.type)

    def _lines(self, data: bytes) -> list[bytes]:
        """What stands between the separators; the last one ends the last record."""
        if not data or not self.separator:
            return [data] if data else []
        return data.removesuffix(self.separator).split(self.separator)

    def _pair(self, line: bytes) -> tuple[bytes | None, bytes | None]:
        if not self.keys:
            return None, line
        key, found, value = line.partition(self.key_separator)
        return (key, value) if found else (None, line)


def _by_length(data: bytes) -> Iterator[bytes | None]:
    at = 0
    while at < len(data):
        if len(data) - at < _LENGTH.size:
            msg = f"{len(data) - at} bytes at its end are no length"
            raise ValueError(msg)
        (size,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if size > len(data) - at:
            msg = f"a length of {size} at byte {at - _LENGTH.size} goes beyond its end"
            raise ValueError(msg)
        yield None if size < 0 else data[at : at + size]
        at += max(size, 0)
