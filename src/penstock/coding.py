"""Small numbers for names: what the compiled cutter sees of encoded partitions and of schemas.

The numbers hold within one range; nothing of them is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from penstock.cutter import MOST_SCHEMAS, Schemas

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from penstock.converters.base import FileSchema
    from penstock.cutter import Open
    from penstock.partitioners.base import Labels

_MANY, _APART = 4096, "\x00"


@dataclass(slots=True)
class LabelCodes:
    """Encoded partitions and their codes; forgets what is not open when there are many."""

    names: list[str] = field(default_factory=list)
    _codes: dict[str, int] = field(default_factory=dict)

    def code_of(self, name: str, *, apart: bool = False) -> int:
        """The code of one name. `apart`: not that of a label of the same name which a partitioner gave."""
        return self._code(_APART + name if apart else name)

    @staticmethod
    def shown(name: str) -> str:
        """A name of `names` as it stands in object keys."""
        return name.removeprefix(_APART)

    def codes(self, labels: Labels, rows: int) -> NDArray[np.int32]:
        """The code of each row's encoded partition."""
        mine = np.array([self._code(name) for name in labels.names], dtype=np.int32)
        return np.full(rows, mine[0], dtype=np.int32) if labels.codes is None else mine[labels.codes]

    def tidied(self, state: Open) -> Open:
        """The same state, with codes for its open labels only once there are too many others."""
        kept = state.labels
        if len(self.names) < max(_MANY, 2 * len(kept)):
            return state
        self.names = [self.names[code] for code in kept]
        self._codes = {name: code for code, name in enumerate(self.names)}
        return state.renumbered()

    def _code(self, name: str) -> int:
        code = self._codes.setdefault(name, len(self.names))
        if code == len(self.names):
            self.names.append(name)
        return code


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """`schema.compatibility` as the writer needs it.

    `joins`: (file's, record's) schema -> whether the record may enter the file. `newer`: whether the first schema is
    newer than the second. `lacks_version`: whether that cannot be said. All None where each schema keeps to itself.
    `interleave`: see `cutter.Rules`; `joins` then says whether a file under the first schema takes data of the second.
    """

    joins: Callable[[FileSchema, FileSchema], bool] | None = None
    newer: Callable[[FileSchema, FileSchema], bool] | None = None
    lacks_version: Callable[[FileSchema, FileSchema], bool] | None = None
    interleave: bool = False


@dataclass(slots=True)
class SchemaCodes:
    """A converter's schema codes as consecutive ones, and how they get on with each other."""

    schema: Callable[[int], FileSchema]
    rules: SchemaRules
    known: list[int] = field(default_factory=list)
    _lookup: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    _table: Schemas | None = None

    def codes(self, given: NDArray[np.int32]) -> NDArray[np.int32]:
        """Consecutive codes for the converter's."""
        top = int(given.max(initial=0)) + 1
        if top > len(self._lookup):
            self._lookup = np.concatenate([self._lookup, np.full(top - len(self._lookup), -1, dtype=np.int32)])
        codes = self._lookup[given]
        if codes.min(initial=0) < 0:
            for new in np.unique(given[codes < 0]):
                self._lookup[new] = len(self.known)
                self.known.append(int(new))
            self._table = None
            codes = self._lookup[given]
        return codes

    def table(self) -> Schemas:
        """How the codes given so far get on."""
        if self._table is None:
            self._table = self._make_table()
        return self._table

    def newest(self, codes: set[int]) -> int:
        """The newest of the converter's codes, as the table has it."""
        local = [int(self._lookup[code]) for code in sorted(codes)]
        newest, newer = local[0], self.table().newer
        for each in local[1:]:
            newest = int(newer[newest, each])
        return self.known[newest]

    def _make_table(self) -> Schemas:
        count, plain = len(self.known), Schemas.distinct(len(self.known))
        joins, newer = self.rules.joins, self.rules.newer
        schemas = [self.schema(code) for code in self.known]
        if joins is None and all(each.around is None for each in schemas):
            return plain
        for a in range(count):
            for b in range(count):
                if a == b:
                    continue
                if _has_room(schemas[a], schemas[b]):
                    plain.joins[a, b], plain.newer[a, b] = True, a
                    continue
                plain.joins[a, b] = joins is not None and joins(schemas[a], schemas[b])
                if newer is not None:
                    plain.newer[a, b] = a if newer(schemas[a], schemas[b]) else b
                if plain.joins[a, b] and max(a, b) < MOST_SCHEMAS:
                    plain.reads[a] |= np.uint64(1 << b)
        return plain


def _has_room(file: FileSchema, record: FileSchema) -> bool:
    """Whether a record differs from its file's envelope only in that its key, or its value, is null."""
    if file.around is None or record.around is None:
        return False
    return all(theirs in ("", ours) for ours, theirs in zip(file.around, record.around, strict=True))
