"""The keys of a state log: the only place that makes and reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNDER_WAY = re.compile(r"\d{20}\.json-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Names:
    """`prefix`: `<state.dir>/<connector>/`, with the slash."""

    prefix: str

    @property
    def entries(self) -> str:
        """What the keys of all entries begin with."""
        return f"{self.prefix}log/"

    @property
    def hint(self) -> str:
        """The object that names the newest checkpoint."""
        return f"{self.prefix}checkpoint/latest.json"

    def entry(self, seq: int) -> str:
        """The key of an entry."""
        return f"{self.entries}{seq:020d}.json"

    @property
    def checkpoints(self) -> str:
        """What the keys of all checkpoints begin with, and that of the hint."""
        return f"{self.prefix}checkpoint/"

    def checkpoint(self, seq: int) -> str:
        """The key of the checkpoint behind an entry."""
        return f"{self.checkpoints}{seq:020d}.json"

    @property
    def object_lists(self) -> str:
        """What the keys of all lists of objects begin with."""
        return f"{self.prefix}objects/"

    def objects(self, first: int, last: int) -> str:
        """The key of the list of objects that the entries `first` to `last` committed."""
        return f"{self.object_lists}{first:020d}-{last:020d}.parquet"

    def restored(self, restore: str, part: str) -> str:
        """The key of a part of a restore's map of offsets."""
        return f"{self.prefix}restore/{restore}/{part}.json"

    def probe(self, writer: str) -> str:
        """Where conditional writes are tried out."""
        return f"{self.prefix}probe/{writer}"

    def seq_of_entry(self, key: str) -> int | None:
        """The seq in an entry's key."""
        digits = key.removeprefix(self.entries).removesuffix(".json")
        return int(digits) if digits.isdecimal() else None

    def is_under_way(self, key: str) -> bool:
        """Whether a key is what a server that keeps files lists while it writes an entry: the entry's, and a UUID."""
        return _UNDER_WAY.fullmatch(key.removeprefix(self.entries)) is not None

    def seq_of_checkpoint(self, key: str) -> int | None:
        """The seq in a checkpoint's key; None for the hint's."""
        digits = key.removeprefix(self.checkpoints).removesuffix(".json")
        return int(digits) if digits.isdecimal() else None

    def span_of_objects(self, key: str) -> tuple[int, int] | None:
        """The first and last entry in the key of a list of objects."""
        first, _, last = key.removeprefix(self.object_lists).removesuffix(".parquet").partition("-")
        return (int(first), int(last)) if first.isdecimal() and last.isdecimal() else None
