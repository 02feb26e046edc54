"""The development registry, for all that look a schema up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from embedded_registry import Registered, embedded_registry

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registered]:
    """A registry with only what the tests of one file put there."""
    with embedded_registry(tmp_path_factory.mktemp("registry")) as entered:
        yield entered
