"""The embedded stack as a whole: start, stop, destroy, status.

Everything of a stack is in one folder: `stack.json` (addresses and credentials), `run/NAME.pid`, `logs/NAME.log`, and a
folder per service. All four may be called again at any time; a lock file keeps two of them from working at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.dev import processes, settings
from penstock.dev.s3_client import make_bucket
from penstock.dev.services import services
from penstock.dev.services.service import Service, Site
from penstock.dev.settings import DEFAULT_BUCKET, S3Server, Settings, StackInfo
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Echo = Callable[[str], None]

_POLL_SECONDS = 0.1
_LOCK_SECONDS = 180.0
_LOG_LINES = 15


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """One service as it is now. `up`: its process runs and answers; `pid`: None where no process runs."""

    name: str
    pid: int | None
    up: bool
    address: str


def start(directory: Path, *, s3: S3Server = "s3proxy", bucket: str | None = None, echo: Echo) -> StackInfo:
    """Start what does not run yet; returns once every service answers.

    `bucket`: made if it is not there; by default the one that the folder has, or the quickstart's.

    Raises:
        PenstockError: a service did not come up (with the end of its log), or the folder is something else.
    """
    directory = directory.expanduser().absolute()
    _make_folder(directory)
    with _locked(directory):
        chosen = settings.load(directory) or _first_settings(directory, s3, bucket)
        if chosen.s3 != s3:
            msg = f"the stack in `{directory}` has {chosen.s3} as its S3 server, not {s3}; `penstock destroy` it first"
            raise PenstockError(msg)
        chosen = replace(chosen, bucket=bucket or chosen.bucket)
        chosen = _start_all(directory, chosen, echo)
        make_bucket(chosen)
        settings.save(directory, chosen)
    return chosen.info()


def stop(directory: Path, echo: Echo) -> None:
    """End every service that runs, the last one first; data and addresses stay."""
    directory = directory.expanduser().absolute()
    chosen = settings.load(directory)
    if chosen is None:
        echo(f"No stack in {directory}")
        return
    with _locked(directory):
        _stop_all(directory, chosen, echo)


def destroy(directory: Path, echo: Echo) -> None:
    """Stop, then delete the folder with all data. A folder that holds no stack is left alone."""
    directory = directory.expanduser().absolute()
    chosen = settings.load(directory)
    if chosen is None:
        echo(f"No stack in {directory}")
        return
    with _locked(directory):
        _stop_all(directory, chosen, echo)
        echo(f"Deleting: {directory}")
        shutil.rmtree(directory)


def status(directory: Path) -> tuple[ServiceStatus, ...]:
    """Every service of the stack in `directory`, in the order in which they start; none if there is no stack."""
    directory = directory.expanduser().absolute()
    chosen = settings.load(directory)
    if chosen is None:
        return ()
    return tuple(_status_of(directory, service, chosen) for service in services(chosen.s3))


def load_info(directory: Path) -> StackInfo | None:
    """How to reach the stack in `directory`, whether it runs or not; None if there is none."""
    chosen = settings.load(directory.expanduser().absolute())
    return None if chosen is None else chosen.info()


def worker_url(directory: Path) -> str | None:
    """Where the worker of the stack in `directory` listens; None if there is no stack."""
    chosen = settings.load(directory.expanduser().absolute())
    return None if chosen is None else chosen.url("worker")


def _make_folder(directory: Path) -> None:
    """A folder that is ours alone: new, empty, or a stack's."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        content = {path.name for path in directory.iterdir()}
        if content and not content & {"stack.json", ".lock"}:
            msg = f"`{directory}` holds other files; choose an empty or new folder with --dir"
            raise PenstockError(msg)
        for name in ("run", "logs"):
            (directory / name).mkdir(exist_ok=True)
    except OSError as error:
        msg = f"cannot use `{directory}` for the stack: {error.strerror or error}; choose another folder with --dir"
        raise PenstockError(msg) from error


def _first_settings(directory: Path, s3: S3Server, bucket: str | None) -> Settings:
    chosen = settings.new(s3, bucket or DEFAULT_BUCKET)
    settings.save(directory, chosen)
    return chosen


