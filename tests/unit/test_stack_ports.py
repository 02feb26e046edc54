"""Which ports a new stack takes."""

import pytest

from penstock.dev.settings import new
from penstock.errors import PenstockError


def test_ports_are_all_different_and_of_the_range_that_is_asked_for(monkeypatch):
    monkeypatch.setenv("PENSTOCK_PORTS", "23000-23099")
    ports = list(new("s3proxy", "b").ports.values())
    assert len(set(ports)) == 5
    assert all(23_000 <= port < 23_100 for port in ports)


@pytest.mark.parametrize("given", ["", "20000", "20000-20098", "20000-x", "0-500", "65000-65600", "30000-20000"])
def test_what_is_no_range_of_ports_is_one_sentence(monkeypatch, given):
    monkeypatch.setenv("PENSTOCK_PORTS", given)
    with pytest.raises(PenstockError, match=f"PENSTOCK_PORTS must be a range .*, got `{given}`"):
        new("s3proxy", "b")
