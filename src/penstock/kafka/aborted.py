"""Which batches of a response belong to aborted transactions (the rule of Kafka's own consumer)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.kafka.walk import ATTRIBUTES, LAST_OFFSET, PRODUCER_ID, markers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

TRANSACTIONAL, CONTROL = 16, 32  # attribute bits
_ABORT = 0


class AbortedTransaction(NamedTuple):
    """A transaction that the broker lists as aborted: whose, and its first offset in the partition."""

    producer_id: int
    first_offset: int


def aborted_batches(
    data: NDArray[np.uint8], table: NDArray[np.int64], transactions: Sequence[AbortedTransaction]
) -> tuple[NDArray[np.bool_], int]:
    """Whether each batch of a response's table is aborted, and how many rows could be judged.

    Fewer than all when the row behind them is a malformed control batch. A transaction of the list is open from its
    first offset to its producer's next abort marker.
    """
    aborted = np.zeros(len(table), np.bool_)
    if not transactions:
        return aborted, len(table)
    control = np.flatnonzero(table[:, ATTRIBUTES] & CONTROL)
    kinds = np.empty(len(control), np.int64)
    sound = markers(data, table[control], kinds)
    kind_at = dict(zip(control[:sound].tolist(), kinds[:sound].tolist(), strict=True))
    judged = len(table) if sound == len(control) else int(control[sound])
    waiting = sorted(transactions, key=lambda each: each.first_offset, reverse=True)
    opened: set[int] = set()
    columns = table[:judged, [LAST_OFFSET, ATTRIBUTES, PRODUCER_ID]].tolist()
    for row, (last, attributes, producer) in enumerate(columns):
        while waiting and waiting[-1].first_offset <= last:
            opened.add(waiting.pop().producer_id)
        if attributes & CONTROL:
            if kind_at[row] == _ABORT:
                opened.discard(producer)
        elif attributes & TRANSACTIONAL and producer in opened:
            aborted[row] = True
    return aborted, judged
