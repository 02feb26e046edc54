"""What a contender costs, from /proc: CPU-seconds and memory of all processes of its session, JVM included."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


def members(session: int) -> list[int]:
    """The processes of a session (`setsid`), whoever their parent is by now."""
    return [pid for pid, fields in _stats() if int(fields[3]) == session]


def cpu_seconds(session: int) -> float:
    """User + system time that a session's processes have used, those that have ended included.

    The time of a process that has ended is with the parent that waited for it.
    """
    ticks = sum(sum(map(int, fields[11:15])) for _, fields in _stats() if int(fields[3]) == session)
    return max(ticks, 1) / _TICK


def memory_bytes(session: int) -> int:
    """The sum of the proportional set sizes (PSS): memory that processes share is counted once."""
    return sum(_pss(pid) for pid in members(session))


@dataclass(slots=True)
class Watch:
    """Looks at a session's memory while something runs. Use it as a context manager; `peak` is in bytes."""

    session: int
    every: float = 0.25
    peak: int = 0
    samples: list[int] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Watch:  # noqa: PYI034 - Self needs Python 3.11
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _look(self) -> None:
        while True:
            self.samples.append(memory_bytes(self.session))
            self.peak = max(self.peak, self.samples[-1])
            if self._over.wait(self.every):
                return


def _stats() -> list[tuple[int, list[str]]]:
    """Each process with the fields of its `stat` behind the name: state, parent, group, session, ..."""
    found = []
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text(encoding="utf-8", errors="replace")
            except (FileNotFoundError, ProcessLookupError):
                continue
            found.append((int(entry.name), text.rsplit(")", 1)[1].split()))
    return found


def _pss(pid: int) -> int:
    """A process's PSS in bytes; 0 once it has ended."""
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text(encoding="ascii", errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
