"""Kafka's consumer properties: which are honoured, which mean nothing here, which cannot be honoured.

Names and meanings are those of the Java consumer; the first table is the one declaration of each plain property, and
`settings.py` reads the security ones. Where a default differs from Kafka's own, its `doc` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Property:
    """One plain property. `read` turns its text into the value or raises ValueError("must be ...")."""

    name: str
    read: Callable[[str], int | str | bool]
    default: int | str | bool
    doc: str

    @property
    def field(self) -> str:
        """The field of KafkaSettings that holds it."""
        return self.name.replace(".", "_")


def integer(least: int, most: int = INT32_MAX) -> Callable[[str], int]:
    """A reader of whole numbers in `[least, most]`."""

    def read(text: str) -> int:
        msg = f"must be a whole number from {least} to {most}"
        try:
            value = int(text)
        except ValueError:
            raise ValueError(msg) from None
        if not least <= value <= most:
            raise ValueError(msg)
        return value

    return read


def one_of(*choices: str) -> Callable[[str], str]:
    """A reader of words that must be among `choices`."""

    def read(text: str) -> str:
        if text not in choices:
            listed = " or ".join((", ".join(choices[:-1]), choices[-1])) if choices[1:] else choices[0]
            msg = f"must be {listed}"
            raise ValueError(msg)
        return text

    return read


def boolean(text: str) -> bool:
    """`true` or `false`, in any case, as Java reads them."""
    return one_of("true", "false")(text.lower()) == "true"


PLAIN_PROPERTIES = (
    Property("client.id", str, "penstock", "Name of this client in the brokers' logs, metrics and quotas."),
    Property("client.rack", str, "", "Rack of this client; brokers that support it let a near replica answer."),
    Property(
        "client.dns.lookup",
        one_of("use_all_dns_ips"),
        "use_all_dns_ips",
        "How names are resolved. `resolve_canonical_bootstrap_servers_only` serves Kerberos and is refused.",
    ),
    Property(
        "isolation.level",
        one_of("read_committed", "read_uncommitted"),
        "read_committed",
        "Whether records of open and aborted transactions are left out. Kafka's own default is `read_uncommitted`.",
    ),
    Property(
        "auto.offset.reset",
        one_of("earliest", "latest", "none"),
        "earliest",
        "Where a topic-partition starts that has no position yet. Kafka's own default is `latest`.",
    ),
    Property("fetch.max.bytes", integer(1024), 52_428_800, "Most bytes of one fetch response."),
    Property("max.partition.fetch.bytes", integer(0), 1_048_576, "Most bytes of one topic-partition in a response."),
    Property("fetch.min.bytes", integer(0), 1, "The broker answers a fetch once it has this many bytes."),
    Property("fetch.max.wait.ms", integer(0), 500, "Or once this much time has passed."),
    Property("check.crcs", boolean, True, "Whether the checksum of every record batch is compared."),
    Property("request.timeout.ms", integer(1), 30_000, "Longest wait for the answer to one request."),
    Property(
        "default.api.timeout.ms",
        integer(1),
        15_000,
        "Longest wait for one question to the cluster, retries included. Kafka's own default is 60000.",
    ),
    Property("retry.backoff.ms", integer(0), 100, "Pause before a failed request is sent again; doubles each time."),
    Property("retry.backoff.max.ms", integer(0), 1_000, "Longest such pause."),
    Property("reconnect.backoff.ms", integer(0), 50, "Pause before a broker is dialled again; doubles each time."),
    Property("reconnect.backoff.max.ms", integer(0), 1_000, "Longest such pause."),
    Property(
        "metadata.max.age.ms", integer(0, INT64_MAX), 300_000, "Topics and leaders are asked for at least this often."
    ),
    Property("connections.max.idle.ms", integer(0, INT64_MAX), 540_000, "Idle connections are closed after this time."),
    Property("socket.connection.setup.timeout.ms", integer(1, INT64_MAX), 10_000, "Longest wait for a connection."),
)

_GROUP = "Penstock is not a member of a consumer group: Spark deals out the ranges"
_STATE = "positions live in the state log; the consumer group only mirrors them"
_CONVERTERS = "bytes are turned into values by key.converter and value.converter"
_METRICS = "metrics of the Java client; Penstock has its own"
_KERNEL = "the operating system sizes socket buffers by itself"
_JVM = "chooses among parts of a JVM, and no JVM talks to Kafka here"
_BROKER_SIDE = "read by brokers that check tokens, not by clients"
_TOKEN = "a token is always fetched anew after 80 percent of its life"  # noqa: S105 - a sentence
_KERBEROS = "only read by Kerberos (GSSAPI), which is refused as sasl.mechanism"

HARMLESS = MappingProxyType(
    {
        "max.poll.records": "batches are sized in bytes: fetch.max.bytes, max.partition.fetch.bytes",
        "max.poll.interval.ms": _GROUP,
        "session.timeout.ms": _GROUP,
        "heartbeat.interval.ms": _GROUP,
        "partition.assignment.strategy": _GROUP,
        "group.instance.id": _GROUP,
        "group.protocol": _GROUP,
        "group.remote.assignor": _GROUP,
        "exclude.internal.topics": "Kafka's internal topics are never read",
        "allow.auto.create.topics": "Penstock never creates a topic by asking for it",
        "enable.auto.commit": _STATE,
        "auto.commit.interval.ms": _STATE,
        "key.deserializer": _CONVERTERS,
        "value.deserializer": _CONVERTERS,
        "metric.reporters": _METRICS,
        "metrics.num.samples": _METRICS,
        "metrics.recording.level": _METRICS,
        "metrics.sample.window.ms": _METRICS,
        "auto.include.jmx.reporter": _METRICS,
        "enable.metrics.push": _METRICS,
        "receive.buffer.bytes": _KERNEL,
        "send.buffer.bytes": _KERNEL,
        "socket.connection.setup.timeout.max.ms": "the limit does not grow: socket.connection.setup.timeout.ms holds",
        "metadata.recovery.strategy": "each cycle starts again from bootstrap.servers when all known brokers are gone",
        "metadata.recovery.rebootstrap.trigger.ms": "see metadata.recovery.strategy",
        "ssl.keymanager.algorithm": _JVM,
        "ssl.trustmanager.algorithm": _JVM,
        "ssl.secure.random.implementation": _JVM,
        "sasl.login.refresh.window.factor": _TOKEN,
        "sasl.login.refresh.window.jitter": _TOKEN,
        "sasl.login.refresh.min.period.seconds": _TOKEN,
        "sasl.login.refresh.buffer.seconds": _TOKEN,
        "sasl.login.retry.backoff.ms": "the engine waits and asks again: one layer of retries",
        "sasl.login.retry.backoff.max.ms": "the engine waits and asks again: one layer of retries",
        "sasl.oauthbearer.clock.skew.seconds": _BROKER_SIDE,
        "sasl.oauthbearer.expected.audience": _BROKER_SIDE,
        "sasl.oauthbearer.expected.issuer": _BROKER_SIDE,
        "sasl.oauthbearer.jwks.endpoint.url": _BROKER_SIDE,
        "sasl.oauthbearer.jwks.endpoint.refresh.ms": _BROKER_SIDE,
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": _BROKER_SIDE,
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": _BROKER_SIDE,
        "sasl.oauthbearer.scope.claim.name": _BROKER_SIDE,
        "sasl.oauthbearer.sub.claim.name": "the name is read from the claim `sub` here; brokers read their own",
        "sasl.kerberos.kinit.cmd": _KERBEROS,
        "sasl.kerberos.min.time.before.relogin": _KERBEROS,
        "sasl.kerberos.service.name": _KERBEROS,
        "sasl.kerberos.ticket.renew.jitter": _KERBEROS,
        "sasl.kerberos.ticket.renew.window.factor": _KERBEROS,
    }
)

_CLASS = "names Java code, which cannot run here; remove it"

REFUSED = MappingProxyType(
    {
        "group.id": "cannot be set: positions are mirrored to the group `connect-<name of the connector>`; remove it",
        "interceptor.classes": _CLASS,
        "ssl.engine.factory.class": _CLASS,
        "security.providers": _CLASS,
        "ssl.provider": _CLASS,
        "sasl.login.class": _CLASS,
        "sasl.client.callback.handler.class": _CLASS,
        "sasl.oauthbearer.jwt.retriever.class": _CLASS,
        "sasl.oauthbearer.jwt.validator.class": _CLASS,
        "ssl.cipher.suites": "cannot be honoured for every connection; remove it and restrict suites at the brokers",
    }
)

SECURITY_PROPERTIES = MappingProxyType(
    {
        "bootstrap.servers": "Brokers to ask first, `host:port`, separated by commas.",
        "security.protocol": "PLAINTEXT (default), SSL, SASL_PLAINTEXT or SASL_SSL.",
        "sasl.mechanism": "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.",
        "sasl.jaas.config": "Kafka's PlainLoginModule, ScramLoginModule or OAuthBearerLoginModule, with its options.",
        "sasl.login.callback.handler.class": "Kafka's own OAuthBearerLoginCallbackHandler, or nothing.",
        "sasl.oauthbearer.token.endpoint.url": "Where tokens are fetched (grant type client_credentials).",
        "sasl.oauthbearer.client.credentials.client.id": "As clientId in sasl.jaas.config.",
        "sasl.oauthbearer.client.credentials.client.secret": "As clientSecret in sasl.jaas.config.",
        "sasl.oauthbearer.scope": "As scope in sasl.jaas.config.",
        "sasl.oauthbearer.header.urlencode": "Whether client id and secret are URL-encoded before they are sent.",
        "sasl.login.connect.timeout.ms": "Longest wait for a connection to the token endpoint (default 10000).",
        "sasl.login.read.timeout.ms": "Longest wait for the token endpoint's answer (default 10000).",
        "ssl.truststore.location": "File of trusted certificates, PEM or PKCS12; without one the system's are trusted.",
        "ssl.truststore.password": "Its password (PKCS12).",
        "ssl.truststore.type": "PEM or PKCS12; without it the file itself tells.",
        "ssl.truststore.certificates": "Trusted certificates themselves, PEM.",
        "ssl.keystore.location": "File of the client's private key and certificate chain, PEM or PKCS12.",
        "ssl.keystore.password": "Its password (PKCS12).",
        "ssl.keystore.type": "PEM or PKCS12; without it the file itself tells.",
        "ssl.keystore.key": "The client's private key itself, PEM (PKCS#8).",
        "ssl.keystore.certificate.chain": "The client's certificate chain itself, PEM.",
        "ssl.key.password": "Password of the private key.",
        "ssl.endpoint.identification.algorithm": "https (default): certificates must name the host; empty: not so.",
        "ssl.protocol": "TLSv1.3 or TLS.",
        "ssl.enabled.protocols": "Must hold TLSv1.2 and TLSv1.3: both are offered.",
    }
)
