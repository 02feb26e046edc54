"""Breaks each guarantee on purpose, in a copy, and says which tests fail: `PYTHONPATH=tests python -m soak.broken`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[2]
BREAKS = {
    "no fencing: a log entry overwrites another one": (
        (
            "src/penstock/statelog/log.py",
            "self.store.put(key, body, Create())\n            except (",
            "self.store.put(key, body, Anything())\n            except (",
        ),
    ),
    "no takeover entry at the start": (
        (
            "src/penstock/statelog/log.py",
            "        self.read()\n        while True:",
            "        return self.read()\n        while True:",
        ),
    ),
    "no intent: nothing is recorded before the first byte is written": (
        (
            "src/penstock/engine.py",
            "head = self.log.append(intent=plan, config=self._changed_config())",
            "head = self.log.head",
        ),
        ("src/penstock/engine.py", "closes = seq if cycle.passing is None else None", "closes = None"),
    ),
    "the recorded configuration is ignored when a plan is run again": (
        (
            "src/penstock/engine.py",
            "return self.config if recorded is None else",
            "return self.config if recorded is not None else",
        ),
    ),
    "the recorded times are ignored when a plan is run again: a new clock is asked": (
        (
            "src/penstock/engine.py",
            "moved = (replace(r, start=max(r.start, positions.get(r.tp, r.start))) for r in plan.ranges)",
            (
                "now = __import__('time').time_ns() // 1_000_000\n    moved = (replace(r, arrivals=((r.end, now),), "
                "start=max(r.start, positions.get(r.tp, r.start))) for r in plan.ranges)"
            ),
        ),
    ),
    "the recorded reason to close is ignored when a plan is run again": (
        (
            "src/penstock/engine.py",
            "moved = (replace(r, start=max(r.start, positions.get(r.tp, r.start))) for r in plan.ranges)",
            (
                "moved = (replace(r, closing=None, start=max(r.start, positions.get(r.tp, r.start))) "
                "for r in plan.ranges)"
            ),
        ),
    ),
    "objects are overwritten, not created": (
        (
            "src/penstock/store/upload.py",
            "create(store, content, self.uploads.owner, put, Create())",
            "create(store, content, self.uploads.owner, put, Anything())",
        ),
        (
            "src/penstock/store/upload.py",
            "from penstock.store.base import Create",
            "from penstock.store.base import Anything, Create",
        ),
    ),
    "commit before upload: nobody waits for what is sent": (
        (
            "src/penstock/store/upload.py",
            "        return self.uploads.submit(lambda: self._tagged(self._put(body, content), tags), len(body))",
            (
                "        done: Future[StoredObject] = Future()\n"
                "        done.set_result(StoredObject(len(body), 'e', content.crc32c))\n"
                "        self.uploads.submit(lambda: self._put(body, content), len(body))\n        return done"
            ),
        ),
    ),
    "an answer that was never heard is taken for done": (
        (
            "src/penstock/statelog/log.py",
            "            else:\n                self._in_doubt = False\n                return entry",
            (
                "                if isinstance(error, OutcomeUnknownError):\n                    return entry\n"
                "            else:\n                self._in_doubt = False\n                return entry"
            ),
        ),
    ),
    "a commit goes on behind a failed upload": (
        (
            "src/penstock/rangewriter.py",
            "                self.stop(error)\n                return self._receipt(Commit(",
            "                self.stop(error)\n                continue\n                return self._receipt(Commit(",
        ),
    ),
    "left-over uploads are not swept": (
        (
            "src/penstock/store/upload.py",
            "            store.abort(upload)",
            "            pass",
        ),
    ),
    "a topic's id is not looked at": (
        (
            "src/penstock/discovery.py",
            "if found.get(tp.topic) in (None, known.get(tp.topic)):",
            "if found is not None:",
        ),
        ("src/penstock/running.py", "if tp.topic in known and found.get(", "if not known and found.get("),
    ),
}
TESTS = (
    "tests/property/test_engine.py",
    "tests/property/test_state_log.py",
    "tests/property/test_two_instances.py",
    "tests/conformance/test_crash_matrix.py",
    "tests/conformance/test_faulty_s3.py",
    "tests/integration/test_kafka_faults.py",
    "tests/integration/test_uploads.py",
    "tests/soak",
)


@click.command()
@click.argument("tests", nargs=-1)
@click.option("--only", default="", help="Breaks whose names contain this; several with a comma.")
def main(tests: tuple[str, ...], only: str) -> None:
    """A row of Markdown for each break."""
    click.echo("| broken on purpose | tests that fail |\n|---|---|")
    for what, patches in BREAKS.items():
        if not any(part in what for part in only.split(",")):
            continue
        failed = outcome(patches, tests or TESTS)
        click.echo(f"| {what} | {failed} |")


def outcome(patches: tuple[tuple[str, str, str], ...], tests: tuple[str, ...]) -> str:
    """The tests that fail in a copy with these replacements, by name and how often."""
    with tempfile.TemporaryDirectory(prefix="penstock-broken-") as temporary:
        copy = Path(temporary)
        for name in ("src", "tests"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        for name, old, new in patches:
            text = (copy / name).read_text()
            assert text.count(old) == 1, f"{name} has changed: {old}"
            (copy / name).write_text(text.replace(old, new))
        command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider", "--timeout=100"]
        command += ["--hypothesis-profile=unshrunk", *tests]
        path = os.pathsep.join((str(copy / "src"), str(copy / "tests")))
        environment = {**os.environ, "PYTHONPATH": path}
        said = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False).stdout
    names = re.findall(r"^(?:FAILED|ERROR) \S+::(\w+)", said, re.MULTILINE)
    assert names or " passed" in said, said[-2000:]
    return ", ".join(f"`{name}` ({names.count(name)})" for name in dict.fromkeys(names)) or "none"


if __name__ == "__main__":
    main()
