"""A forward proxy for plain HTTP, small enough to read: it notes what passes and may ask for a login."""

from __future__ import annotations

import base64
import contextlib
import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

_HOP = {"connection", "proxy-authorization", "proxy-connection", "expect", "transfer-encoding", "keep-alive"}


class ForwardProxy(ThreadingHTTPServer):
    """`seen`: (method, path with query, headers) of each request that passed; `refused`: how many did not."""

    daemon_threads = True

    def __init__(self, login: str | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.login = login
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.refused = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ForwardProxy

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.server.login is not None:
            want = "Basic " + base64.b64encode(self.server.login.encode()).decode()
            if self.headers.get("Proxy-Authorization") != want:
                self.server.refused += 1
                self._answer(407, [], b"")
                return
        url = urlsplit(self.path)
        target = f"{url.path}?{url.query}" if url.query else url.path
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
        self.server.seen.append((self.command, target, {name.lower(): value for name, value in self.headers.items()}))
        upstream = http.client.HTTPConnection(url.netloc, timeout=60)
        try:
            upstream.request(self.command, target, body, headers)
            answer = upstream.getresponse()
            self._answer(answer.status, answer.getheaders(), answer.read())
        finally:
            upstream.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        kept = [(name, value) for name, value in headers if name.lower() not in _HOP]
        if not any(name.lower() == "content-length" for name, _ in kept):
            kept.append(("Content-Length", str(len(body))))
        for name, value in kept:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on  # noqa: N815 - names that http.server looks for


@contextlib.contextmanager
def forward_proxy(login: str | None = None) -> Iterator[ForwardProxy]:
    """A proxy that runs until the end of the block. `login`: USER:PASSWORD that it asks for."""
    server = ForwardProxy(login)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
