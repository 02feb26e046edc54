"""What lies in a bucket compared with what was produced: each record once, and only what commits name."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.statelog.history import entries
from penstock.statelog.names import Names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.store.s3 import S3Store


@dataclass(frozen=True)
class Audit:
    """`lost`, `doubled`: records. `uncommitted`, `missing`: keys of objects that only a listing or only a commit has.

    `uploads`: multipart uploads that nobody ended.
    """

    records: int
    lost: int
    doubled: int
    uncommitted: frozenset[str]
    missing: frozenset[str]
    miscounted: frozenset[str]
    uploads: int

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.uncommitted or self.missing or self.miscounted or self.uploads)


def audit(store: S3Store, connector: str, produced: Iterable[bytes], topics_dir: str = "topics") -> Audit:
    """`produced`: the values, each of them unique, of a connector whose objects are lines."""
    names = Names(f"_penstock/{connector}/")
    committed = {each.key: each for e in entries(store, names) for c in e.commits for each in c.objects}
    lines = {each.key: store.get(each.key).split(b"\n")[:-1] for each in store.list(f"{topics_dir}/")}
    wanted = Counter(produced)
    found = Counter(line for each in lines.values() for line in each)
    return Audit(
        wanted.total(),
        (wanted - found).total(),
        (found - wanted).total(),
        frozenset(lines.keys() - committed.keys()),
        frozenset(committed.keys() - lines.keys()),
        frozenset(key for key, each in committed.items() if key in lines and each.records != len(lines[key])),
        sum(1 for _ in store.uploads("")),
    )
