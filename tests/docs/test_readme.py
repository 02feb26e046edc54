"""The README's quickstart by hand, typed as it stands there, by a user whose home folder is empty."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from penstock.dev import stack
from penstock.dev.quickstart import KEYS

pytestmark = [pytest.mark.stack, pytest.mark.spark]

ROOT = Path(__file__).parents[2]


def section(headline):
    return (ROOT / "README.md").read_text(encoding="utf-8").partition(f"## {headline}\n")[2].partition("\n## ")[0]


def typed(blocks, home):
    """Run blocks of commands one after the other, as one session."""
    # Whatever is downloaded once is not part of the home folder here.
    cache = os.environ.get("PENSTOCK_CACHE", str(Path("~/.cache/penstock").expanduser()))
    environment = {**os.environ, "HOME": str(home), "PENSTOCK_CACHE": cache}
    environment.pop("PENSTOCK_DIR", None)
    return subprocess.run(
        ["bash", "-c", "\necho ---\n".join(["set -euo pipefail", *blocks])],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        timeout=500,
        check=False,
    )


def test_the_quickstart_by_hand_shows_what_the_readme_says(tmp_path):
    text = section("The quickstart by hand")
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    blocks = [commands for language, commands in fenced if language == "bash"]
    (promised,) = (shown for language, shown in fenced if not language)
    try:
        done = typed(blocks, tmp_path)
    finally:
        stack.destroy(tmp_path / ".penstock", lambda _: None)
    assert done.returncode == 0, done.stderr
    _, started, produced, written, background, _ = done.stdout.split("---\n")
    assert "bootstrap.servers" in started
    assert produced == ""
    listing, there, behind = written.partition(promised)
    assert there
    assert behind == ""
    assert [key for key in KEYS if key in listing] == list(KEYS)
    assert "s3_topic" in background
    assert not (tmp_path / ".penstock").exists()
