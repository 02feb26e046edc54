"""Set up a checkout: its own .venv with pinned packages, Java, the jars of the embedded stack, compiled code.

Run it with `python3 tools/setup.py` (or `make setup`); it needs nothing but Python 3.10 with venv, and parses on older
ones too, to say so. Each step is one line with the time it took. A step that is done already is skipped without
network. `PENSTOCK_CACHE` moves what is not a Python package.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Command = Sequence[str | Path]

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCK = ROOT / "requirements" / "dev.txt"
LOG = VENV / "setup.log"
STAMPS = VENV / "setup-stamps.json"
NEEDED_BYTES = 3_000_000_000

# What a tool prints, and the sentence for it; the first that fits is told.
CAUSES = (
    (r"No space left|disk quota", "the disk is full: make room (about 3 GB are needed), then run it again"),
    (r"Permission denied|Read-only file system", "a folder is not writable: see {log}"),
    (
        r"hash(es)? mismatch|do not match the hashes",
        "a package is not the one that the lock names: see {log}",
    ),
    (
        r"resolve host|name resolution|dns error|timed? ?out|connection|unreachable|error sending request|tunnel",
        "the package index cannot be reached: check the network (or HTTPS_PROXY), then run it again",
    ),
    (
        r"certificate|SSL",
        "the package index's certificate is not trusted: set SSL_CERT_FILE and PIP_CERT to your authority's",
    ),
    (
        r"ensurepip|No module named '?venv",
        "this Python has no venv module: install it (on Debian and Ubuntu `apt-get install python3-venv`)",
    ),
    (
        r"No matching distribution|No solution found",
        "the package index lacks a package for this Python: see {log}, or run `make setup PYTHON=/path/to/python3.12`",
    ),
)


class SetupError(Exception):
    """A step failed; the text is the one sentence that says what to do."""


class Steps:
    """Runs steps in order, numbers their lines, and remembers in .venv what was done with which inputs."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._number = 0

    def step(
        self, name: str, work: Callable[[Callable[[str], None]], str], *, there: bool = True, inputs: str = ""
    ) -> None:
        """Do `work`, which returns a remark, unless its result is `there` and was made from the same `inputs`."""
        self._number += 1
        title = f"[{self._number}/{self._total}] {name}"
        if there and (not inputs or _read_stamps().get(name) == inputs):
            print(f"{title}: there already", flush=True)
            return
        start = time.monotonic()

        def progress(text: str) -> None:
            if sys.stdout.isatty():
                print(f"\r\033[K{title} ... {time.monotonic() - start:.0f} s {text}", end="", flush=True)

        progress("")
        try:
            remark = work(progress)
        finally:
            if sys.stdout.isatty():
                print("\r\033[K", end="", flush=True)
        print(f"{title}: {remark} ({time.monotonic() - start:.1f} s)", flush=True)
        if inputs:
            STAMPS.write_text(json.dumps({**_read_stamps(), name: inputs}, indent=2), encoding="utf-8")


