"""Which records a restore takes: offsets `[start, end)` per topic-partition, times `[from, to)`, both in one value."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FIRST, _BEYOND = 0, 2**63 - 1


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets `[start, end)` and record times `[from_ms, to_ms)` that are wanted; None is no limit."""

    start: int = _FIRST
    end: int = _BEYOND
    from_ms: int | None = None
    to_ms: int | None = None

    def holds(self, offset: int | None, timestamp: int | None) -> bool:
        """Whether a record is wanted; what is not known of it does not count."""
        return (offset is None or self.start <= offset < self.end) and (
            timestamp is None
            or ((self.from_ms is None or timestamp >= self.from_ms) and (self.to_ms is None or timestamp < self.to_ms))
        )


@dataclass(frozen=True, slots=True)
class Selection:
    """What a user asked for. `starts`, `ends`: by topic-partition; under None what holds for all others."""

    topics: tuple[str, ...] = ()
    starts: Mapping[TopicPartition | None, int] = field(default_factory=dict)
    ends: Mapping[TopicPartition | None, int] = field(default_factory=dict)
    from_ms: int | None = None
    to_ms: int | None = None

    def covers(self, topic: str) -> bool:
        """Whether a topic is wanted."""
        return not self.topics or topic in self.topics

    def span(self, tp: TopicPartition) -> Span:
        """What is wanted of a topic-partition."""
        return Span(
            self.starts.get(tp, self.starts.get(None, _FIRST)),
            self.ends.get(tp, self.ends.get(None, _BEYOND)),
            self.from_ms,
            self.to_ms,
        )

    @property
    def text(self) -> str:
        """The limits in one form: two runs go on with each other only where this is the same."""
        named = {"starts": self.starts, "ends": self.ends}
        limits: dict[str, object] = {
            name: {str(tp or "all"): offset for tp, offset in sorted(given.items(), key=lambda item: str(item[0]))}
            for name, given in named.items()
            if given
        }
        times = {"from_ms": self.from_ms, "to_ms": self.to_ms}
        limits |= {name: at for name, at in times.items() if at is not None}
        return json.dumps(limits, separators=(",", ":"))


def edges(texts: Sequence[str]) -> dict[TopicPartition | None, int]:
    """`OFFSET` for all topic-partitions, or `TOPIC-PARTITION=OFFSET`.

    Raises:
        ValueError: says which text is neither, or names a topic-partition a second time.
    """
    found: dict[TopicPartition | None, int] = {}
    for text in texts:
        name, _, digits = text.rpartition("=")
        topic, _, partition = name.rpartition("-")
        is_named = bool(topic) and partition.isdecimal()
        if not (digits.isdecimal() and (is_named or "=" not in text)):
            msg = f"must be OFFSET or TOPIC-PARTITION=OFFSET, got `{text}`"
            raise ValueError(msg)
        tp = TopicPartition(topic, int(partition)) if is_named else None
        if tp in found:
            msg = f"names {tp or 'all topic-partitions'} twice, the second time in `{text}`"
            raise ValueError(msg)
        found[tp] = int(digits)
    return found
