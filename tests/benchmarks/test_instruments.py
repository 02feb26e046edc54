"""The generator makes what it says, CPU time of ended processes is counted, the proxy sees every request."""

import http.client
import io
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import fastavro
import numpy as np
import pytest
from benchmarks.measuring import Watch, cpu_seconds, memory_bytes
from benchmarks.s3_proxy import Proxy, kind
from benchmarks.shapes import FIRST_MS, SCHEMA, Shape, batch, fields, stamped

from penstock.kafka.batches import Fetched, decode, tabulate
from penstock.kafka.decompress import Arena
from penstock.model import Gather, PlannedRange, TopicPartition

TP = TopicPartition("t", 0)
BURN = "import time\nwhile time.process_time() < 0.3: pass"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}]); print('done', flush=True); input()"


def decoded(made):
    data = np.frombuffer(made, np.uint8)
    table, fault = tabulate(TP, data, 0, len(data), 0)
    assert fault is None
    (records,) = decode(Fetched(PlannedRange(TP, 0, 1000), data, table), 0, Gather(keys=True), Arena(1 << 20))
    return records


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_batch_holds_the_records_of_its_numbers_at_its_time(codec):
    shape = Shape(codec=codec, keys=True, headers=2)
    records = decoded(stamped(batch(shape, 7, 30, 20), FIRST_MS))
    assert len(records) == 20
    assert list(records.timestamps) == [FIRST_MS + n * shape.step_ms for n in range(20)]
    values = [records.values[row] for row in range(20)]
    assert {value[:5] for value in values} == {b"\x00\x00\x00\x00\x07"}
    assert [fastavro.schemaless_reader(io.BytesIO(value[5:]), SCHEMA, None) for value in values] == [
        fields(shape, number) for number in range(30, 50)
    ]
    assert records.keys[0] == b"key-30"


@pytest.mark.parametrize(("kind", "size"), [("avro", 107), ("json", 143), ("bytes", 100), ("bytes", 10_000)])
def test_values_are_about_as_large_as_asked_for(kind, size):
    records = decoded(batch(Shape(kind=kind, size=size), 7, 0, 50))
    assert records.values.offsets[-1] / 50 == pytest.approx(size, rel=0.06)


def test_skew_gives_the_first_partition_its_share():
    assert Shape(partitions=4, skew=0.7).shares(1000) == [700, 100, 100, 100]
    assert Shape(partitions=4).shares(1000) == [250] * 4


def test_cpu_of_children_that_have_ended_is_counted_and_memory_of_the_session_seen():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as parent:
        with Watch(parent.pid, every=0.02) as watch:
            assert parent.stdout.readline() == "done\n"
        assert cpu_seconds(parent.pid) >= 0.3
        assert 1 << 20 < memory_bytes(parent.pid) < watch.peak
        parent.communicate("\n")
    assert memory_bytes(parent.pid) == 0


class Upstream(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bodies: list = []  # noqa: RUF012 - one server per test, which empties it

    def do_PUT(self):
        if self.headers["Transfer-Encoding"] == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self.bodies.append(body)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


@pytest.fixture
def upstream():
    Upstream.bodies.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Upstream) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_proxy_passes_on_counts_and_delays(upstream):
    sent = [b"x" * 3_000_000, b"", [b"in ", b"chunks"]]
    with Proxy.running(upstream, delay_ms=50) as proxy:
        connection = http.client.HTTPConnection(proxy.url.removeprefix("http://"))
        began = time.monotonic()
        for number, body in enumerate(sent):
            key = f"/bucket/_penstock/{number}" if number == 1 else f"/bucket/{number}"
            connection.request("PUT", key, body=iter(body) if isinstance(body, list) else body)
            assert connection.getresponse().read() == b"ok"
        assert time.monotonic() - began >= 0.15
        connection.close()
        assert proxy.counts() == {"put": 2, "state put": 1}
    assert [len(body) for body in Upstream.bodies] == [3_000_000, 0, 9]


@pytest.mark.parametrize(
    ("method", "target", "expected"),
    [
        ("POST", "/b/k?uploads", "begin"),
        ("PUT", "/b/k?partNumber=1&uploadId=x", "part"),
        ("POST", "/b/k?uploadId=x", "complete"),
        ("DELETE", "/b/k?uploadId=x", "abort"),
        ("GET", "/b?list-type=2&prefix=topics", "list"),
        ("GET", "/b?uploads&prefix=topics", "list"),
        ("GET", "/b?list-type=2&prefix=_penstock%2F", "state list"),
        ("HEAD", "/b/k", "head"),
        ("PUT", "/b/_penstock/c/log/1.json", "state put"),
    ],
)
def test_requests_are_counted_by_what_they_do(method, target, expected):
    assert kind(method, target) == expected
