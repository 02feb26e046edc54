"""The map from old offsets to new ones, and where a restore stands in a topic-partition (pure).

Both are stored as metadata of the offsets that are committed with each transaction, so that a killed restore knows
exactly what it did. Rows that do not fit there any more are moved to objects, which a position names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from penstock.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_METADATA = 3500
"""Bytes; Kafka's `offset.metadata.max.bytes` is 4096 where nobody changed it."""


class Row(msgspec.Struct, frozen=True, array_like=True):
    """Old offsets `[old_start, old_end)` became new ones `[new_start, new_end)`, in order.

    Where all three numbers are the same, each old offset has its new one at the same distance.
    """

    old_start: int
    old_end: int
    new_start: int
    new_end: int
    records: int

    @property
    def is_exact(self) -> bool:
        """Whether the new offset of each old one is known."""
        return self.old_end - self.old_start == self.new_end - self.new_start == self.records


class Position(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a restore stands: `done` wanted records of the segment that begins at `segment`; None: all of it.

    `selection`: what was asked for. `rows`: the newest of the map; `moved`: the object that holds those before them.
    """

    selection: str
    segment: int
    done: int | None = 0
    rows: tuple[Row, ...] = ()
    moved: str = ""

    @property
    def metadata(self) -> str:
        """As it is stored."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def read(cls, metadata: str, group: str) -> Position:
        """What was stored.

        Raises:
            StateError: somebody else commits offsets to this group.
        """
        try:
            return msgspec.json.decode(metadata, type=cls)
        except msgspec.DecodeError as error:
            msg = (
                f"consumer group `{group}` has offsets that no restore committed; choose another name for the restore "
                "with --name"
            )
            raise StateError(msg) from error


@dataclass(frozen=True, slots=True)
class Sent:
    """A record that has its new offset. `start`, `end`: its old offset and the one behind; else its segment's."""

    start: int
    end: int
    new: int
    is_known: bool


def rows(sent: Iterable[Sent]) -> list[Row]:
    """The map of records of one partition, in order. Records whose old offset is not known share a row."""
    made: list[Row] = []
    was_known = False
    for each in sent:
        last = made[-1] if made else None
        follows = last is not None and each.new == last.new_end and each.is_known == was_known
        if last is not None and follows and each.is_known and each.start == last.old_end:
            made[-1] = Row(last.old_start, each.end, last.new_start, each.new + 1, last.records + 1)
        elif last is not None and follows and not each.is_known and each.end == last.old_end:
            made[-1] = Row(last.old_start, last.old_end, last.new_start, each.new + 1, last.records + 1)
        else:
            made.append(Row(each.start, each.end, each.new, each.new + 1, 1))
        was_known = each.is_known
    return made
