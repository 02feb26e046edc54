"""The worker that hosts connectors, as a process."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import requests

from penstock.dev.services.service import Launch, Service, Site

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.dev.settings import Settings


def _fetch(_: Callable[[str], None]) -> object:
    return None


def _prepare(site: Site) -> Launch:
    port = str(site.settings.ports["worker"])
    directory = site.home.parent
    return Launch(command=(sys.executable, "-m", "penstock.worker.main", "--dir", directory, "--port", port))


def _answers(settings: Settings) -> str | None:
    try:
        requests.get(f"{settings.url('worker')}/connectors", timeout=2).raise_for_status()
    except requests.RequestException as error:
        return str(error)
    return None


SERVICE = Service(
    name="worker",
    ports=("worker",),
    fetch=_fetch,
    prepare=_prepare,
    answers=_answers,
    grace_seconds=40.0,
    after_others=True,
)
