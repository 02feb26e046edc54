"""A proxy between a sink and a real S3 server that does to chosen requests what networks and S3 do.

`FaultyS3.url` is a `store.url`. Requests pass as they are (the Host header is kept, so signatures hold), except where
`choose` names a fault:

    drop.before   the connection is reset before the server hears of the request
    drop.amid     the server gets half of the body, then both connections are gone
    drop.after    the server does it, and the connection is closed without an answer
    late          like drop.before, but the request reaches the server a while later
    half.open     the server does it, and nothing is ever answered
    slow          the answer takes a while
    truncated     the answer's body ends half-way
    garbled       the answer has no XML in it (a captive portal, a broken load balancer)
    500, 503      InternalError, SlowDown; the server does not hear of it
    500.after     the server does it, and InternalError is answered
    200.error     a completion is answered with 200 and an error in its body, as S3 may do; the server did not do it
    403           ExpiredToken
    409, 412      a conditional write is refused although nothing stands in its way
"""

from __future__ import annotations

import contextlib
import http.client
import random
import socket
import struct
import threading
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Choose = Callable[["Request"], str | None]

FAULTS = (
    "drop.before",
    "drop.amid",
    "drop.after",
    "late",
    "half.open",
    "slow",
    "truncated",
    "garbled",
    "500",
    "503",
    "500.after",
    "200.error",
    "403",
    "409",
    "412",
)
_ANSWERS = {
    "500": (500, "InternalError"),
    "500.after": (500, "InternalError"),
    "503": (503, "SlowDown"),
    "200.error": (200, "InternalError"),
    "403": (403, "ExpiredToken"),
    "409": (409, "ConditionalRequestConflict"),
    "412": (412, "PreconditionFailed"),
}
_BEFORE = {"500", "503", "200.error", "403", "409", "412"}
_WITH_XML = {"begin", "complete", "list", "uploads"}
_HOP = {"connection", "expect", "transfer-encoding", "keep-alive"}
_RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Request:
    """A request as the proxy sees it."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def key(self) -> str:
        """The object's key, or "" where the bucket itself is asked."""
        return urlsplit(self.target).path.lstrip("/").partition("/")[2]

    @property
    def kind(self) -> str:
        """What it is: append, put, probe, part, begin, complete, abort, get, head, list, uploads or delete."""
        query = parse_qs(urlsplit(self.target).query, keep_blank_values=True)
        if self.method == "POST":
            return "begin" if "uploads" in query else "complete"
        if self.method == "PUT" and "partNumber" in query:
            return "part"
        if self.method == "PUT":
            parts = self.key.split("/")
            return "append" if "log" in parts[:-1] else "probe" if "probe" in parts else "put"
        if self.method == "GET" and not self.key:
            return "uploads" if "uploads" in query else "list"
        return "abort" if "uploadId" in query else self.method.lower()

    def suffers(self, fault: str) -> bool:
        """Whether this fault can happen to this request."""
        if fault in ("409", "412"):
            return "if-none-match" in self.headers or "if-match" in self.headers
        if fault in ("garbled", "200.error"):
            return self.kind == "complete" or (fault == "garbled" and self.kind in _WITH_XML)
        if fault == "truncated":
            return self.kind in _WITH_XML or self.kind == "get"
        return bool(self.body) if fault == "drop.amid" else True


def nothing(_: Request) -> None:
    """All requests pass."""


def once_per_kind(fault: str, kinds: Sequence[str] | None = None, times: int = 1) -> Choose:
    """The first requests of each kind that can suffer this fault do."""
    hit: Counter[str] = Counter()
    lock = threading.Lock()

    def choose(request: Request) -> str | None:
        kind = request.kind
        if not request.suffers(fault) or (kinds is not None and kind not in kinds):
            return None
        with lock:
            hit[kind] += 1
            return fault if hit[kind] <= times else None

    return choose


def in_turn(kind: str, *faults: str | None) -> Choose:
    """The first requests of one kind suffer these faults, one after the other."""
    left = list(faults)
    lock = threading.Lock()

    def choose(request: Request) -> str | None:
        with lock:
            return left.pop(0) if left and request.kind == kind else None

    return choose


