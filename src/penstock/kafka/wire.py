"""The Fetch request on the wire, versions 4 to 11 (Kafka 0.11 to 4.x), its answer left undecoded where records are.

aiokafka writes the request and holds the connection; only the answer is ours, because aiokafka's copies the records.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.protocol.fetch import FetchRequest

from penstock.kafka.aborted import AbortedTransaction
from penstock.model import TopicPartition

if TYPE_CHECKING:
    from io import BytesIO

    from numpy.typing import NDArray

_OLDEST = 4  # isolation levels, and records of message format 2
_INT16, _INT32, _INT64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")
_TRANSACTION = struct.Struct(">qq")


@dataclass(frozen=True, slots=True)
class Part:
    """One topic-partition of an answer; its record batches are `data[start:end]` of it.

    `nearer`: a replica in the client's rack that it is to ask instead, or -1.
    """

    tp: TopicPartition
    error: int
    high_watermark: int
    last_stable: int
    aborted: tuple[AbortedTransaction, ...]
    start: int
    end: int
    nearer: int = -1


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to Fetch. `error` is that of the whole request."""

    throttle_ms: int
    error: int
    parts: tuple[Part, ...]
    data: NDArray[np.uint8] = field(repr=False)


class Fetch(FetchRequest):  # type: ignore[misc]  # aiokafka ships no types
    """A Fetch request that is answered with an Answer."""

    def prepare(self, versions: dict[int, tuple[int, int]]) -> Any:  # noqa: ANN401 - one of aiokafka's structs
        """Pick the newest version that both sides know."""
        request = super().prepare(versions)
        if request.API_VERSION < _OLDEST:
            msg = "the broker is older than Kafka 0.11"
            raise IncompatibleBrokerVersion(msg)
        request.RESPONSE_TYPE = _Decoder(request.API_VERSION)
        return request


@dataclass(frozen=True, slots=True)
class _Decoder:
    version: int

    def decode(self, stream: BytesIO) -> Answer:
        """Decode what follows the response header."""
        return _Reading(stream.getvalue(), stream.tell()).answer(self.version)


class _Reading:
    """One pass over the bytes of an answer; raises struct.error where they end too early."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def answer(self, version: int) -> Answer:
        throttle = self._number(_INT32)
        error = 0
        if version >= 7:  # noqa: PLR2004 - sessions, KIP-227
            error = self._number(_INT16)
            self._number(_INT32)
        parts = []
        for _ in range(self._number(_INT32)):
            topic = self._bytes(self._number(_INT16)).decode()
            parts.extend([self._part(topic, version) for _ in range(self._number(_INT32))])
        return Answer(throttle, error, tuple(parts), np.frombuffer(self._data, np.uint8))

    def _part(self, topic: str, version: int) -> Part:
        tp = TopicPartition(topic, self._number(_INT32))
        error = self._number(_INT16)
        high_watermark, last_stable = self._number(_INT64), self._number(_INT64)
        if version >= 5:  # noqa: PLR2004 - log start, KIP-107
            self._number(_INT64)
        listed = self._bytes(max(self._number(_INT32), 0) * _TRANSACTION.size)
        nearer = -1
        if version >= 11:  # noqa: PLR2004 - nearest replica, KIP-392; only for clients that name their rack
            nearer = self._number(_INT32)
        size = max(self._number(_INT32), 0)
        start = self._at
        self._skip(size)
        aborted = tuple(map(AbortedTransaction._make, _TRANSACTION.iter_unpack(listed)))
        return Part(tp, error, high_watermark, last_stable, aborted, start, start + size, nearer)

    def _number(self, kind: struct.Struct) -> int:
        (value,) = kind.unpack_from(self._data, self._at)
        self._at += kind.size
        return int(value)

    def _bytes(self, size: int) -> bytes:
        start = self._at
        self._skip(size)
        return self._data[start : self._at]

    def _skip(self, size: int) -> None:
        if not 0 <= size <= len(self._data) - self._at:
            msg = f"{size} bytes named where {len(self._data) - self._at} are left"
            raise struct.error(msg)
        self._at += size