def main() -> int:
    """Set up; the exit code."""
    try:
        _set_up(Steps(total=6))
    except SetupError as error:
        print(f"set-up stopped: {error}", file=sys.stderr)
    except OSError as error:
        place = f" `{error.filename}`" if error.filename else ""
        print(f"set-up stopped:{place} {_cause(str(error)) or error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("set-up stopped: interrupted; run it again to go on", file=sys.stderr)
    else:
        return 0
    return 1


def _set_up(steps: Steps) -> None:
    if sys.version_info < (3, 10):  # noqa: UP036 - whoever starts this may have an older one
        found = ".".join(map(str, sys.version_info[:3]))
        msg = f"Python 3.10 or newer is needed, this is {found}: run `make setup PYTHON=/path/to/newer/python3`"
        raise SetupError(msg)
    if not PYTHON.exists() and shutil.disk_usage(ROOT).free < NEEDED_BYTES:
        msg = f"the disk of `{ROOT}` has less than 3 GB free: make room, then run it again"
        raise SetupError(msg)
    steps.step("virtual environment", _make_venv, there=_venv_works())
    steps.step("Python packages", _install_packages, inputs=_digest(LOCK))
    steps.step("Penstock itself", _install_project, inputs=_digest(ROOT / "pyproject.toml"))
    steps.step("Java", _find_java, there=False)
    steps.step("jars of Kafka and s3proxy", _fetch_jars, there=all(folder.is_dir() for folder in _jar_folders()))
    reader = ROOT / "src" / "penstock" / "kafka"
    compiled = "NUMBA_CACHE_DIR" in os.environ or any((reader / "__pycache__").glob("*.nbi"))
    steps.step("compiled reader", _compile, there=compiled, inputs=_digest(*sorted(reader.glob("*.py")), LOCK))


def _make_venv(_: Callable[[str], None]) -> str:
    command = [sys.executable, "-m", "venv", "--clear", str(VENV)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()
        raise SetupError(_cause(said) or said.splitlines()[-1])
    return f"Python {sys.version.split()[0]}"


def _venv_works() -> bool:
    """Whether the Python of .venv starts and has pip; not so once the Python that made it is gone."""
    try:
        return subprocess.run([PYTHON, "-c", "import pip"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _install_packages(progress: Callable[[str], None]) -> str:
    """With uv, itself from the lock; where uv cannot reach what pip can (its own settings, a proxy), with pip."""
    text = LOCK.read_text(encoding="utf-8")
    count = len(re.findall(r"^[a-zA-Z0-9]", text, re.MULTILINE))
    bootstrap = VENV / "bootstrap.txt"
    bootstrap.write_text(_entry(text, "uv"), encoding="utf-8")
    pip: Command = [PYTHON, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--require-hashes"]
    _run([*pip, "-r", bootstrap], progress)
    uv: Command = [VENV / "bin" / "uv", "pip", "install", "--python", PYTHON, "--require-hashes", "-r", LOCK]
    try:
        _run(uv, progress)
    except SetupError:
        _run([*pip, "-r", LOCK], progress)
    return f"{count} packages at their pinned versions"


def _install_project(progress: Callable[[str], None]) -> str:
    uv: Command = [VENV / "bin" / "uv", "pip", "install", "--python", PYTHON, "--no-deps", "--editable", ROOT]
    pip: Command = [
        PYTHON,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--no-input",
        "install",
        "--no-deps",
        "--editable",
        ROOT,
    ]
    try:
        _run(uv, progress)
    except SetupError:
        _run(pip, progress)
    return "installed editable"


def _find_java(progress: Callable[[str], None]) -> str:
    return _run([PYTHON, "-m", "penstock.java"], progress)[-1]


def _fetch_jars(progress: Callable[[str], None]) -> str:
    fetched = _run([PYTHON, "-m", "penstock.dev.jars"], progress)
    return f"{len(fetched)} fetched, their sums checked" if fetched else "there already"


def _jar_folders() -> list[Path]:
    """Where `penstock.dev.jars` keeps them; asking it would cost a second each time."""
    cache = Path(os.environ.get("PENSTOCK_CACHE") or Path.home() / ".cache" / "penstock").expanduser()
    locks = sorted((ROOT / "src" / "penstock" / "dev" / "ivy").glob("*.sha256"))
    return [cache / "jars" / f"{lock.stem}-{_digest(lock)[:12]}" for lock in locks]


def _compile(progress: Callable[[str], None]) -> str:
    """Fill numba's cache, so that the first run does not wait for the compiler."""
    if not (ROOT / "src" / "penstock" / "kafka" / "walk.py").exists():
        return "nothing to compile"
    _run([PYTHON, "-m", "penstock.warm"], progress)
    return "done"


def _run(command: Command, progress: Callable[[str], None]) -> list[str]:
    """What a command printed, line by line; all of it goes to the log as well."""
    said = []
    parts = [str(part) for part in command]
    with LOG.open("a", encoding="utf-8") as log:
        print(f"$ {' '.join(parts)}", file=log, flush=True)
        child = subprocess.Popen(parts, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT)
        for line in _lines(child, progress):
            print(line, file=log, flush=True)
            if line.strip():
                said.append(line.strip())
        child.wait()
    if child.returncode != 0:
        text = "\n".join(said)
        ours = said and parts[1:2] == ["-m"] and parts[2].startswith("penstock.")
        raise SetupError(said[-1] if ours else _cause(text) or f"{said[-1] if said else command[0]}; see {LOG}")
    return said


def _lines(child: subprocess.Popen[bytes], progress: Callable[[str], None]) -> Iterator[str]:
    """The output of a child as it comes; `progress` hears at least every second."""
    if child.stdout is None:
        raise AssertionError
    pending, count = b"", 0
    while True:
        if not select.select([child.stdout], [], [], 1.0)[0]:
            progress(f"({count} lines)" if count else "")
            continue
        chunk = os.read(child.stdout.fileno(), 65536)
        if not chunk:
            break
        *whole, pending = (pending + chunk).split(b"\n")
        for line in whole:
            count += 1
            text = line.decode(errors="replace")
            progress(text.strip()[:60])
            yield text
    if pending:
        yield pending.decode(errors="replace")


def _cause(said: str) -> str | None:
    for pattern, sentence in CAUSES:
        if re.search(pattern, said, re.IGNORECASE):
            return sentence.format(log=LOG)
    return None


def _entry(lock: str, package: str) -> str:
    """The lines of one package in a requirements file with hashes."""
    found = re.search(rf"^{package}==.*\n(?: .*\n)*", lock, re.MULTILINE)
    if found is None:
        msg = f"{LOCK} does not name {package}: run `make lock`"
        raise SetupError(msg)
    return found.group()


def _digest(*paths: Path) -> str:
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()


def _read_stamps() -> dict[str, str]:
    try:
        stamps = json.loads(STAMPS.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamps if isinstance(stamps, dict) else {}


if __name__ == "__main__":
    sys.exit(main())
