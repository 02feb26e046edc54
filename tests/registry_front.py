"""A front before the embedded registry, as companies have one: TLS, logins, outages."""

from __future__ import annotations

import base64
import ssl
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import requests

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from certificates import Certified


@dataclass
class Front:
    """`wanted`: the Authorization header that is let in, if any. `failures`: status codes that come first."""

    behind: str
    wanted: str | None = None
    failures: list[int] = field(default_factory=list)
    page: bytes | None = None
    seen: list[str | None] = field(default_factory=list)
    url: str = ""


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@contextmanager
def front(given: Front, certified: Certified | None = None, directory: Path | None = None) -> Iterator[Front]:
    """`given` with its `url`, while entered."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            given.seen.append(self.headers["Authorization"])
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if given.page is not None:
                self.give(200, given.page)
            elif given.wanted not in (None, self.headers["Authorization"]):
                self.give(401, b'{"error_code":40101,"message":"no: ' + str(given.seen[-1]).encode() + b'"}')
            elif given.failures:
                self.give(given.failures.pop(0), b'{"error_code":50001,"message":"store away"}')
            else:
                passed_on = {"Content-Type": self.headers.get("Content-Type", "")}
                url = given.behind + self.path
                got = requests.request(self.command, url, data=body, headers=passed_on, timeout=30)
                self.give(got.status_code, got.content)

        def give(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    Handler.do_GET = Handler.do_POST = Handler.answer

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that does not like our certificate goes away; that is what some tests are for."""

    server = Server(("127.0.0.1", 0), Handler)
    if certified is not None:
        chain, key = directory / "front.pem", directory / "front.key"
        chain.write_text(certified.chain_pem)
        key.write_text(certified.key_pem())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    given.url = f"{'http' if certified is None else 'https'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield given
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
