"""Object keys longer than S3 takes: told of the record whose fields make them, before anything is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.companions import companion_key
from penstock.partitioners.base import Labels, Refusal

if TYPE_CHECKING:
    from penstock.companions import Companion
    from penstock.keys import Layout
    from penstock.model import TopicPartition
    from penstock.partitioners.base import Batch, Partitioner

MOST_BYTES = 1024
_LAST_OFFSET = 2**63 - 1  # the longest there is, so that the answer does not depend on where a file begins
_MOST_OF_ONE = 9  # bytes of a character: three in UTF-8, each of them percent-encoded
_SHOWN = 80


def too_long(key: str) -> str | None:
    """What is wrong with the length of a key, in words that follow "topic-partition@offset: "; None if nothing is."""
    size = len(key.encode())
    if size <= MOST_BYTES:
        return None
    return (
        f"its object key would have {size} bytes, and S3 takes {MOST_BYTES}; shorten the fields of the partitioner, "
        f"path.format or topics.dir; it begins with `{key[:_SHOWN]}`"
    )


@dataclass(frozen=True, slots=True)
class Bounded:
    """A partitioner that refuses records whose encoded partition makes a key too long.

    Where even an empty one would be too long, it is no record's fault, and the first object is refused instead.
    """

    partitioner: Partitioner
    layout: Layout
    companions: tuple[Companion, ...] = ()

    def encode(self, batch: Batch) -> Labels:
        """The partitioner's labels, with more refusals."""
        labels, tp = self.partitioner.encode(batch), batch.records.tp
        room = MOST_BYTES - len(self._longest(tp, "").encode())
        if room < 0:
            return labels
        suspects = [code for code, name in enumerate(labels.names) if _MOST_OF_ONE * len(name) > room]
        wrong = {code: why for code in suspects if (why := too_long(self._longest(tp, labels.names[code]))) is not None}
        if not wrong:
            return labels
        codes = np.zeros(len(batch.records), np.int32) if labels.codes is None else labels.codes
        known = {each.row: each for each in labels.refusals}
        rows = np.flatnonzero(np.isin(codes, list(wrong))).tolist()
        every = {row: Refusal(row, wrong[int(codes[row])]) for row in rows} | known
        return Labels(labels.names, labels.codes, tuple(every[row] for row in sorted(every)))

    def _longest(self, tp: TopicPartition, label: str) -> str:
        """The longest key of an encoded partition."""
        key = self.layout.key(tp, label, _LAST_OFFSET)
        beside = [companion_key(key, self.layout.extension, each) for each in self.companions]
        return max([key, *beside], key=len)
