"""A real Kafka broker: KRaft, one node that is broker and controller, nothing ever expires."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from penstock.dev.jars import jars
from penstock.dev.services.service import Launch, Service, Site
from penstock.errors import PenstockError
from penstock.java import find_java

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.dev.settings import Settings

_HEAP = ("-Xms64m", "-Xmx320m", "-XX:+UseSerialGC")

# Old timestamps stay readable and are accepted; one node replicates nothing; compaction shows within a second.
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{controller}
listeners=PLAINTEXT://{broker},CONTROLLER://{controller}
advertised.listeners=PLAINTEXT://{broker}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
num.partitions=1
auto.create.topics.enable=true
num.network.threads=2
num.io.threads=4
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
offsets.retention.minutes=2147483647
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
log.retention.ms=-1
log.retention.bytes=-1
log.message.timestamp.before.max.ms=9223372036854775807
log.message.timestamp.after.max.ms=9223372036854775807
log.segment.delete.delay.ms=1000
log.initial.task.delay.ms=1000
log.cleaner.backoff.ms=500
log.cleaner.threads=1
log.cleaner.dedupe.buffer.size=4194304
controlled.shutdown.max.retries=1
"""

_LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %-5p %c{1} %m%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""


def _fetch(echo: Callable[[str], None]) -> object:
    return jars("kafka", echo)


def _prepare(site: Site) -> Launch:
    settings = site.settings
    data = site.home / "data"
    properties = site.home / "server.properties"
    addresses = {"broker": settings.address("kafka"), "controller": settings.address("kafka-controller")}
    properties.write_text(_PROPERTIES.format(**addresses, data=_escaped(str(data))), encoding="utf-8")
    (site.home / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
    java: tuple[str, ...] = (
        str(find_java() / "bin" / "java"),
        *_HEAP,
        f"-Dlog4j2.configurationFile={site.home / 'log4j2.properties'}",
        "-cp",
        f"{jars('kafka', _silence)}/*",
    )
    if not (data / "meta.properties").exists():
        _format(java, settings.cluster_id, str(properties))
    return Launch(command=(*java, "kafka.Kafka", str(properties)))


def _format(java: tuple[str, ...], cluster_id: str, properties: str) -> None:
    command = [*java, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", "-c", properties]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it says nothing"]
        msg = f"Kafka cannot prepare its data folder: {said[-1]}"
        raise PenstockError(msg)


def _answers(settings: Settings) -> str | None:
    # librdkafka prints every refused connection otherwise.
    client = AdminClient(
        {"bootstrap.servers": settings.address("kafka"), "log_level": 0, "log.connection.close": False}
    )
    try:
        brokers = client.list_topics(timeout=2).brokers
    except KafkaException as error:
        return str(error.args[0])
    return None if brokers else "the broker has not registered itself yet"


def _escaped(path: str) -> str:
    """A path as a value of a Java properties file."""
    return path.replace("\\", "\\\\")


def _silence(_: str) -> None:
    """For jars that `fetch` has brought already."""


SERVICE = Service(name="kafka", ports=("kafka", "kafka-controller"), fetch=_fetch, prepare=_prepare, answers=_answers)
