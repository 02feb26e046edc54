"""One KafkaSettings for two clients: librdkafka's option names and aiokafka's keyword arguments."""

from __future__ import annotations

import ssl
from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka.oauth import TokenProvider, librdkafka_token, token_source
from penstock.kafka.sasl import Login
from penstock.kafka.tls import ssl_context

if TYPE_CHECKING:
    from penstock.kafka.oauth import OAuth
    from penstock.kafka.settings import KafkaSettings
    from penstock.kafka.tls import Tls

# What librdkafka takes at most and at least; Java takes more, and the difference has no meaning in practice.
_RANGES = {
    "socket.timeout.ms": (10, 300_000),
    "retry.backoff.ms": (1, 300_000),
    "retry.backoff.max.ms": (1, 300_000),
    "reconnect.backoff.ms": (0, 3_600_000),
    "reconnect.backoff.max.ms": (0, 3_600_000),
    "metadata.max.age.ms": (1, 86_400_000),
    "connections.max.idle.ms": (2_000, 2_147_483_647),
    "socket.connection.setup.timeout.ms": (1_000, 2_147_483_647),
}


def librdkafka_config(settings: KafkaSettings) -> dict[str, object]:
    """The configuration of a confluent-kafka client for control requests; `error_cb` may be replaced."""
    return {
        "bootstrap.servers": settings.bootstrap_servers,
        "security.protocol": settings.security_protocol,
        "client.id": settings.client_id,
        "client.rack": settings.client_rack,
        "client.dns.lookup": settings.client_dns_lookup,
        "log_level": 0,
        "error_cb": _ignore,
        **_times(settings),
        **_librdkafka_sasl(settings.sasl),
        **(_librdkafka_tls(settings.tls) if settings.tls else {}),
    }


def aiokafka_kwargs(settings: KafkaSettings) -> dict[str, object]:
    """The keyword arguments of an AIOKafkaClient."""
    return {
        "bootstrap_servers": settings.bootstrap_servers,
        "security_protocol": settings.security_protocol,
        "client_id": settings.client_id,
        "metadata_max_age_ms": settings.metadata_max_age_ms,
        "request_timeout_ms": settings.request_timeout_ms,
        "retry_backoff_ms": settings.retry_backoff_ms,
        "connections_max_idle_ms": settings.connections_max_idle_ms,
        **_aiokafka_sasl(settings.sasl),
        **({"ssl_context": ssl_context(settings.tls)} if settings.tls else {}),
    }


def _ignore(_: object) -> None:
    """Takes what librdkafka would else print: the calls themselves report their failures."""


def _times(settings: KafkaSettings) -> dict[str, object]:
    times = {
        "socket.timeout.ms": settings.request_timeout_ms,
        "retry.backoff.ms": settings.retry_backoff_ms,
        "retry.backoff.max.ms": max(settings.retry_backoff_ms, settings.retry_backoff_max_ms),
        "reconnect.backoff.ms": settings.reconnect_backoff_ms,
        "reconnect.backoff.max.ms": max(settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms),
        "metadata.max.age.ms": settings.metadata_max_age_ms,
        "connections.max.idle.ms": settings.connections_max_idle_ms,
        "socket.connection.setup.timeout.ms": settings.socket_connection_setup_timeout_ms,
    }
    return {name: min(max(_RANGES[name][0], value), _RANGES[name][1]) for name, value in times.items()}


def _librdkafka_sasl(sasl: Login | OAuth | None) -> dict[str, object]:
    if sasl is None:
        return {}
    if isinstance(sasl, Login):
        return {"sasl.mechanism": sasl.mechanism, "sasl.username": sasl.username, "sasl.password": sasl.password}
    return {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": partial(_oauth_cb, sasl)}


def _oauth_cb(oauth: OAuth, _: str) -> tuple[str, float, str, dict[str, str]]:
    return librdkafka_token(token_source(oauth))


def _librdkafka_tls(tls: Tls) -> dict[str, object]:
    algorithm = "https" if tls.check_hostname else "none"
    if tls.trusted is None:
        # Python's idea of the system's certificates, so that both clients trust the same ones.
        paths = ssl.get_default_verify_paths()
        trusted = {"ssl.ca.location": paths.cafile or paths.capath or "probe"}
    else:
        trusted = {"ssl.ca.pem": tls.trusted}
    own = {"ssl.certificate.pem": tls.chain, "ssl.key.pem": tls.key} if tls.chain and tls.key else {}
    return {"ssl.endpoint.identification.algorithm": algorithm, **trusted, **own}


def _aiokafka_sasl(sasl: Login | OAuth | None) -> dict[str, object]:
    if sasl is None:
        return {}
    if isinstance(sasl, Login):
        return {
            "sasl_mechanism": sasl.mechanism,
            "sasl_plain_username": sasl.username,
            "sasl_plain_password": sasl.password,
        }
    return {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": TokenProvider(token_source(sasl))}
