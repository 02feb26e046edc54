"""The connectors of a worker: each a sink in a thread of its own, all on one Spark."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from penstock.errors import PenstockError
from penstock.worker import saved
from penstock.worker.logs import CONNECTOR, close_file, open_file
from penstock.worker.saved import SavedConnector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from penstock.report import RunSummary, SinkStatus
    from penstock.summary import CycleSummary

State = Literal["RUNNING", "PAUSED", "FAILED"]

_log = logging.getLogger("penstock.worker")
_STOP_SECONDS = 60.0
_LOOK_SECONDS = 0.1


class ConnectorSink(Protocol):
    """What the host needs of `penstock.Sink`."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is odd about its configuration."""
        ...

    @property
    def is_running(self) -> bool:
        """Whether it has its state log and moves records."""
        ...

    def run(self, *, stop: threading.Event | None = None) -> RunSummary:
        """Block until `stop` is set."""
        ...

    def status(self) -> SinkStatus:
        """Where every topic-partition stands."""
        ...

    def flush(self) -> CycleSummary:
        """Close and commit what is open."""
        ...


class UnknownConnectorError(PenstockError):
    """The worker hosts no connector of that name."""


class BusyError(PenstockError):
    """The connector is there already, or has not ended its running cycle yet."""


@dataclass(slots=True)
class Hosted:
    """A connector and the thread that runs it. `error`: the sentence it failed with."""

    saved: SavedConnector
    sink: ConnectorSink
    state: State
    error: str | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None


