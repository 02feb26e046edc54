"""The objects that name the newest index of each topic-partition, for readers of block-GZIP that look for them.

Written over after each commit, and once more at a start for the last one, so that no crash leaves an old name for
longer. They are never read back: where a connector goes on, its state log says (reference peers A.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.keys import filled
from penstock.store.base import Anything

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.model import Commit
    from penstock.store.base import Store


@dataclass(frozen=True, slots=True)
class NewestIndexes:
    """Writes them. `path`: `last.chunk.index.path`; `pad_width`: of its `padding=true`."""

    store: Store
    path: str
    pad_width: int

    def write(self, commits: Iterable[Commit]) -> None:
        """Name the last index of each commit that has one. Raises `StoreUnavailable`."""
        for commit in commits:
            keys = [each.key for each in sorted(commit.objects, key=lambda one: one.start) if each.view == "index"]
            if self.path and keys:
                self.store.put(filled(self.path, commit.tp, self.pad_width), keys[-1].encode(), Anything())
