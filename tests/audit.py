"""What lies in a bucket compared with what was produced: each record once, and only what commits name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.statelog.history import entries
from penstock.statelog.names import Names

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.store.s3 import S3Store


@dataclass(frozen=True)
class Audit:
    """`lost`, `doubled`: records, by reading every object. `uncommitted`, `missing`: keys that only a listing has, or
    only a commit. `miscounted`: objects that hold another number of records than their commit says. `uploads`:
    multipart uploads that nobody ended.
    """

    records: int
    objects: int
    lost: int
    doubled: int
    uncommitted: tuple[str, ...]
    missing: tuple[str, ...]
    miscounted: tuple[str, ...]
    uploads: int

    @property
    def is_clean(self) -> bool:
        found = (self.uncommitted, self.missing, self.miscounted)
        return not (self.lost or self.doubled or any(found) or self.uploads)


def audit(store: S3Store, connector: str, produced: np.ndarray, ids: Callable[[bytes], np.ndarray]) -> Audit:
    """A bucket that one connector has for itself.

    `produced`: a number for each record there is to write. `ids`: the numbers of those that an object holds."""
    names = Names(f"_penstock/{connector}/")
    committed = {each.key: each for e in entries(store, names) for c in e.commits for each in c.objects}
    held = {each.key: ids(store.get(each.key)) for each in store.list("topics/")}
    found = np.concatenate([*held.values(), np.array([], np.int64)])
    known, number = np.unique(np.concatenate([produced, found]), return_inverse=True)
    wanted = np.bincount(number[: len(produced)], minlength=len(known))
    there = np.bincount(number[len(produced) :], minlength=len(known))
    return Audit(
        len(produced),
        len(held),
        int(np.maximum(wanted - there, 0).sum()),
        int(np.maximum(there - wanted, 0).sum()),
        tuple(sorted(held.keys() - committed.keys())),
        tuple(sorted(committed.keys() - held.keys())),
        tuple(sorted(key for key, each in committed.items() if key in held and each.records != len(held[key]))),
        sum(1 for _ in store.uploads("")),
    )
