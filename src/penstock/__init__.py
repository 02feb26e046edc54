"""Kafka topics to S3 objects, exactly once, on Spark."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.sink import Sink

__version__ = version("penstock")
__all__ = ["Sink", "__version__"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module's own protocol
    """`penstock.Sink`, imported when it is asked for: workers and commands that need no sink start sooner."""
    if name == "Sink":
        from penstock.sink import Sink  # noqa: PLC0415

        return Sink
    msg = f"module `penstock` has no attribute `{name}`"
    raise AttributeError(msg)
