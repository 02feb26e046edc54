"""Connections to the brokers, and which broker leads which topic-partition.

aiokafka's AIOKafkaClient is not used for this: its metadata requests create topics that were deleted, and it hides
why a login failed.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from aiokafka import errors as kafka_errors
from aiokafka.conn import AIOKafkaConnection, collect_hosts
from aiokafka.protocol.metadata import MetadataRequest

from penstock.errors import KafkaUnavailable
from penstock.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Address: TypeAlias = "tuple[str, int]"

_SETUP_SECONDS = 10.0  # Java's socket.connection.setup.timeout.ms
_GOODBYE_SECONDS = 1.0  # for the end of TLS, which the broker has to answer
_CONNECTION_OPTIONS = (
    "client_id",
    "request_timeout_ms",
    "ssl_context",
    "security_protocol",
    "sasl_mechanism",
    "sasl_plain_username",
    "sasl_plain_password",
    "sasl_kerberos_service_name",
    "sasl_kerberos_domain_name",
    "sasl_oauth_token_provider",
)
_BROKEN = (OSError, asyncio.TimeoutError, kafka_errors.KafkaError)
_REFUSED = (
    ssl.SSLCertVerificationError,
    kafka_errors.AuthenticationFailedError,
    kafka_errors.AuthenticationMethodNotSupported,
    kafka_errors.SaslAuthenticationFailed,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.IncompatibleBrokerVersion,
)


class BrokerLost(Exception):  # noqa: N818 - a state of the connection
    """One broker cannot be reached or broke off; the text says why."""


@dataclass(frozen=True, slots=True)
class Topology:
    """Who leads what; a topic-partition without a leader has Kafka's error code in `problems` instead."""

    leaders: Mapping[TopicPartition, int]
    problems: Mapping[TopicPartition | str, int]


class Brokers:
    """The brokers of one cluster. `connection`: keyword arguments of an AIOKafkaClient."""

    def __init__(self, connection: Mapping[str, Any]) -> None:
        self._servers = str(connection["bootstrap_servers"])
        self._options = {name: connection[name] for name in _CONNECTION_OPTIONS if name in connection}
        self._options["max_idle_ms"] = connection.get("connections_max_idle_ms")
        self._nodes: dict[int, Address] = {}
        self._open: dict[Address, AIOKafkaConnection] = {}
        self._opening: dict[Address, asyncio.Lock] = {}
        self._closing: set[asyncio.Future[None]] = set()

    @property
    def nodes(self) -> tuple[int, ...]:
        """The ids of the brokers, once one was asked."""
        return tuple(self._nodes)

    async def topology(self, topics: Iterable[str]) -> Topology:
        """Ask any broker where the partitions of `topics` are; creates no topic.

        Raises:
            KafkaUnavailable: none answers, or they refuse this client (then not transient).
        """
        request = MetadataRequest(sorted(set(topics)), allow_auto_topic_creation=False)
        known = [*self._open, *self._nodes.values(), *((host, port) for host, port, _ in collect_hosts(self._servers))]
        reason = "no broker is named"
        for address in dict.fromkeys(known):
            try:
                answer = await self._ask(address, request)
            except BrokerLost as lost:
                reason = str(lost)
            else:
                self._nodes = {node: (host, port) for node, host, port, *_ in answer.brokers}
                return _topology(answer.topics)
        msg = f"no broker answers at bootstrap.servers=`{self._servers}`: {reason}"
        raise KafkaUnavailable(msg)

    async def send(self, node: int, request: Any) -> Any:  # noqa: ANN401 - aiokafka's requests and their answers
        """Send a request to a broker by its id and wait for the answer.

        Raises:
            BrokerLost: it cannot be reached, or the connection broke.
            KafkaUnavailable: it refuses this client.
        """
        if node not in self._nodes:
            msg = f"broker {node} is not in the cluster"
            raise BrokerLost(msg)
        return await self._ask(self._nodes[node], request)

    async def close(self) -> None:
        """Close all connections; returns when those that broke off before are closed too."""
        for address in list(self._open):
            self._drop(address)
        if self._closing:
            await asyncio.wait(self._closing, timeout=_GOODBYE_SECONDS)

    async def _ask(self, address: Address, request: Any) -> Any:  # noqa: ANN401
        where = f"{address[0]}:{address[1]}"
        try:
            return await (await self._connection(address)).send(request)
        except _REFUSED as error:
            msg = f"the broker `{where}` refuses this client: {error}"
            raise KafkaUnavailable(msg, transient=False) from None
        except _BROKEN as error:
            self._drop(address)
            msg = f"`{where}`: {str(error) or type(error).__name__}"
            raise BrokerLost(msg) from None

    async def _connection(self, address: Address) -> AIOKafkaConnection:
        async with self._opening.setdefault(address, asyncio.Lock()):
            connection = self._open.get(address)
            if connection is None or not connection.connected():
                self._drop(address)
                connection = self._open[address] = await self._connect(address)
            return connection

    async def _connect(self, address: Address) -> AIOKafkaConnection:
        connection = AIOKafkaConnection(*address, **self._options)
        try:
            await asyncio.wait_for(connection.connect(), _SETUP_SECONDS)
        except (asyncio.CancelledError, asyncio.TimeoutError, kafka_errors.KafkaError):
            self._leave(connection)
            raise
        return connection

    def _drop(self, address: Address) -> None:
        connection = self._open.pop(address, None)
        if connection is not None:
            self._leave(connection)

    def _leave(self, connection: AIOKafkaConnection) -> None:
        closed = connection.close()
        if closed is not None and not closed.done():
            self._closing.add(closed)
            closed.add_done_callback(self._closing.discard)


def _topology(topics: Iterable[Any]) -> Topology:
    leaders: dict[TopicPartition, int] = {}
    problems: dict[TopicPartition | str, int] = {}
    for error, topic, _, partitions in topics:
        if error:
            problems[topic] = error
        for problem, partition, leader, *_ in partitions:
            tp = TopicPartition(topic, partition)
            if leader >= 0:
                leaders[tp] = leader
            else:
                problems[tp] = problem
    return Topology(leaders, problems)
