"""What the stack must know about a service to start it, to see that it answers, and to end it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from penstock.dev.settings import Settings


@dataclass(frozen=True, slots=True)
class Site:
    """Where a service lives. `home`: a folder of its own for its files and data."""

    home: Path
    settings: Settings


@dataclass(frozen=True, slots=True)
class Launch:
    """What is run. Secrets belong into `env` or into a file, never into `command`."""

    command: tuple[str | Path, ...]
    env: Mapping[str, str] = field(default_factory=dict)


def _as_it_is(site: Site) -> Settings:
    return site.settings


@dataclass(frozen=True, slots=True)
class Service:
    """One server.

    `ports`: names in `Settings.ports`, the one that users reach first. `fetch`: what it needs from outside, called
    with an echo. `prepare`: writes its files, and says what to run. `answers`: one real request; None, or why not yet.
    `ready`: called once it answers, before `start` returns; gives back the settings, changed where the server chose
    something. `after_others`: starts only when all services before it answer.
    """

    name: str
    ports: tuple[str, ...]
    fetch: Callable[[Callable[[str], None]], object]
    prepare: Callable[[Site], Launch]
    answers: Callable[[Settings], str | None]
    ready: Callable[[Site], Settings] = _as_it_is
    grace_seconds: float = 20.0
    start_seconds: float = 240.0
    after_others: bool = False
