"""Background processes by pid file: started in a session of their own, recognised again, ended.

A pid file holds the pid and what the system says about that process (its start time), so that a pid that another
process got since is never taken for ours.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_POLL_SECONDS = 0.05
# The shell leaves at once, so the process belongs to nobody who would have to wait for it.
_LAUNCH = '"$@" </dev/null >>"$PENSTOCK_LOG" 2>&1 & echo $!'


def launch(command: Sequence[str | Path], *, env: Mapping[str, str], log: Path, pid_file: Path, cwd: Path) -> int:
    """Start `command` in the background with `env` over the environment; its pid.

    The log of the run before it is kept as `LOG.1`.
    """
    if log.exists():
        log.replace(log.with_name(f"{log.name}.1"))
    started = subprocess.run(
        ["/bin/sh", "-c", _LAUNCH, "sh", *command],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=cwd,
        env={**os.environ, **env, "PENSTOCK_LOG": str(log)},
        start_new_session=True,
    )
    pid = int(started.stdout)
    pid_file.write_text(f"{pid} {_birth(pid)}\n", encoding="ascii")
    return pid


def running(pid_file: Path) -> int | None:
    """The pid of the process that the file names, if that very process still runs."""
    try:
        pid_text, birth = pid_file.read_text(encoding="ascii").strip().split(" ", 1)
        pid = int(pid_text)
    except (FileNotFoundError, ValueError):
        return None
    return pid if birth and _birth(pid) == birth else None


def end(pid_file: Path, grace_seconds: float) -> None:
    """End the process that the file names, if it runs: SIGTERM, and SIGKILL once the grace is over."""
    for number, patience in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, 10.0)):
        pid = running(pid_file)
        if pid is None:
            break
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + patience
        while running(pid_file) is not None and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
    pid_file.unlink(missing_ok=True)


def _birth(pid: int) -> str:
    """When a process began, as the system counts; empty if there is none, or only one that has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return "" if Path("/proc/self/stat").exists() else _birth_by_ps(pid)
    return "" if fields[0] in "ZX" else fields[19]


def _birth_by_ps(pid: int) -> str:
    """The same where there is no /proc (macOS)."""
    asked = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, began = asked.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else began.strip()
