"""Which records a query fails on. Spark does not say, so the range is halved until each is found.

A query is deterministic and looks at one record at a time: a range fails if and only if one of its records does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.model import PlannedRange

MOST = 100
"""So many are looked for in one range; the next plan goes on behind them."""


def culprits(
    planned: PlannedRange, fails: Callable[[PlannedRange], str | None], *, every: bool
) -> tuple[dict[int, str], int]:
    """(offset -> why the query fails on it, the offset up to which they are known).

    `fails`: why the query fails over a range, None where it does not. `every`: not only the first.
    """
    found: dict[int, str] = {}
    start = planned.start
    while (told := fails(replace(planned, start=start))) is not None:
        end, failed = planned.end, (start, planned.end)
        while end - start > 1:
            half = (start + end) // 2
            why = fails(replace(planned, start=start, end=half))
            if why is None:
                start = half
            else:
                end, told, failed = half, why, (start, half)
        # What fails over more than it, and not over the one record that is left, is no record's fault.
        if failed != (start, end) and (told := fails(replace(planned, start=start, end=end))) is None:
            return found, start
        found[start] = told
        start += 1
        if start >= planned.end:
            break
        if not every or len(found) == MOST:
            return found, start
    return found, planned.end
