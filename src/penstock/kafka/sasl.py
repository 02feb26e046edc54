"""How to log in: Java's `sasl.*` properties and `sasl.jaas.config` to a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast
from urllib.parse import urlsplit

from penstock.kafka.jaas import LoginModule, parse_jaas
from penstock.kafka.oauth import OAuth
from penstock.kafka.properties import integer, one_of
from penstock.kafka.tls import read_tls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.kafka.tls import Refuse

PasswordMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

_SECURITY = "org.apache.kafka.common.security"
_MODULES = {
    "PLAIN": f"{_SECURITY}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_SECURITY}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_SECURITY}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule",
}
_OAUTH_HANDLERS = (
    f"{_SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler",
    f"{_SECURITY}.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
)
_ELSEWHERE = {
    "GSSAPI": "Kerberos cannot be used here",
    "AWS_MSK_IAM": "IAM login to MSK cannot be used here; MSK also offers SCRAM-SHA-512",
}
_HANDLER = "sasl.login.callback.handler.class"
_JAAS = "sasl.jaas.config"
_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_CREDENTIALS = "sasl.oauthbearer.client.credentials"


@dataclass(frozen=True, slots=True)
class Login:
    """User name and password for PLAIN and SCRAM."""

    mechanism: PasswordMechanism
    username: str
    password: str = field(repr=False)


def read_sasl(values: Mapping[str, str], refuse: Refuse) -> Login | OAuth | None:
    """The `sasl.*` part of `values`; `refuse(name, problem)` is called for each mistake, then None is returned."""
    mechanism = values.get("sasl.mechanism", "GSSAPI")
    if mechanism not in _MODULES:
        reason = _ELSEWHERE.get(mechanism, "no such mechanism is known")
        got = f"got `{mechanism}`" if "sasl.mechanism" in values else "it is not set, which means GSSAPI to Kafka"
        refuse("sasl.mechanism", f"must be PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER ({reason}), {got}")
        return None
    module = _login_module(values, mechanism, refuse)
    _check_handler(values.get(_HANDLER), mechanism, refuse)
    if module is None:
        return None
    if mechanism == "OAUTHBEARER":
        return _oauth(values, module.options, refuse)
    return _login(cast("PasswordMechanism", mechanism), module.options, refuse)


def _login_module(values: Mapping[str, str], mechanism: str, refuse: Refuse) -> LoginModule | None:
    if _JAAS not in values:
        if mechanism == "OAUTHBEARER" and f"{_CREDENTIALS}.client.id" in values:
            return LoginModule(_MODULES[mechanism], {})
        refuse(_JAAS, f"must be set: `{_MODULES[mechanism]} required ...;`")
        return None
    try:
        module = parse_jaas(values[_JAAS])
    except ValueError as error:
        refuse(_JAAS, str(error))
        return None
    if module.name != _MODULES[mechanism]:
        refuse(_JAAS, f"must name {_MODULES[mechanism]} for sasl.mechanism={mechanism}, got `{module.name}`")
        return None
    return module


def _check_handler(handler: str | None, mechanism: str, refuse: Refuse) -> None:
    if handler is None or (mechanism == "OAUTHBEARER" and handler in _OAUTH_HANDLERS):
        return
    if handler in _OAUTH_HANDLERS:
        refuse(_HANDLER, f"fits sasl.mechanism=OAUTHBEARER only, which is {mechanism}; remove it")
    else:
        refuse(_HANDLER, f"names Java code, which cannot run here; only Kafka's own is known, got `{handler}`")


def _login(mechanism: PasswordMechanism, options: Mapping[str, str], refuse: Refuse) -> Login | None:
    missing = [name for name in ("username", "password") if name not in options]
    for name in missing:
        refuse(_JAAS, f'must hold the option {name}="..."')
    # A broker's own file lists its users as user_NAME: nothing to a client.
    unknown = [name for name in options if name not in ("username", "password") and not name.startswith("user_")]
    for name in unknown:
        refuse(_JAAS, f"has the option {name}, which cannot be honoured; remove it")
    if missing or unknown:
        return None
    return Login(mechanism, options["username"], options["password"])


def _oauth(values: Mapping[str, str], options: Mapping[str, str], refuse: Refuse) -> OAuth | None:
    problems: list[str] = []

    def note(name: str, problem: str) -> None:
        problems.append(name)
        refuse(name, problem)

    client_id = _either(values, options, f"{_CREDENTIALS}.client.id", "clientId", note)
    client_secret = _either(values, options, f"{_CREDENTIALS}.client.secret", "clientSecret", note)
    scope = values.get("sasl.oauthbearer.scope", options.get("scope", ""))
    extensions = tuple(sorted((name[10:], text) for name, text in options.items() if name.startswith("extension_")))
    tls_options = {name: text for name, text in options.items() if name.startswith("ssl.")}
    _check_options(options, note)
    tls = read_tls(tls_options, lambda name, problem: note(_JAAS, f"has the option {name}, which {problem}"))
    found = OAuth(
        endpoint=_endpoint(values, note),
        client_id=client_id,
        client_secret=client_secret,
        scope=scope,
        extensions=extensions,
        urlencode=_word(values, "sasl.oauthbearer.header.urlencode", note) == "true",
        connect_timeout_ms=_milliseconds(values, "sasl.login.connect.timeout.ms", note),
        read_timeout_ms=_milliseconds(values, "sasl.login.read.timeout.ms", note),
        tls=tls,
    )
    return None if problems else found


def _check_options(options: Mapping[str, str], note: Refuse) -> None:
    for name in options:
        if name not in ("clientId", "clientSecret", "scope") and not name.startswith(("extension_", "ssl.")):
            unsecured = " (unsecured tokens are for trials of brokers only)" if name.startswith("unsecured") else ""
            note(_JAAS, f"has the option {name}, which cannot be honoured{unsecured}; remove it")


def _either(values: Mapping[str, str], options: Mapping[str, str], name: str, option: str, note: Refuse) -> str:
    text = values.get(name, options.get(option, ""))
    if not text:
        note(_JAAS, f'must hold the option {option}="..."')
    return text


def _endpoint(values: Mapping[str, str], note: Refuse) -> str:
    text = values.get(_ENDPOINT)
    if text is None:
        note(_ENDPOINT, "must be set: where tokens are fetched, https://...")
        return ""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
    except ValueError:
        usable = False
    if not usable:
        note(_ENDPOINT, "must be an address https://host/path without user or password in it")
    return text


def _milliseconds(values: Mapping[str, str], name: str, note: Refuse) -> int:
    try:
        return integer(1)(values.get(name, "10000"))
    except ValueError as error:
        note(name, f"{error}, got `{values[name]}`")
        return 0


def _word(values: Mapping[str, str], name: str, note: Refuse) -> str:
    try:
        return one_of("true", "false")(values.get(name, "false"))
    except ValueError as error:
        note(name, f"{error}, got `{values[name]}`")
        return ""
