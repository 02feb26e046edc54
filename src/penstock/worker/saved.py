"""Which connectors a worker hosts, on disk, so that a restarted one goes on with them.

One file per connector, readable by its owner alone: configurations may hold secrets.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True, slots=True)
class SavedConnector:
    """What the user asked for. `config`: as written, variables not replaced."""

    name: str
    config: Mapping[str, str] = field(repr=False)
    paused: bool = False


def check_name(name: str, taken: frozenset[str]) -> None:
    """Raises ConfigError unless `name` can name a file and none of the stack's own services."""
    if not _NAME.fullmatch(name):
        msg = (
            f"a connector's name must be 1 to 128 letters, digits, `.`, `_` or `-` and begin with a letter or digit, "
            f"got `{name}`"
        )
        raise ConfigError([msg])
    if name in taken:
        raise ConfigError([f"`{name}` is a service of the embedded stack: choose another name for the connector"])


def read_all(folder: Path) -> list[SavedConnector]:
    """Every saved connector, by name. Raises ConfigError for a file that is none."""
    return [_read(path) for path in sorted(folder.glob("*.json"))]


def write(folder: Path, connector: SavedConnector) -> None:
    """Save a connector whole or not at all."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    document = {"name": connector.name, "config": dict(connector.config), "paused": connector.paused}
    draft = folder / f"{connector.name}.json.new"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=2)
    draft.replace(_path(folder, connector.name))


def remove(folder: Path, name: str) -> None:
    """Forget a connector; nothing happens if it is not there."""
    _path(folder, name).unlink(missing_ok=True)


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def _read(path: Path) -> SavedConnector:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return SavedConnector(document["name"], dict(document["config"]), bool(document["paused"]))
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            [f"{path}: is no saved connector ({error}); remove it and load the connector again"]
        ) from None