class Host:
    """Loads, pauses and unloads connectors; what it is told survives a restart of the process."""

    def __init__(
        self,
        directory: Path,
        make_sink: Callable[[Mapping[str, str]], ConnectorSink],
        start_spark: Callable[[], None],
        reserved: frozenset[str] = frozenset(),
    ) -> None:
        self._configs = directory / "worker" / "connectors"
        self._logs = directory / "logs"
        self._make_sink = make_sink
        self._start_spark = start_spark
        self._reserved = reserved
        self._hosted: dict[str, Hosted] = {}
        self._changing = threading.Lock()

    def resume_saved(self) -> None:
        """Go on with the connectors of an earlier process; one that cannot is shown as failed, not forgotten."""
        for connector in saved.read_all(self._configs):
            try:
                self._start(connector)
            except PenstockError as error:
                broken = _Unusable(error)
                self._hosted[connector.name] = Hosted(connector, broken, "FAILED", str(error))
                _log.error("connector.failed name=%s reason=%s", connector.name, error)

    def names(self) -> list[str]:
        """The hosted connectors."""
        return sorted(self._hosted)

    def get(self, name: str) -> Hosted:
        """Raises UnknownConnectorError."""
        try:
            return self._hosted[name]
        except KeyError:
            msg = f"no connector `{name}` is loaded; loaded are: {', '.join(self.names()) or 'none'}"
            raise UnknownConnectorError(msg) from None

    def load(self, name: str, config: Mapping[str, str], *, replace: bool = False) -> Hosted:
        """Host a connector. A failed one is replaced; a running one only with `replace`.

        Raises:
            ConfigError: every mistake in `config`; nothing was changed then.
            BusyError: it is loaded already and `replace` is not set, or it cannot end its cycle in time.
        """
        saved.check_name(name, self._reserved)
        connector = SavedConnector(name, {**config, "name": name})
        with self._changing:
            old = self._hosted.get(name)
            if old is not None and old.state != "FAILED" and not replace:
                msg = f"connector `{name}` is loaded already; unload it first"
                raise BusyError(msg)
            self._make_sink(connector.config)
            if old is not None:
                self._end(old)
            return self._start(connector)

    def unload(self, name: str) -> None:
        """End a connector after its running cycle and forget it. Raises UnknownConnectorError, BusyError."""
        with self._changing:
            self._end(self.get(name))
            saved.remove(self._configs, name)
            del self._hosted[name]
        _log.info("connector.unloaded name=%s", name)

    def flush(self, name: str) -> CycleSummary:
        """Close and commit what a running connector has open. Raises UnknownConnectorError, BusyError."""
        hosted = self.get(name)
        # One that is still starting would be overtaken by a flush of its own.
        while not hosted.sink.is_running:
            if not _runs(hosted):
                why = f": {hosted.error}" if hosted.error else "; resume it first"
                msg = f"connector `{name}` does not run{why}"
                raise BusyError(msg)
            time.sleep(_LOOK_SECONDS)
        return hosted.sink.flush()

    def pause(self, name: str) -> None:
        """End a connector after its running cycle, and keep it so over restarts."""
        with self._changing:
            hosted = self.get(name)
            self._end(hosted)
            self._start(SavedConnector(name, hosted.saved.config, paused=True))

    def resume(self, name: str) -> None:
        """Go on with a connector that is paused or has failed; one that runs is left alone."""
        with self._changing:
            hosted = self.get(name)
            if hosted.state != "RUNNING":
                self._start(SavedConnector(name, hosted.saved.config))

    def restart(self, name: str) -> None:
        """End a connector after its running cycle and begin it anew."""
        with self._changing:
            hosted = self.get(name)
            self._end(hosted)
            self._start(hosted.saved)

    def stop(self, seconds: float) -> list[str]:
        """End every connector after its running cycle; the names of those that still run after `seconds`."""
        deadline = time.monotonic() + seconds
        for hosted in self._hosted.values():
            hosted.stop.set()
        for hosted in self._hosted.values():
            if hosted.thread is not None:
                hosted.thread.join(max(0.0, deadline - time.monotonic()))
        return [name for name in self.names() if _runs(self._hosted[name])]

    def _start(self, connector: SavedConnector) -> Hosted:
        sink = self._make_sink(connector.config)
        saved.write(self._configs, connector)
        hosted = Hosted(connector, sink, "PAUSED" if connector.paused else "RUNNING")
        self._hosted[connector.name] = hosted
        if not connector.paused:
            # A daemon, so that a Spark job that hangs cannot keep a stopped worker alive.
            hosted.thread = threading.Thread(
                target=self._run, args=(hosted,), name=f"connector-{connector.name}", daemon=True
            )
            hosted.thread.start()
        return hosted

    def _end(self, hosted: Hosted) -> None:
        hosted.stop.set()
        if hosted.thread is not None:
            hosted.thread.join(_STOP_SECONDS)
        if _runs(hosted):
            msg = f"connector `{hosted.saved.name}` is still finishing its running cycle; try again"
            raise BusyError(msg)

    def _run(self, hosted: Hosted) -> None:
        name = hosted.saved.name
        CONNECTOR.set(name)
        log_file = open_file(self._logs, name)
        try:
            _log.info("connector.started name=%s", name)
            for warning in hosted.sink.warnings:
                _log.warning("connector.odd name=%s reason=%s", name, warning)
            self._start_spark()
            hosted.sink.run(stop=hosted.stop)
            _log.info("connector.stopped name=%s", name)
        except PenstockError as error:
            hosted.state, hosted.error = "FAILED", str(error)
            _log.error("connector.failed name=%s reason=%s", name, error)
        except Exception as error:  # noqa: BLE001 - the edge of a thread: else the connector would end without a word
            hosted.state, hosted.error = "FAILED", f"an error inside Penstock: {type(error).__name__}: {error}"
            _log.critical("connector.failed name=%s", name, exc_info=True)
        finally:
            close_file(log_file)


@dataclass(frozen=True, slots=True)
class _Unusable:
    """In the place of a sink whose saved configuration is no longer valid."""

    error: PenstockError
    warnings: tuple[str, ...] = ()
    is_running: bool = False

    def run(self, *, stop: threading.Event | None = None) -> RunSummary:  # noqa: ARG002 - a sink's signature
        raise self.error

    def status(self) -> SinkStatus:
        raise self.error

    def flush(self) -> CycleSummary:
        raise self.error


def _runs(hosted: Hosted) -> bool:
    return hosted.thread is not None and hosted.thread.is_alive()
