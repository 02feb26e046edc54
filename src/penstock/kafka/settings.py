"""Kafka client settings: Java's property names in, one frozen value out.

Everything that can be wrong in a properties file is found here, files of certificates included; both clients
(librdkafka on the driver, aiokafka in the reader) are configured from the one value.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from penstock.errors import ConfigError
from penstock.kafka.clients import aiokafka_kwargs, librdkafka_config
from penstock.kafka.properties import HARMLESS, PLAIN_PROPERTIES, REFUSED, SECURITY_PROPERTIES
from penstock.kafka.sasl import read_sasl
from penstock.kafka.tls import Tls, read_tls

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.kafka.oauth import OAuth
    from penstock.kafka.sasl import Login

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_GOT = re.compile(r"got `.*`", re.DOTALL)
_SERVER = re.compile(r"(?:[A-Z_]+://)?(?P<server>(?:\[[0-9A-Fa-f:.%]+\]|[^\s\[\]:/,]+):(?P<port>[0-9]{1,5}))")
_HIGHEST_PORT = 65_535
_FETCH_WAIT_MS, _REQUEST_TIMEOUT_MS = 500, 30_000
_NEEDS_SASL = ("sasl.mechanism", "sasl.jaas.config", "sasl.oauthbearer.token.endpoint.url")
_NEEDS_TLS = tuple(name for name in SECURITY_PROPERTIES if re.match(r"ssl\.(truststore|keystore|key)\.", name))


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """How to reach the brokers and how to read from them. Fields are named after their properties.

    Holds secrets (it is pickled to the executors, which log in with them); repr() never shows one.
    """

    bootstrap_servers: str
    security_protocol: SecurityProtocol = "PLAINTEXT"
    sasl: Login | OAuth | None = None
    tls: Tls | None = None
    client_id: str = "penstock"
    client_rack: str = ""
    client_dns_lookup: str = "use_all_dns_ips"
    isolation_level: Literal["read_committed", "read_uncommitted"] = "read_committed"
    auto_offset_reset: Literal["earliest", "latest", "none"] = "earliest"
    fetch_max_bytes: int = 52_428_800
    max_partition_fetch_bytes: int = 1_048_576
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = _FETCH_WAIT_MS
    check_crcs: bool = True
    request_timeout_ms: int = _REQUEST_TIMEOUT_MS
    default_api_timeout_ms: int = 15_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    connections_max_idle_ms: int = 540_000
    socket_connection_setup_timeout_ms: int = 10_000

    @classmethod
    def parse(
        cls,
        properties: Mapping[str, str],
        where: Callable[[str], str] | None = None,
        written: Mapping[str, str] | None = None,
    ) -> KafkaSettings:
        """Read Java consumer properties (without `consumer.` and the like).

        `where`: the place of a property in the user's files, put in front of its problems; may return "".
        `written`: what stands in the files where a variable gave the text, which is then not shown.

        Raises:
            ConfigError: with every mistake there is. No text of a password is in it.
        """
        texts = {name: value.strip() for name, value in properties.items()}
        parsing = _Parsing(texts, where or (lambda _: ""), written or {})
        fields = parsing.fields()
        if parsing.problems:
            raise ConfigError(parsing.problems)
        return cls(**fields)

    def librdkafka_config(self) -> dict[str, object]:
        """The configuration of a confluent-kafka client. It prints nothing by itself; certificates are in memory."""
        return librdkafka_config(self)

    def aiokafka_kwargs(self) -> dict[str, object]:
        """The keyword arguments of an AIOKafkaClient, with an SSL context made in this process."""
        return aiokafka_kwargs(self)


class _Parsing:
    """One pass over the properties that collects all problems."""

    def __init__(self, values: Mapping[str, str], where: Callable[[str], str], written: Mapping[str, str]) -> None:
        self.values = values
        self.problems: list[str] = []
        self._where = where
        self._written = written

    def refuse(self, name: str, problem: str) -> None:
        place = self._where(name)
        if name in self._written:
            problem = _GOT.sub(lambda _: f"got `{self._written[name]}`", problem)
        self.problems.append(f"{place}: {name} {problem}" if place else f"{name} {problem}")

    def fields(self) -> dict[str, Any]:
        self._names()
        found: dict[str, Any] = {"bootstrap_servers": self._bootstrap_servers()}
        for each in PLAIN_PROPERTIES:
            if each.name in self.values:
                try:
                    found[each.field] = each.read(self.values[each.name])
                except ValueError as error:
                    self.refuse(each.name, f"{error}, got `{self.values[each.name]}`")
        self._waits(found)
        return found | self._security()

    def _waits(self, found: dict[str, Any]) -> None:
        """A broker that waits longer than we do for its answer would never be heard."""
        wait, most = found.get("fetch_max_wait_ms"), found.get("request_timeout_ms")
        if wait is None and most is not None:
            found["fetch_max_wait_ms"] = min(_FETCH_WAIT_MS, most // 2)
        elif wait is not None and wait >= (most or _REQUEST_TIMEOUT_MS):
            limit = most or _REQUEST_TIMEOUT_MS
            self.refuse("fetch.max.wait.ms", f"must be less than request.timeout.ms (`{limit}`), got `{wait}`")

    def _names(self) -> None:
        honoured = {each.name for each in PLAIN_PROPERTIES} | SECURITY_PROPERTIES.keys()
        known = sorted(honoured | HARMLESS.keys() | REFUSED.keys())
        for name, value in self.values.items():
            if name in REFUSED and value:
                self.refuse(name, REFUSED[name])
            elif name not in known:
                near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
                self.refuse(name, "is no property of Kafka's consumer" + (f"; did you mean {near[0]}?" if near else ""))

    def _bootstrap_servers(self) -> str:
        text = self.values.get("bootstrap.servers", "")
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if not parts:
            self.refuse("bootstrap.servers", "must be set: brokers as host:port, separated by commas")
        servers = []
        for part in parts:
            match = _SERVER.fullmatch(part)
            if match is None or not 0 < int(match["port"]) <= _HIGHEST_PORT:
                self.refuse("bootstrap.servers", f"must be host:port, separated by commas, got `{part}`")
            else:
                servers.append(match["server"])
        return ",".join(servers)

    def _security(self) -> dict[str, Any]:
        text = self.values.get("security.protocol", "PLAINTEXT")
        if text.upper() not in _PROTOCOLS:
            self.refuse("security.protocol", f"must be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, got `{text}`")
            return {}
        protocol = cast("SecurityProtocol", text.upper())
        has_sasl, has_tls = protocol.startswith("SASL_"), protocol.endswith("SSL")
        if not has_sasl:
            self._unused(_NEEDS_SASL, protocol, "SASL_SSL or SASL_PLAINTEXT")
        if not has_tls:
            self._unused(_NEEDS_TLS, protocol, "SASL_SSL" if has_sasl else "SSL")
        set_values = {name: value for name, value in self.values.items() if value or name.endswith(".algorithm")}
        return {
            "security_protocol": protocol,
            "sasl": read_sasl(set_values, self.refuse) if has_sasl else None,
            "tls": read_tls(set_values, self.refuse) if has_tls else None,
        }

    def _unused(self, names: tuple[str, ...], protocol: str, instead: str) -> None:
        for name in names:
            if self.values.get(name):
                self.refuse(name, f"has no effect with security.protocol={protocol}: set {instead} there, or remove it")
