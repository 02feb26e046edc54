"""The broker with every way to log in, for all that must get in or be refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from certificates import authority
from secured_broker import SecuredBroker, secured_broker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def secured_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds `root.pem`, the authority of that broker, and `other.pem`, which it does not know."""
    return tmp_path_factory.mktemp("secured")


@pytest.fixture(scope="session")
def secured(secured_folder: Path) -> Iterator[SecuredBroker]:
    """The broker, running."""
    with secured_broker(secured_folder) as running:
        (secured_folder / "root.pem").write_text(running.root.certificate_pem)
        (secured_folder / "other.pem").write_text(authority("Some Other Root").certificate_pem)
        yield running
