"""Our own Schema Registry for development, as a process."""

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
    port = str(site.settings.ports["schema-registry"])
    data = site.home / "schemas.jsonl"
    return Launch(command=(sys.executable, "-m", "penstock.dev.registry_server", "--port", port, "--data", data))


def _answers(settings: Settings) -> str | None:
    try:
        requests.get(f"{settings.url('schema-registry')}/subjects", timeout=2).raise_for_status()
    except requests.RequestException as error:
        return str(error)
    return None


SERVICE = Service(name="schema-registry", ports=("schema-registry",), fetch=_fetch, prepare=_prepare, answers=_answers)
