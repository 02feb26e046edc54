"""The family of partitioners: one file each, found by the short name of `partitioner.class`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.partitioners.default import DefaultPartitioner

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.partitioners.base import Partitioner

PARTITIONERS: dict[str, Callable[[], Partitioner]] = {
    "default": DefaultPartitioner,
}
