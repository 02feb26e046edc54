"""Kafka topics to S3 objects, exactly once, on Spark."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.sink import Sink
    from penstock.sources import register

__version__ = version("penstock")
__all__ = ["Sink", "__version__", "register"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module's own protocol
    """`Sink` and `register`, imported when they are asked for: what needs neither starts sooner."""
    if name == "Sink":
        from penstock.sink import Sink  # noqa: PLC0415

        return Sink
    if name == "register":
        from penstock.sources import register  # noqa: PLC0415

        return register
    msg = f"module `penstock` has no attribute `{name}`"
    raise AttributeError(msg)
