"""Where rows of the map go that a position's metadata cannot hold: objects beside the state log, each naming the last.

An object counts only if a committed position leads to it, so one that a killed transaction left changes nothing.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from penstock.errors import StateError
from penstock.restore.offsets import MOST_METADATA, Position, Row
from penstock.store.base import Create, NotFoundError

if TYPE_CHECKING:
    from penstock.statelog.names import Names
    from penstock.store.base import Store


class _Stored(msgspec.Struct, frozen=True):
    """An object. `previous`: the part in the name of the one before it, or ""."""

    previous: str
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class Maps:
    """The objects of the restore called `name`."""

    store: Store
    names: Names
    name: str

    def fitted(self, position: Position) -> Position:
        """The position with its rows moved to an object where they are too many. Raises `StoreUnavailable`."""
        if len(position.metadata) <= MOST_METADATA:
            return position
        part = uuid.uuid4().hex
        body = msgspec.json.encode(_Stored(position.moved, list(position.rows)))
        self.store.put(self.names.restored(self.name, part), body, Create())
        return msgspec.structs.replace(position, rows=(), moved=part)

    def rows(self, position: Position) -> list[Row]:
        """The whole map up to a position, in order.

        Raises:
            StateError: an object is missing or damaged.
        """
        pieces, part = [list(position.rows)], position.moved
        while part:
            key = self.names.restored(self.name, part)
            try:
                stored = msgspec.json.decode(self.store.get(key), type=_Stored)
            except (NotFoundError, msgspec.DecodeError) as error:
                msg = (
                    f"`{key}`, a part of the map of offsets, is missing or damaged; bring it back from a bucket version"
                )
                raise StateError(msg) from error
            pieces.append(stored.rows)
            part = stored.previous
        return [row for piece in reversed(pieces) for row in piece]
