"""Where a worker's log lines go: all of them to stderr, and those of a connector to a file of its own as well."""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar
from logging.handlers import RotatingFileHandler
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from pathlib import Path

CONNECTOR: ContextVar[str] = ContextVar("connector", default="")
"""The connector that the running thread works for."""

_FORMAT = "%(asctime)s %(levelname)s %(message)s"
_FILE_BYTES = 10_000_000
_OLD_FILES = 3


def configure() -> None:
    """Send what Penstock logs to stderr, with the connector's name in front where there is one."""
    handler = _StandardError()
    handler.setFormatter(_WorkerFormatter(_FORMAT))
    logger = logging.getLogger("penstock")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


def open_file(folder: Path, name: str) -> logging.Handler:
    """Begin to write the lines of the connector `name` to `folder/name.log` too."""
    folder.mkdir(parents=True, exist_ok=True)
    handler = RotatingFileHandler(
        folder / f"{name}.log", maxBytes=_FILE_BYTES, backupCount=_OLD_FILES, encoding="utf-8"
    )
    handler.addFilter(lambda _record: CONNECTOR.get() == name)
    handler.setFormatter(logging.Formatter(_FORMAT))
    logging.getLogger("penstock").addHandler(handler)
    return handler


def close_file(handler: logging.Handler) -> None:
    """End what `open_file` began."""
    logging.getLogger("penstock").removeHandler(handler)
    handler.close()


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to what `sys.stderr` is at the time, so that a progress line moves out of the way."""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, _: TextIO) -> None:
        pass


class _WorkerFormatter(logging.Formatter):
    """Puts `[name]` in front of a connector's lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        name = CONNECTOR.get()
        line = super().formatMessage(record)
        return f"[{name}] {line}" if name else line
