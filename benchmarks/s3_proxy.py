"""A proxy in front of the S3 server that counts requests and, if wanted, delays each: `python -m benchmarks.s3_proxy`.

It prints its port, then answers each line on stdin with the counts so far. A thread per connection reads requests; a
second one copies answers back as they come. Its CPU is not counted, like that of the broker and the S3 server.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK = 1 << 20
_STATE = "/_penstock/"


@dataclass(slots=True)
class Counts:
    """Requests by what they do; those for the state log are apart."""

    delay: float
    found: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, method: str, target: str) -> None:
        """Count one."""
        with self._lock:
            self.found[kind(method, target)] += 1


def kind(method: str, target: str) -> str:
    """What a request does, e.g. `part`, or `state put`."""
    path, _, query = target.partition("?")
    what = method.lower()
    if re.search(r"(^|&)uploads(=|&|$)", query):
        what = "begin" if method == "POST" else "list"
    elif "uploadId=" in query:
        what = {"PUT": "part", "POST": "complete", "DELETE": "abort"}.get(method, what)
    elif method == "GET" and ("list-type=" in query or path.count("/") < 2):  # noqa: PLR2004 - a bucket, not an object
        what = "list"
    in_state = _STATE in path or "prefix=_penstock" in query
    return f"state {what}" if in_state else what


def _serve(upstream: tuple[str, int], counts: Counts) -> int:
    """Listen on a free port, which is returned."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)

    def accept() -> None:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_connection, args=(client, upstream, counts), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return int(listener.getsockname()[1])


def _connection(client: socket.socket, upstream: tuple[str, int], counts: Counts) -> None:
    with contextlib.suppress(OSError), client, socket.create_connection(upstream) as server:
        for each in (client, server):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_answers, args=(server, client), daemon=True).start()
        with client.makefile("rb", buffering=_BLOCK) as requests:
            for head, target in _heads(requests):
                counts.add(target[0], target[1])
                time.sleep(counts.delay)
                server.sendall(head)
                _body(requests, server, head)
        server.shutdown(socket.SHUT_WR)


def _heads(requests: IO[bytes]) -> Iterator[tuple[bytes, tuple[str, str]]]:
    """Each request's head, with its method and target."""
    while True:
        lines = []
        while (line := requests.readline()) not in (b"\r\n", b""):
            lines.append(line)
        if not lines or not line:
            return
        method, target, _ = lines[0].decode("latin-1").split(" ", 2)
        yield b"".join(lines) + line, (method, target)


def _body(requests: IO[bytes], server: socket.socket, head: bytes) -> None:
    if re.search(rb"(?im)^transfer-encoding:[ \t]*chunked", head):
        while True:
            size = requests.readline()
            server.sendall(size)
            if int(size.split(b";")[0], 16) == 0:
                break
            _copy(requests, server, int(size.split(b";")[0], 16) + 2)
        while (line := requests.readline()) != b"\r\n":
            server.sendall(line)
        server.sendall(line)
        return
    length = re.search(rb"(?im)^content-length:[ \t]*(\d+)", head)
    _copy(requests, server, int(length[1]) if length else 0)


def _copy(requests: IO[bytes], server: socket.socket, size: int) -> None:
    while size:
        block = requests.read1(min(size, _BLOCK))  # type: ignore[attr-defined]
        if not block:
            raise ConnectionResetError
        server.sendall(block)
        size -= len(block)


def _answers(server: socket.socket, client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while block := server.recv(_BLOCK):
            client.sendall(block)
        client.shutdown(socket.SHUT_RDWR)


@dataclass(slots=True)
class Proxy:
    """The proxy as a process of its own. `url`: where S3 clients reach it."""

    url: str
    _process: subprocess.Popen[str]

    @classmethod
    @contextlib.contextmanager
    def running(cls, store_url: str, delay_ms: int = 0) -> Iterator[Proxy]:
        """Start it, and end it afterwards."""
        command = [sys.executable, "-m", "benchmarks.s3_proxy", store_url, "--delay-ms", str(delay_ms)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield cls(f"http://127.0.0.1:{int(_line(process))}", process)
            finally:
                process.terminate()

    def counts(self) -> Counter[str]:
        """Requests so far."""
        assert self._process.stdin is not None
        self._process.stdin.write("counts\n")
        self._process.stdin.flush()
        return Counter(json.loads(_line(self._process)))


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        msg = f"the S3 proxy ended with {process.wait()}"
        raise RuntimeError(msg)
    return line


def main() -> None:
    """Serve until stdin ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store_url")
    parser.add_argument("--delay-ms", type=int, default=0)
    given = parser.parse_args()
    address = urlsplit(given.store_url)
    counts = Counts(given.delay_ms / 1000)
    print(_serve((address.hostname or "", address.port or 80), counts), flush=True)
    for _ in sys.stdin:
        print(json.dumps(counts.found), flush=True)


if __name__ == "__main__":
    main()
