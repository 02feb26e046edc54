"""A cluster of two real brokers, one of which may be killed and come back: the first one is the controller too."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from confluent_kafka import ElectionType
from confluent_kafka.admin import AdminClient
from tenacity import retry, stop_after_delay, wait_fixed

from penstock.dev.jars import jars
from penstock.dev.settings import free_ports
from penstock.java import find_java

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CLUSTER = "penstock-two-brokers-1"
_COMMON = {
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "2",
    "default.replication.factor": "2",
    "min.insync.replicas": "1",
    "group.initial.rebalance.delay.ms": "0",
    "replica.lag.time.max.ms": "3000",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "auto.leader.rebalance.enable": "false",
    "log.retention.ms": "-1",
}


@dataclass
class TwoBrokers:
    folder: Path
    ports: dict[str, int]
    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def servers(self) -> str:
        return f"localhost:{self.ports['1']},localhost:{self.ports['2']}"

    @property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

    def start(self, node: int) -> None:
        log = (self.folder / f"broker{node}.log").open("ab")
        command = [*self._java(), "kafka.Kafka", str(self.folder / f"server{node}.properties")]
        self.processes[node] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        log.close()

    def kill(self, node: int) -> None:
        """SIGKILL."""
        self.processes[node].kill()
        self.processes[node].wait()

    @retry(stop=stop_after_delay(90), wait=wait_fixed(0.2), reraise=True)
    def wait_for(self, brokers: int) -> None:
        assert len(self.admin.list_topics(timeout=5).brokers) == brokers

    def leaders(self, topic: str) -> list[int]:
        partitions = self.admin.list_topics(topic, timeout=10).topics[topic].partitions
        return [partitions[number].leader for number in sorted(partitions)]

    @retry(stop=stop_after_delay(90), wait=wait_fixed(0.2), reraise=True)
    def restore_leaders(self, topic: str) -> None:
        """Give each partition back to the broker that led it first, once that one has caught up."""
        admin = self.admin  # it has to outlive its request
        admin.elect_leaders(ElectionType.PREFERRED).result(10)
        assert set(self.leaders(topic)) == {1, 2}

    def prepare(self, node: int) -> None:
        """Format the folder of a broker; the first one is the controller too."""
        broker, controller = f"PLAINTEXT://localhost:{self.ports[str(node)]}", f"localhost:{self.ports['controller']}"
        own = {
            "process.roles": "broker,controller" if node == 1 else "broker",
            "node.id": str(node),
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"{broker},CONTROLLER://{controller}" if node == 1 else broker,
            "advertised.listeners": broker,
            "log.dirs": str(self.folder / f"data{node}"),
        }
        file = self.folder / f"server{node}.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in {**_COMMON, **own}.items()))
        command = [*self._java(), "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(file)]
        subprocess.run(command, check=True, capture_output=True)

    @staticmethod
    def _java() -> list[str]:
        java = str(find_java() / "bin" / "java")
        return [java, "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{jars('kafka', lambda _: None)}/*"]


@contextmanager
def two_brokers(folder: Path) -> Iterator[TwoBrokers]:
    """Both run at the beginning of the block, and none behind it."""
    cluster = TwoBrokers(folder, free_ports(("1", "2", "controller")))
    try:
        for node in (1, 2):
            cluster.prepare(node)
            cluster.start(node)
        cluster.wait_for(2)
        yield cluster
    finally:
        for process in cluster.processes.values():
            process.kill()
            process.wait()
