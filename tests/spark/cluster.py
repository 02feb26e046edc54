"""A real Spark cluster on this machine: a standalone master and workers, each a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from penstock.dev.settings import free_ports
from penstock.java import find_java

if TYPE_CHECKING:
    from collections.abc import Iterator

SPARK_HOME = Path(pyspark.__file__).parent
_EXECUTOR = b"CoarseGrainedExecutorBackend"


@dataclass
class Cluster:
    """`environment`: what a driver needs to find it; `workers`: their processes."""

    url: str
    folder: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def executor_of(self, task: int) -> int:
        """The pid of the executor above a Python process that runs a task."""
        known = processes()
        while _EXECUTOR not in known[task][1]:
            task = known[task][0]
        return task


def processes() -> dict[int, tuple[int, bytes]]:
    """Every process: its parent and its command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                found[int(entry.name)] = (parent, (entry / "cmdline").read_bytes())
            except (OSError, ValueError):
                continue
    return found


@contextmanager
def spark_cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """A master and workers of one core each, without anything of this environment but Spark itself.

    Each worker has an address of its own: Spark lets no second attempt of a task run on the host of the first one.
    """
    java = find_java()
    environment = {"PATH": os.environ["PATH"], "JAVA_HOME": str(java), "SPARK_HOME": str(SPARK_HOME)}
    environment |= {"SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_DIRS": str(folder / "local"), "HOME": str(folder)}
    port = free_ports(("master",))["master"]
    cluster = Cluster(f"spark://127.0.0.1:{port}", folder)
    command = [str(java / "bin" / "java"), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += ["-cp", f"{SPARK_HOME}/jars/*"]

    def start(name: str, *arguments: str, host: str = "127.0.0.1") -> subprocess.Popen[bytes]:
        log = stack.enter_context((folder / f"{name}.log").open("wb"))
        own = {**environment, "SPARK_LOCAL_IP": host, "SPARK_LOCAL_HOSTNAME": host}
        process = subprocess.Popen([*command, *arguments], env=own, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        stack.callback(_end, process)
        return process

    with ExitStack() as stack:
        deploy = "org.apache.spark.deploy"
        start("master", f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        _wait_for(folder / "master.log", r"I have been elected leader")
        for index in range(workers):
            host = f"127.0.0.{index + 1}"
            own = (
                "--host",
                host,
                "-c",
                "1",
                "-m",
                "2g",
                "--webui-port",
                "0",
                "-d",
                str(folder / f"work-{index}"),
            )
            cluster.workers.append(start(f"worker-{index}", f"{deploy}.worker.Worker", *own, cluster.url, host=host))
        for index in range(workers):
            _wait_for(folder / f"worker-{index}.log", r"Successfully registered with master")
        yield cluster


def _wait_for(log: Path, pattern: str) -> None:
    deadline = time.monotonic() + 120
    while not re.search(pattern, log.read_text(errors="replace")):
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-2000:]
        time.sleep(0.1)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
