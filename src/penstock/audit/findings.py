"""What an audit finds, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "entry.missing",
    "entry.damaged",
    "entry.changed",
    "entry.contradicts",
    "checkpoint.differs",
    "list.differs",
    "range.gap",
    "range.overlap",
    "object.twice",
    "object.missing",
    "object.size",
    "object.etag",
    "object.checksum",
    "object.records",
    "object.orphaned",
    "object.foreign",
    "kafka.differs",
    "kafka.unreadable",
]
"""docs/operating.md says what each means and what to do."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing that is not as it must be. `where`: an object key, an entry, or topic-partition and offsets."""

    kind: Kind
    where: str
    what: str


@dataclass(frozen=True, slots=True, order=True)
class Note:
    """Something that a reader of the audit should know, and that a person decided or that will pass by itself."""

    where: str
    what: str
