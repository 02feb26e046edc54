"""The family of timestamp extractors: one file each, found by the short name of `timestamp.extractor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.extractors.record import RecordExtractor
from penstock.extractors.recordfield import RecordFieldExtractor
from penstock.extractors.wallclock import WallclockExtractor

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.partitioners.base import Extractor
    from penstock.partitioners.zones import Zone

EXTRACTORS: dict[str, Callable[[str, Zone], Extractor]] = {
    "wallclock": lambda _field, _zone: WallclockExtractor(),
    "record": lambda _field, _zone: RecordExtractor(),
    "recordfield": RecordFieldExtractor,
}
"""Short name -> maker from (`timestamp.field`, `timezone`)."""
