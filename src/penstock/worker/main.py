"""The worker's process: `python -m penstock.worker.main --dir DIR --port N`. Started and stopped with the stack."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click
from waitress.server import create_server

import penstock
from penstock.sink import Sink
from penstock.spark import context
from penstock.worker.api import make_app
from penstock.worker.host import Host
from penstock.worker.logs import configure

if TYPE_CHECKING:
    from collections.abc import Mapping

_STOP_SECONDS = 30.0
_RESERVED = frozenset({"kafka", "s3", "schema-registry", "worker", "connect"})


@click.command()
@click.option("--dir", "directory", type=click.Path(path_type=Path), required=True)
@click.option("--port", type=int, required=True)
def main(directory: Path, port: int) -> None:
    """Host connectors until SIGTERM."""
    configure()

    def make_sink(config: Mapping[str, str]) -> Sink:
        return Sink.from_properties(config, directory=directory)

    def start_spark() -> None:
        context(os.cpu_count() or 1, {}, rows=True)

    host = Host(directory, make_sink, start_spark, _RESERVED)
    host.resume_saved()
    server = create_server(make_app(host, penstock.__version__), host="127.0.0.1", port=port, threads=4)
    threading.Thread(target=server.run, daemon=True).start()
    _wait_for_end(host)


def _wait_for_end(host: Host) -> None:
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    signal.signal(signal.SIGINT, lambda *_: ended.set())
    while not ended.wait(0.5):
        pass
    host.stop(_STOP_SECONDS)
    # Spark's own threads would keep a process alive whose work is done.
    os._exit(0)


if __name__ == "__main__":
    main()
