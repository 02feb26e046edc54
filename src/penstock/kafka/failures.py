"""Why Kafka does not answer or refuses, in one sentence that says what to do."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
from typing import TYPE_CHECKING, NamedTuple

from cryptography import x509

from penstock.errors import KafkaUnavailable
from penstock.kafka.oauth import OAuth, token_source
from penstock.kafka.sasl import Login
from penstock.kafka.tls import ssl_context

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Sequence

    from penstock.kafka.settings import KafkaSettings
    from penstock.kafka.tls import Tls

_PROBE_SECONDS = 3.0
_LOGIN = "_AUTHENTICATION"
_TLS_TEXTS = ("SSL handshake failed", "certificate verify failed")
# Alerts by which a broker says that it does not accept the client's certificate (RFC 8446, section 6).
_CERTIFICATE_ALERT = re.compile(r"alert ([a-z ]*certificate[a-z ]*|unknown ca|access denied|handshake failure)")
_OFFERED = re.compile(r"supported mechanisms: *(\S+)")
_WHERE = re.compile(r"^\S*?/bootstrap: |^\S+?/\d+: ")
_URL = re.compile(r"\w+://(\S+):(\d+)/")
_STATE = re.compile(r" \(after \d+ms in state \w+\)")

# By OpenSSL's verification codes.
_UNTRUSTED = (
    "is signed by an authority that is not trusted: put that authority's certificate into ssl.truststore.location "
    "or ssl.truststore.certificates"
)
_OTHER_HOST = (
    "names another host: use in bootstrap.servers a name that the certificate holds (or, if you can do without that "
    "check, set ssl.endpoint.identification.algorithm to nothing)"
)
_VERIFY = {
    2: "ends at an authority whose own issuer is not trusted: the trusted certificates must go up to the root",
    9: "is not valid yet: check the clock of this machine, and the certificate's first day",
    10: "has expired: renew it at the broker",
    18: _UNTRUSTED,
    19: _UNTRUSTED,
    20: _UNTRUSTED,
    21: _UNTRUSTED,
    62: _OTHER_HOST,
    64: _OTHER_HOST,
}


class Report(NamedTuple):
    """One event that librdkafka told `error_cb`: the name of its code, and its text."""

    code: str
    text: str


def refusal(settings: KafkaSettings, reports: Sequence[Report]) -> KafkaUnavailable | None:
    """What the reports say for certain and waiting does not cure: a refused login, a certificate. Else None."""
    texts = [report.text for report in reports]
    for report in reports:
        if report.code == _LOGIN:
            return _login_refused(settings, report.text)
    if settings.tls is not None:
        # A broker that others told of may be the one to blame, not one of bootstrap.servers.
        failed = [text for text in texts if any(mark in text for mark in _TLS_TEXTS)]
        suspects = dict.fromkeys(
            (where[1].strip("[]"), int(where[2])) for text in failed if (where := _URL.match(text))
        )
        if found := probe_tls(settings.tls, suspects):
            return found
        for text in texts:
            if alert := _CERTIFICATE_ALERT.search(text):
                return _own_certificate_refused(settings, alert[1].strip())
    return None


def away(settings: KafkaSettings, reports: Sequence[Report], seconds: float) -> KafkaUnavailable:
    """No broker answered in time, for a reason that may pass; the sentence names what the reports point at."""
    reasons = list(dict.fromkeys(_reason(report.text) for report in reports if report.code != "_ALL_BROKERS_DOWN"))
    hint = _protocol_hint(settings, reasons)
    because = f" ({reasons[-1]})" if reasons and not hint else ""
    msg = (
        f"Kafka at {settings.bootstrap_servers} does not answer within {seconds:g} s{because}: "
        f"{hint or 'check bootstrap.servers, and that the brokers run and can be reached from here'}"
    )
    return KafkaUnavailable(msg)


def user(settings: KafkaSettings) -> str:
    """Whom the brokers take us for, as far as the settings tell."""
    if isinstance(settings.sasl, Login):
        return f"user `{settings.sasl.username}`"
    if isinstance(settings.sasl, OAuth):
        return f"client `{settings.sasl.client_id}`"
    if settings.tls is not None and settings.tls.chain is not None:
        return f"`{_own_certificate(settings.tls.chain).subject.rfc4514_string()}`"
    return "a user without login"


def probe_tls(tls: Tls, addresses: Iterable[tuple[str, int]]) -> KafkaUnavailable | None:
    """Shake hands once more with each broker, by Python's ssl, which tells why a certificate is refused."""
    context = ssl_context(tls)
    return next((found for address in addresses if (found := _certificate_refused(address, context))), None)


