"""Connectors as processes under a supervisor that starts anew whatever ended, and counts what should not have."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Describe = Callable[[int], Mapping[str, str]]

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
IN_PROCESS = str(Path(__file__).with_name("sink.py"))
TAKEN_OVER = 3
_PATIENCE_S = 240.0


@dataclass
class Zombie:
    """An older instance. `resume_at`: until then it is stopped; `end_by`: it must have ended by itself."""

    process: subprocess.Popen[bytes]
    log: Path
    resume_at: float
    end_by: float = 0.0


@dataclass
class Member:
    """One connector. `describe`: its properties, by how often it was started.

    `failed`: what ended although nobody killed it, so that a person would have to start it again.
    """

    name: str
    describe: Describe
    folder: Path
    servers: str
    spark: bool = False
    starts: int = 0
    kills: int = 0
    stops: int = 0
    failed: list[str] = field(default_factory=list)
    log: Path = Path()
    process: subprocess.Popen[bytes] | None = None
    zombies: list[Zombie] = field(default_factory=list)

    def start(self) -> None:
        worker, connector = self.folder / "worker.properties", self.folder / f"{self.name}-{self.starts}.properties"
        worker.write_text(f"bootstrap.servers={self.servers}\n")
        properties = {**self.describe(self.starts), "name": self.name}
        connector.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        command = [PENSTOCK, "run"] if self.spark else [sys.executable, IN_PROCESS]
        self.log = self.folder / f"{self.name}-{self.starts}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, str(worker), str(connector)],
                stderr=log,
                stdout=log,
                env={**os.environ, "PYTHONPATH": _python_path(), "PYTHONFAULTHANDLER": "1"},
                start_new_session=True,
            )
        self.starts += 1

    def kill(self) -> None:
        """SIGKILL, for Spark's JVM and Python workers too."""
        if self.process is not None and self.process.poll() is None:
            _kill_all(self.process)
            self.kills += 1
            self.start()

    def stop_and_replace(self, seconds: float) -> None:
        """SIGSTOP, a second instance beside it, and SIGCONT some seconds later."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGSTOP)
            self.zombies.append(Zombie(self.process, self.log, time.monotonic() + seconds))
            self.stops += 1
            self.start()

    def look_after(self) -> None:
        """Resume zombies, start anew what ended, and note what ended for no good reason."""
        now = time.monotonic()
        for zombie in list(self.zombies):
            self._look_after(zombie, now)
        if self.process is None or (code := self.process.poll()) is None:
            return
        alive = [each for each in self.zombies if each.process.poll() is None and each.end_by]
        if code == TAKEN_OVER and alive:  # it was stopped before it took over, and did so when it was resumed
            self.process, self.log = alive[-1].process, alive[-1].log
            self.zombies.remove(alive[-1])
            return
        self.failed.append(f"{self.name} ended with {code}: {_last_words(self.log)}")
        self.start()

    def end(self) -> None:
        """End all of it at once."""
        for process in [each.process for each in self.zombies] + ([self.process] if self.process else []):
            _kill_all(process)
        self.zombies, self.process = [], None

    def _look_after(self, zombie: Zombie, now: float) -> None:
        code = zombie.process.poll()
        if code is not None:
            self.zombies.remove(zombie)
            if code != TAKEN_OVER:
                words = _last_words(zombie.log)
                self.failed.append(f"{self.name}: an instance that was replaced ended with {code}: {words}")
        elif not zombie.end_by and now >= zombie.resume_at:
            os.killpg(zombie.process.pid, signal.SIGCONT)
            zombie.end_by = now + _PATIENCE_S
        elif zombie.end_by and now > zombie.end_by:
            os.killpg(zombie.process.pid, signal.SIGABRT)  # Python's fault handler writes what each thread does
            time.sleep(2)
            words = _last_words(zombie.log, lines=200)
            self.failed.append(f"{self.name}: an instance that was replaced goes on: {words}")
            _kill_all(zombie.process)
            self.zombies.remove(zombie)


def _last_words(log: Path, lines: int = 1) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) or "it said nothing"


def _python_path() -> str:
    """Where a sink finds this package, before whatever its caller has."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, given)])


def _kill_all(process: subprocess.Popen[bytes]) -> None:
    """The process with its children: they are a session of their own."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