def at_random(rate: float, seed: int, faults: Sequence[str] = FAULTS) -> Choose:
    """A share of all requests suffers one of the faults that it can suffer."""
    dice = random.Random(seed)
    lock = threading.Lock()

    def choose(request: Request) -> str | None:
        with lock:
            if dice.random() >= rate:
                return None
            return dice.choice([fault for fault in faults if request.suffers(fault)] or [None])

    return choose


class FaultyS3(ThreadingHTTPServer):
    """`happened`: how often each (kind, fault) did. `slow_s`, `late_s`: for the faults of that name.

    `hold_s`: how long a half-open connection is held before it is reset after all. `latency_s`: the least and the most
    that every request is held.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, upstream: str, choose: Choose = nothing) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = urlsplit(upstream).netloc
        self.choose = choose
        self.happened: Counter[tuple[str, str]] = Counter()
        self.slow_s, self.late_s, self.hold_s = 0.05, 0.05, 60.0
        self.latency_s = (0.0, 0.0)
        self.closing = threading.Event()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def note(self, request: Request, fault: str) -> None:
        with self._lock:
            self.happened[request.kind, fault] += 1

    def ask(self, request: Request) -> tuple[int, list[tuple[str, str]], bytes]:
        """What the real server says."""
        upstream = http.client.HTTPConnection(self.upstream, timeout=60)
        try:
            headers = {name: value for name, value in request.headers.items() if name not in _HOP}
            upstream.request(request.method, request.target, request.body, headers)
            answer = upstream.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            upstream.close()

    def half_a_body(self, request: Request) -> None:
        """Send the first half of a request and hang up."""
        upstream = http.client.HTTPConnection(self.upstream, timeout=60)
        upstream.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
        for name, value in request.headers.items():
            if name not in _HOP:
                upstream.putheader(name, value)
        upstream.endheaders(request.body[: len(request.body) // 2])
        _hang_up(upstream.sock)

    def handle_error(self, *_: object) -> None:
        """Connections that break are what this is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: FaultyS3

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, body)
        if self.server.latency_s[1]:
            self.server.closing.wait(random.uniform(*self.server.latency_s))
        fault = self.server.choose(request)
        if fault is None:
            self._answer(*self.server.ask(request))
        else:
            self.server.note(request, fault)
            self._suffer(request, fault)

    def _suffer(self, request: Request, fault: str) -> None:
        server = self.server
        if fault in _BEFORE:
            self._refuse(request, fault)
        elif fault == "drop.before":
            _hang_up(self.connection)
        elif fault == "drop.amid":
            server.half_a_body(request)
            _hang_up(self.connection)
        elif fault == "late":
            _hang_up(self.connection)
            server.closing.wait(server.late_s)
            server.ask(request)
        elif fault == "slow":
            server.closing.wait(server.slow_s)
            self._answer(*server.ask(request))
        else:
            self._spoil(request, fault, *server.ask(request))
            return
        self.close_connection = self.close_connection or fault in ("drop.before", "drop.amid", "late")

    def _spoil(self, request: Request, fault: str, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """The server did it; the answer is another thing."""
        if fault == "500.after":
            self._refuse(request, fault)
        elif fault == "garbled":
            self._answer(status, headers, b"<html>welcome to the hotel</html"[: len(body)].ljust(len(body)))
        elif fault == "truncated":
            self._answer(status, [*headers, ("Content-Length", str(len(body)))], body[: len(body) // 2])
            self.close_connection = True
        else:
            if fault == "half.open":
                self.server.closing.wait(self.server.hold_s)
            self.close_connection = True

    def _refuse(self, request: Request, fault: str) -> None:
        status, code = _ANSWERS[fault]
        text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>made by the test</Message></Error>"
        self._answer(status, [], b"" if request.method == "HEAD" else text.encode())

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        kept = {name.lower(): value for name, value in headers if name.lower() not in _HOP}
        kept.setdefault("content-length", str(len(body)))
        for name, value in kept.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on  # noqa: N815 - names that http.server looks for


def _hang_up(connection: socket.socket) -> None:
    """Reset a connection, so that the other side cannot take it for an end in order."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        connection.shutdown(socket.SHUT_RDWR)
        connection.close()


@contextlib.contextmanager
def faulty_s3(upstream: str, choose: Choose = nothing) -> Iterator[FaultyS3]:
    """A proxy that runs until the end of the block. `upstream`: the real server's URL."""
    server = FaultyS3(upstream, choose)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