def _certificate_refused(address: tuple[str, int], context: ssl.SSLContext) -> KafkaUnavailable | None:
    try:
        with (
            socket.create_connection(address, _PROBE_SECONDS) as raw,
            context.wrap_socket(raw, server_hostname=address[0]),
        ):
            return None
    except ssl.SSLCertVerificationError as error:
        why = _VERIFY.get(error.verify_code, f"is refused: {error.verify_message}")
        msg = f"the certificate of the Kafka broker {address[0]}:{address[1]} {why}"
        return KafkaUnavailable(msg, transient=False)
    except OSError:
        return None


def _login_refused(settings: KafkaSettings, text: str) -> KafkaUnavailable:
    servers, sasl = settings.bootstrap_servers, settings.sasl
    if "Unsupported SASL mechanism" in text and (offered := _OFFERED.search(text)):
        msg = (
            f"Kafka at {servers} does not offer sasl.mechanism={_mechanism(settings)}: set one of "
            f"{', '.join(offered[1].split(','))}, or ask for another listener"
        )
    elif "not valid in current SASL state" in text:
        without = "SSL" if settings.tls else "PLAINTEXT"
        msg = (
            f"Kafka at {servers} wants no login at this port: set security.protocol={without}, "
            "or name the port of its SASL listener in bootstrap.servers"
        )
    elif isinstance(sasl, OAuth):
        try:
            token_source(sasl).token()
        except KafkaUnavailable as error:
            return error
        msg = (
            f"Kafka at {servers} refuses the token of client `{sasl.client_id}` (OAUTHBEARER: {_reason(text)}); "
            "check scope, and which issuer and audience the brokers expect"
        )
    else:
        msg = (
            f"Kafka at {servers} refuses the login of {user(settings)} with {_mechanism(settings)}: "
            "check username and password in sasl.jaas.config"
        )
    return KafkaUnavailable(msg, transient=False)


def _own_certificate_refused(settings: KafkaSettings, alert: str) -> KafkaUnavailable:
    chain = settings.tls.chain if settings.tls else None
    if chain is None:
        msg = (
            f"Kafka at {settings.bootstrap_servers} asks for a client certificate: set ssl.keystore.location, "
            "or ssl.keystore.certificate.chain and ssl.keystore.key"
        )
        return KafkaUnavailable(msg, transient=False)
    last = _last_day(chain)
    msg = (
        f"Kafka at {settings.bootstrap_servers} refuses the client certificate of {user(settings)} ({alert}; "
        f"valid until {last:%Y-%m-%d}): renew it if that is over, else have its authority trusted by the brokers"
    )
    return KafkaUnavailable(msg, transient=False)


def _own_certificate(chain: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(chain.encode())


def _last_day(chain: str) -> dt.datetime:
    return min(each.not_valid_after_utc for each in x509.load_pem_x509_certificates(chain.encode()))


def _mechanism(settings: KafkaSettings) -> str:
    return settings.sasl.mechanism if isinstance(settings.sasl, Login) else "OAUTHBEARER"


def _protocol_hint(settings: KafkaSettings, reasons: Iterable[str]) -> str | None:
    """What to try where a port is open, but the other side talks another protocol."""
    protocol = settings.security_protocol
    if settings.tls is not None:
        if any("PLAINTEXT broker listener" in reason for reason in reasons):
            other = protocol.replace("SASL_SSL", "SASL_PLAINTEXT").replace("SSL", "PLAINTEXT")
            return f"its port is open but speaks no TLS; security.protocol={protocol} should perhaps be {other}"
        return None
    listening = [address for address in _addresses(settings) if _accepts(address)]
    if not listening:
        return None
    if any(_speaks_tls(address) for address in listening):
        other = "SASL_SSL" if settings.sasl else "SSL or SASL_SSL"
        return f"its port speaks TLS; security.protocol={protocol} should be {other}"
    if settings.sasl is None:
        return f"its port is open; if it wants a login, security.protocol={protocol} should be SASL_PLAINTEXT"
    return None


def _accepts(address: tuple[str, int]) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection(address, _PROBE_SECONDS).close()
        return True
    return False


def _speaks_tls(address: tuple[str, int]) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Nothing is sent over this connection: it only asks whether the port answers a TLS greeting.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        contextlib.suppress(OSError),
        socket.create_connection(address, _PROBE_SECONDS) as raw,
        context.wrap_socket(raw),
    ):
        return True
    return False


def _addresses(settings: KafkaSettings) -> list[tuple[str, int]]:
    parts = (server.rpartition(":") for server in settings.bootstrap_servers.split(","))
    return [(host.strip("[]"), int(port)) for host, _, port in parts]


def _reason(text: str) -> str:
    """A report's text without librdkafka's names of its own places and states."""
    return _STATE.sub("", _WHERE.sub("", text)).strip()
