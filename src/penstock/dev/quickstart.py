"""The README's quickstart, played with the commands a user types, and checked: `python -m penstock.dev.quickstart`.

It has a stack of its own in a temporary folder, and leaves nothing running and nothing behind.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from penstock.dev import stack

TOPIC = "s3_topic"
SCHEMA = '{"type":"record","name":"myrecord","fields":[{"name":"f1","type":"string"}]}'
RECORDS = tuple({"f1": f"value{n}"} for n in range(1, 10))
KEYS = tuple(f"topics/{TOPIC}/partition=0/{TOPIC}+0+{start:010d}.avro" for start in (0, 3, 6))
PROPERTIES = Path("etc") / "quickstart-s3.properties"


class QuickstartError(Exception):
    """A command failed or gave something else than the README says; the text is one sentence."""


def main() -> int:
    """Play it; the exit code."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="penstock-quickstart-") as folder:
        directory = Path(folder) / "stack"
        try:
            _play(directory)
        except QuickstartError as error:
            _say(f"quickstart failed: {error}")
            return 1
        finally:
            stack.destroy(directory, lambda _: None)  # For what a failure or Ctrl-C left running.
    _say(f"quickstart passed: {len(KEYS)} objects, {len(RECORDS)} records, {time.monotonic() - began:.1f} s")
    return 0


def _play(directory: Path) -> None:
    where = ("--dir", str(directory))
    _penstock("start", *where)
    lines = "".join(json.dumps(record) + "\n" for record in RECORDS)
    _penstock("produce", TOPIC, "--value-format", "avro", "--value-schema", SCHEMA, *where, stdin=lines)
    _penstock("run", str(PROPERTIES), "--until-done", *where)
    listed = tuple(sorted(word for word in _penstock("ls", *where).split() if word.startswith("topics/")))
    if listed != KEYS:
        msg = f"the bucket holds {', '.join(listed) or 'nothing'} under topics/, not {', '.join(KEYS)}"
        raise QuickstartError(msg)
    bucket = json.loads(_penstock("start", "--output", "json", *where))["s3.bucket.name"]
    shown = [_penstock("cat", f"s3://{bucket}/{key}", *where) for key in KEYS]
    records = tuple(json.loads(line) for text in shown for line in text.splitlines())
    if records != RECORDS:
        msg = f"the objects hold {records}, not the nine records that were produced"
        raise QuickstartError(msg)
    _penstock("destroy", "--yes", *where)
    if directory.exists():
        msg = f"`penstock destroy` left `{directory}` behind"
        raise QuickstartError(msg)


def _penstock(*arguments: str, stdin: str = "") -> str:
    """What one command prints as data; the command and its output are shown as a user sees them."""
    _say(f"\n$ penstock {shlex.join(arguments)}")
    for line in stdin.splitlines():
        _say(f"> {line}")
    program = Path(sys.executable).with_name("penstock")
    done = subprocess.run([program, *arguments], input=stdin, stdout=subprocess.PIPE, text=True, check=False)
    shown = _without_secret(done.stdout)
    if shown:
        _say(shown.rstrip("\n"))
    if done.returncode != 0:
        msg = f"`penstock {arguments[0]}` ended with exit code {done.returncode}"
        raise QuickstartError(msg)
    return done.stdout


def _without_secret(text: str) -> str:
    """The same, but for the stack's secret: this output ends up in the logs of a CI."""
    lines = [line if "secret" not in line else '  "aws.secret.access.key": "...",' for line in text.splitlines()]
    return "\n".join(lines)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
