"""A part of a schema on its way to columns."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from penstock.columnar import walk


@dataclass(slots=True)
class Node:
    """A part of a schema. `number`: its row in the table; `nullable`: the branch of null beside it, or -1.

    `member`: whether it is null with something around it: a branch of a union that is not chosen.
    """

    number: int
    kind: int
    type: pa.DataType
    nullable: int = -1
    children: list[Node | None] = field(default_factory=list)
    size: int = 0
    symbols: tuple[str, ...] = ()
    limit: int = 0
    member: bool = False

    @property
    def optional(self) -> bool:
        """Whether a value of it may be null."""
        return self.nullable >= 0 or self.member or self.kind in (walk.NULL, walk.UNION)

    @property
    def silent(self) -> bool:
        """Whether it has no values of its own: it is there as often as its first child."""
        return self.kind == walk.RECORD and not self.optional

    def arrow(self, name: str) -> pa.Field:
        """As a field."""
        return pa.field(name, self.type, nullable=self.optional)