def _start_all(directory: Path, chosen: Settings, echo: Echo) -> Settings:
    """Launch what is down, all at once, and wait for each; what was launched ends again if one fails."""
    launched: list[Service] = []
    waiting = list(services(chosen.s3))
    try:
        while waiting:
            group = _next_group(waiting)
            waiting = waiting[len(group) :]
            for service in group:
                if processes.running(_pid_file(directory, service)) is None:
                    chosen = _launch(directory, service, chosen, echo)
                    launched.append(service)
            for service in group:
                chosen = _await(directory, service, chosen, echo, fresh=service in launched)
    except BaseException:
        for service in reversed(launched):
            processes.end(_pid_file(directory, service), service.grace_seconds)
        raise
    return chosen


def _next_group(waiting: list[Service]) -> list[Service]:
    """The services that can start side by side: up to the next one that needs the others."""
    for n, service in enumerate(waiting):
        if service.after_others and n > 0:
            return waiting[:n]
        if service.after_others:
            return waiting[:1]
    return waiting


def _launch(directory: Path, service: Service, chosen: Settings, echo: Echo) -> Settings:
    service.fetch(lambda name: echo(f"Fetching {name}"))
    fitted = settings.with_free_ports(chosen, service.ports)
    if fitted != chosen:
        echo(f"Another program took the port of {service.name}: it is now at {fitted.address(service.ports[0])}")
        settings.save(directory, fitted)
    launch = service.prepare(Site(_home(directory, service), fitted))
    processes.launch(
        launch.command,
        env=launch.env,
        log=_log(directory, service),
        pid_file=_pid_file(directory, service),
        cwd=directory,
    )
    return fitted


def _await(directory: Path, service: Service, chosen: Settings, echo: Echo, *, fresh: bool) -> Settings:
    if fresh:
        echo(f"Starting {service.name}")
    pid_file = _pid_file(directory, service)
    deadline = time.monotonic() + service.start_seconds
    while (why := service.answers(chosen)) is not None:
        if processes.running(pid_file) is None:
            raise PenstockError(_obituary(directory, service, "ended while it was starting"))
        if time.monotonic() > deadline:
            raise PenstockError(_obituary(directory, service, f"does not answer ({why})"))
        time.sleep(_POLL_SECONDS)
    if fresh:
        chosen = service.ready(Site(_home(directory, service), chosen))
        settings.save(directory, chosen)
    echo(f"{service.name} is {'' if fresh else 'already '}[UP]")
    return chosen


def _stop_all(directory: Path, chosen: Settings, echo: Echo) -> None:
    for service in reversed(services(chosen.s3)):
        echo(f"Stopping {service.name}")
        processes.end(_pid_file(directory, service), service.grace_seconds)
        echo(f"{service.name} is [DOWN]")


def _status_of(directory: Path, service: Service, chosen: Settings) -> ServiceStatus:
    pid = processes.running(_pid_file(directory, service))
    up = pid is not None and service.answers(chosen) is None
    return ServiceStatus(service.name, pid, up, chosen.address(service.ports[0]))


def _obituary(directory: Path, service: Service, what: str) -> str:
    log = _log(directory, service)
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:] if log.exists() else []
    end = "\n".join(f"  {line}" for line in lines) or "  (empty)"
    return f"{service.name} {what}; the end of {log}:\n{end}"


def _home(directory: Path, service: Service) -> Path:
    home = directory / service.name
    home.mkdir(mode=0o700, exist_ok=True)
    return home


def _pid_file(directory: Path, service: Service) -> Path:
    return directory / "run" / f"{service.name}.pid"


def _log(directory: Path, service: Service) -> Path:
    return directory / "logs" / f"{service.name}.log"


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Only one start, stop or destroy of a folder at a time."""
    path = directory / ".lock"
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.open("w", encoding="ascii") as lock:
            if _taken(lock.fileno(), path):
                yield
                return
        if time.monotonic() > deadline:
            msg = f"another `penstock start`, `stop` or `destroy` works on `{directory}`; try again when it is done"
            raise PenstockError(msg)
        time.sleep(_POLL_SECONDS)


def _taken(lock: int, path: Path) -> bool:
    """Whether this file handle now has the lock, and the file is still the one that others would open."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(lock).st_ino == path.stat().st_ino
    except (BlockingIOError, FileNotFoundError):
        return False
