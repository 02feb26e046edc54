"""tools/setup.py where it cannot go on: one sentence, exit code 1."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path):
    """What set-up reads of a checkout, in a folder of its own."""
    root = tmp_path / "checkout"
    for name in ("tools/setup.py", "requirements/dev.txt", "pyproject.toml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    return root


def set_up(checkout, *start, **env):
    command = [sys.executable, *(start or ("tools/setup.py",))]
    environment = {"PATH": os.environ["PATH"], "HOME": str(checkout), **env}
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def sentence(done):
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("set-up stopped: ")
    return lines[0]


def run_with(patch):
    return ("-c", f"import runpy, shutil, sys; {patch}; runpy.run_path('tools/setup.py', run_name='__main__')")


def test_without_network(checkout):
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "1", "PIP_NO_INDEX": "false"}
    assert "the package index cannot be reached: check the network" in sentence(set_up(checkout, **nowhere))


def test_with_an_old_python(checkout):
    told = sentence(set_up(checkout, *run_with("sys.version_info = (3, 9, 18)")))
    assert "Python 3.10 or newer is needed, this is 3.9.18: run `make setup PYTHON=" in told


def test_an_old_python_can_parse_the_script_that_tells_it_so():
    ast.parse((ROOT / "tools" / "setup.py").read_text(), feature_version=(3, 7))


def test_without_the_venv_module(checkout):
    # What Debian's Python without python3-venv does.
    fake = checkout / "fake"
    fake.mkdir()
    (fake / "venv.py").write_text("raise SystemExit('The virtual environment was not created: ensurepip is missing.')")
    assert "this Python has no venv module: install it" in sentence(set_up(checkout, PYTHONPATH=str(fake)))


def test_with_a_full_disk(checkout):
    full = run_with("shutil.disk_usage = lambda _: type('Usage', (), {'free': 1_000_000})")
    assert "has less than 3 GB free: make room" in sentence(set_up(checkout, *full))
    assert not (checkout / ".venv").exists()


def test_with_a_package_that_is_not_the_locked_one(checkout):
    lock = checkout / "requirements" / "dev.txt"
    whole = lock.read_text()
    start = whole.index("\nuv==") + 1
    lock.write_text(whole[:start] + _with_wrong_sums(whole[start:]))
    environment = {
        name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTP", "http"))
    }
    assert "a package is not the one that the lock names" in sentence(set_up(checkout, **environment))


def _with_wrong_sums(text):
    return "".join(
        line.replace(line.split("sha256:")[1][:64], "0" * 64) if "sha256:" in line else line
        for line in text.splitlines(keepends=True)
    )
