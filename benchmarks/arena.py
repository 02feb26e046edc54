"""The servers that all contenders use, the contenders' processes, and one measured run of one of them."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from benchmarks.cases import Case, converter
from benchmarks.measuring import Watch, cpu_seconds
from benchmarks.s3_proxy import Proxy
from benchmarks.shapes import SCHEMA
from benchmarks.spark_peer import SparkPeer, spark_peer
from penstock.dev import stack

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Mapping

    from benchmarks.topics import Topic
    from penstock.dev.settings import StackInfo

TASKS = 2
OURS, LOOP, SPARK = "penstock", "consumer-loop", "spark-structured-streaming"
_ROOT = Path(__file__).resolve().parents[1]
_OWN_FILES = ("_penstock/", "/_spark_metadata/", ".index.json", "last_chunk_index")
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of one contender cost. `requests`: to S3, by what they do; `prefix`: where its objects are."""

    records: int
    wall_s: float
    cpu_s: float
    peak_bytes: int
    objects: int
    requests: Counter[str]
    prefix: str


@dataclass(frozen=True, slots=True)
class Cost:
    """What a job of a contender cost, and its answer."""

    answer: dict[str, Any]
    wall_s: float
    cpu_s: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Arena:
    """Broker, registry and S3 server; `proxy` is where contenders reach the latter."""

    info: StackInfo
    proxy: Proxy

    @classmethod
    @contextlib.contextmanager
    def open(cls, folder: Path, delay_ms: int = 0) -> Iterator[Arena]:
        """Start everything; nothing is left afterwards."""
        info = stack.start(folder, echo=lambda _: None)
        try:
            with Proxy.running(info.store_url, delay_ms) as proxy:
                yield cls(info, proxy)
        finally:
            stack.destroy(folder, lambda _: None)

    @contextlib.contextmanager
    def behind(self, delay_ms: int) -> Iterator[Arena]:
        """The same servers, with S3 farther away."""
        with Proxy.running(self.info.store_url, delay_ms) as proxy:
            yield Arena(self.info, proxy)

    @property
    def s3(self) -> Any:  # noqa: ANN401 - a boto3 client
        """A client past the proxy, for what is not measured."""
        return boto3.client(
            "s3",
            endpoint_url=self.info.store_url,
            region_name=self.info.region,
            aws_access_key_id=self.info.access_key_id,
            aws_secret_access_key=self.info.secret_access_key,
            config=Config(s3={"addressing_style": "path"}, max_pool_connections=4),
        )

    def properties(self, case: Case, topic: str, run: str, flush: int, more: Mapping[str, str]) -> dict[str, str]:
        """A connector's properties, with names of their own."""
        return {
            "name": run,
            "topics": topic,
            "topics.dir": run,
            "tasks.max": str(TASKS),
            "flush.size": str(flush),
            "store.url": self.proxy.url,
            "s3.region": self.info.region,
            "s3.bucket.name": self.info.bucket,
            "aws.access.key.id": self.info.access_key_id,
            "aws.secret.access.key": self.info.secret_access_key,
            **converter(case, self.info.schema_registry_url),
            **case.properties,
            **more,
        }

    def keys(self, prefix: str) -> list[str]:
        """The data objects under a prefix."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.info.bucket, Prefix=prefix)
        found = (each["Key"] for page in pages for each in page.get("Contents", ()))
        return [key for key in found if not any(part in key for part in _OWN_FILES)]

    def delete(self, prefix: str) -> None:
        """Remove a run's objects: disks are small."""
        client = self.s3
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=self.info.bucket, Prefix=prefix):
            if page.get("Contents"):
                names = [{"Key": each["Key"]} for each in page["Contents"]]
                client.delete_objects(Bucket=self.info.bucket, Delete={"Objects": names, "Quiet": True})


