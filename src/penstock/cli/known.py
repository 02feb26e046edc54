"""Which connector a command is about: its file, or the name under which the stack's worker has it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.config import SinkConfig
    from penstock.kafka.settings import KafkaSettings

connector_argument = click.argument("connector", metavar="FILE-OR-NAME")


def known(connector: str, worker: Path | None, directory: Path) -> tuple[SinkConfig, KafkaSettings]:
    """The configuration of a connector.

    Raises:
        UsageError: there is neither such a file nor such a connector.
        ConfigError: its configuration is wrong.
    """
    from penstock.loading import load
    from penstock.worker import saved

    if Path(connector).is_file():
        return load(Path(connector), worker, directory)
    every = {each.name: each for each in saved.read_all(directory / "worker" / "connectors")}
    if connector in every:
        return load(every[connector].config, worker, directory)
    names = ", ".join(f"`{name}`" for name in sorted(every)) or "none"
    msg = f"there is no file `{connector}`, and the embedded stack has no connector of that name; it has: {names}"
    raise UsageError(msg)
