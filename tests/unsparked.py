"""`penstock run WORKER CONNECTOR --until-done` with the job in its own process, for tests of the driver.

Each run is a process of its own, forked from one that has loaded everything: most of a run's time would be the loading.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Forks:
    """Where processes come from."""

    parent: subprocess.Popen[str]

    def run(self, worker: Path, connector: Path, crash_at: str | None) -> subprocess.CompletedProcess[str]:
        """A run until it is done, or dies at the point that `crash_at` names."""
        files, said = [str(worker), str(connector)], connector.with_suffix(".stderr")
        assert self.parent.stdin is not None
        assert self.parent.stdout is not None
        self.parent.stdin.write(json.dumps({"files": files, "crash_at": crash_at, "said": str(said)}) + "\n")
        self.parent.stdin.flush()
        code = int(self.parent.stdout.readline())
        return subprocess.CompletedProcess(files, code, "", said.read_text())


@contextmanager
def forks() -> Iterator[Forks]:
    """Processes are forked while entered."""
    command = [sys.executable, __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        yield Forks(parent)


def _run(worker: Path, connector: Path) -> None:
    crashpoints.arm()
    config, kafka = load(connector, worker, None)
    with Running.open(config, kafka, InProcess(kafka)) as running:
        keep_running(running, threading.Event(), until_done=True)


def _fork(files: list[str], crash_at: str | None, said: str) -> int:
    """One run in a child of this process; its exit code, negative for the signal that ended it."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 1
    try:
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), sys.stderr.fileno())
        if crash_at is not None:
            os.environ["PENSTOCK_CRASH_AT"] = crash_at
        _run(*map(Path, files))
        code = 0
    except BaseException:  # noqa: BLE001 - the child must end here, whatever it met
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    from penstock import daemon

    daemon.load()  # first: it keeps what is loaded from starting threads, which a fork would lose
    from connecting import InProcess
    from penstock import crashpoints
    from penstock.loading import load
    from penstock.loop import keep_running
    from penstock.running import Running

    for line in sys.stdin:
        print(_fork(**json.loads(line)), flush=True)  # noqa: T201
