"""Records of raw files: what stands between them, or their lengths, as the connector's configuration has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.config.kinds import Separator
from penstock.frames import Frames, unframed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


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

    def rows(self, data: bytes) -> pa.Array:
        """The records of a file. Raises ValueError where a length does not fit."""
        if not self.frames.keys:
            return pa.array([{"value": value} for value in self._values(data)], self.type)
        pairs = unframed((self._ended(data),), self.frames)
        return pa.array([{"key": key, "value": value} for key, value in pairs], self.type)

    def _values(self, data: bytes) -> Iterable[bytes]:
        if self.frames.lengths:
            return (value for _, value in unframed((data,), self.frames))
        # Split at once: without keys it is many times faster than record by record.
        delimiter = self.frames.value_delimiter
        return self._ended(data)[: -len(delimiter)].split(delimiter) if data and delimiter else filter(None, [data])

    def _ended(self, data: bytes) -> bytes:
        """With the delimiter behind the last record, which others may leave out."""
        delimiter = self.frames.value_delimiter
        return data if self.frames.lengths or not data or data.endswith(delimiter) else data + delimiter