@dataclass(slots=True)
class Contender:
    """A contender's processes, warm between runs. A run begins when it is told to, and ends when it says so."""

    name: str
    arena: Arena
    _process: subprocess.Popen[str] = field(repr=False)

    @classmethod
    @contextlib.contextmanager
    def running(
        cls, name: str, arena: Arena, peer: SparkPeer | None, more: Mapping[str, str] | None = None
    ) -> Iterator[Contender]:
        """Start it in a session of its own. `more`: of its environment."""
        command, environment = _launch(name, arena, peer)
        log = _ROOT / "build" / "bench" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as errors:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
                cwd=_ROOT,
                env={**os.environ, **environment, **(more or {})},
            )
        contender = cls(name, arena, process)
        try:
            contender._answer()
            yield contender
        finally:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def run(self, case: Case, topic: Topic, flush: int, more: Mapping[str, str] | None = None) -> Run:
        """Everything that is in the topic, into objects under a prefix of its own."""
        run, before = self.new_name(case), self.arena.proxy.counts()
        cost = self.cost_of(self._job(case, topic, run, flush, more or {}))
        requests = self.arena.proxy.counts() - before
        objects = len(self.arena.keys(f"{run}/"))
        return Run(cost.answer["records"], cost.wall_s, cost.cpu_s, cost.peak_bytes, objects, requests, f"{run}/")

    def cost_of(self, job: dict[str, Any]) -> Cost:
        """Any job that the contender's program knows."""
        session = self._process.pid
        with Watch(session) as watch:
            cpu, began = cpu_seconds(session), time.monotonic()
            answer = self._ask(job)
            wall, used = time.monotonic() - began, cpu_seconds(session) - cpu
        return Cost(answer, wall, used, watch.peak)

    def new_name(self, case: Case) -> str:
        """A name that no run had yet."""
        return f"{self.name}-{case.name}-{next(_numbers)}"

    def ask(self, kind: str, properties: Mapping[str, str], **more: object) -> dict[str, Any]:
        """One of our own program's other jobs (`benchmarks/contenders/ours.py`)."""
        worker = {"bootstrap.servers": self.arena.info.bootstrap_servers}
        return self._ask({"kind": kind, "properties": properties, "worker": worker, **more})

    @property
    def pid(self) -> int:
        """The session, and its first process."""
        return self._process.pid

    def _job(self, case: Case, topic: Topic, run: str, flush: int, more: Mapping[str, str]) -> dict[str, Any]:
        info = self.arena.info
        if self.name == OURS:
            properties = self.arena.properties(case, topic.name, run, flush, more)
            worker = {"bootstrap.servers": info.bootstrap_servers}
            return {"kind": "until_done", "properties": properties, "worker": worker}
        return {
            "run": run,
            "topic": topic.name,
            "shares": topic.filled,
            "flush": flush,
            "input": case.shape.kind,
            "output": case.output,
            "codec": case.codec,
            "by": case.by,
            "schema": SCHEMA,
            "bootstrap": info.bootstrap_servers,
            "registry": info.schema_registry_url,
            "store_url": self.arena.proxy.url,
            "bucket": info.bucket,
            "region": info.region,
            "access_key_id": info.access_key_id,
            "secret_access_key": info.secret_access_key,
        }

    def _ask(self, job: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended: the answer says so
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            msg = f"{self.name}: {answer['error']}"
            raise RuntimeError(msg)
        return answer

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            msg = f"{self.name} ended with {self._process.wait()}; see build/bench/{self.name}.log"
            raise RuntimeError(msg)
        answer: dict[str, Any] = json.loads(line)
        return answer


def contenders() -> tuple[dict[str, SparkPeer | None], str]:
    """Those that can be had here, ours first; and a sentence about one that cannot."""
    peer = spark_peer()
    found: dict[str, SparkPeer | None] = {OURS: None, LOOP: None}
    if isinstance(peer, str):
        return found, peer
    return {**found, SPARK: peer}, ""


def _launch(name: str, arena: Arena, peer: SparkPeer | None) -> tuple[list[str], dict[str, str]]:
    environment = {"BENCH_TASKS": str(TASKS), "PYTHONPATH": f"{_ROOT}{os.pathsep}{_ROOT / 'src'}"}
    if peer is None:
        module = {OURS: "ours", LOOP: "consumer_loop"}[name]
        return [sys.executable, "-m", f"benchmarks.contenders.{module}"], environment
    environment |= {
        "BENCH_JARS": peer.jars,
        "BENCH_STORE_URL": arena.proxy.url,
        "BENCH_REGION": arena.info.region,
        "BENCH_ACCESS_KEY_ID": arena.info.access_key_id,
        "BENCH_SECRET_ACCESS_KEY": arena.info.secret_access_key,
    }
    return [str(peer.python), "-m", "benchmarks.contenders.spark_streaming"], environment
