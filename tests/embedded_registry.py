"""The development registry on a thread of the tests, with schemas registered by Confluent's own client."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from werkzeug.serving import WSGIRequestHandler, make_server

from penstock.dev.registry_server import application
from penstock.dev.registry_store import RegistryStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


class Registered:
    """A registry and what the tests put into it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = SchemaRegistryClient({"url": url})

    def add(self, subject: str, text: str, kind: str, references: Mapping[str, str] | None = None) -> int:
        """Register a schema, after those that it refers to (name -> text); its id."""
        named = []
        for at, (name, each) in enumerate((references or {}).items()):
            part = f"{subject}-part-{at}"
            self.client.set_compatibility(part, "NONE")
            self.client.register_schema(part, Schema(each, kind, list(named)))
            version = self.client.get_latest_version(part).version
            named.append(SchemaReference(name, part, version))
        self.client.set_compatibility(subject, "NONE")
        return self.client.register_schema(subject, Schema(text, kind, named))


class _Silent(WSGIRequestHandler):
    def log(self, *_: object) -> None:
        pass


@contextmanager
def embedded_registry(directory: Path) -> Iterator[Registered]:
    """A registry while entered."""
    store = RegistryStore(directory / "schemas.jsonl")
    server = make_server("127.0.0.1", 0, application(store), threaded=True, request_handler=_Silent)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    registered = Registered(f"http://127.0.0.1:{server.server_port}")
    try:
        yield registered
    finally:
        registered.client.__exit__()
        server.shutdown()
        thread.join()
        server.server_close()
        store.close()
