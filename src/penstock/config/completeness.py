"""When a time partition counts as complete (docs/operating.md)."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.config.declare import prop
from penstock.config.kinds import LONG_MAX, Bool, Int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletenessConfig:
    """Marking time partitions that have all their records."""

    markers: bool = prop(
        "complete.markers",
        Bool(),
        default="false",
        origin="Penstock",
        doc="Whether a time partition that is complete is recorded in the state log and gets an empty object "
        "`_SUCCESS` (docs/operating.md).",
    )
    lateness_ms: int = prop(
        "complete.lateness.ms",
        Int(0, LONG_MAX),
        default="0",
        origin="Penstock",
        doc="How much later than its end the records of a topic-partition must have got before a time partition is "
        "complete.",
    )
