"""OAUTHBEARER: tokens by the grant `client_credentials`, kept until near their end."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import math
import threading
import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlsplit, urlunsplit

import requests
from aiokafka.abc import AbstractTokenProvider
from requests.adapters import HTTPAdapter

from penstock.errors import KafkaUnavailable
from penstock.kafka.tls import Tls, ssl_context

if TYPE_CHECKING:
    from collections.abc import Callable

_RENEW_AT = 0.8
_SERVER_FAULT = 500
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class OAuth:
    """Where tokens come from. `tls` is the token endpoint's, not the brokers'."""

    endpoint: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""
    extensions: tuple[tuple[str, str], ...] = ()
    urlencode: bool = False
    connect_timeout_ms: int = 10_000
    read_timeout_ms: int = 10_000
    tls: Tls = field(default_factory=Tls)

    @property
    def shown_endpoint(self) -> str:
        """The endpoint without its query, for messages."""
        return urlunsplit((*urlsplit(self.endpoint)[:3], "", ""))


@dataclass(frozen=True, slots=True)
class Token:
    """A token that brokers accept until `expires`, in seconds since 1970; fetched anew from `renew` on."""

    text: str = field(repr=False)
    principal: str
    renew: float
    expires: float


class TokenSource:
    """The one current token of this process for one set of credentials."""

    def __init__(self, oauth: OAuth, clock: Callable[[], float] = time.time) -> None:
        self.oauth = oauth
        self._clock = clock
        self._lock = threading.Lock()
        self._current: Token | None = None

    def token(self) -> Token:
        """The current token, fetched where none is or the current one is near its end.

        Raises:
            KafkaUnavailable: the token endpoint does not answer (transient) or refuses.
        """
        with self._lock:
            if self._current is None or self._clock() >= self._current.renew:
                self._current = fetch_token(self.oauth, self._clock())
            return self._current


@lru_cache(maxsize=64)
def token_source(oauth: OAuth) -> TokenSource:
    """The source that all clients of this process with these credentials share."""
    return TokenSource(oauth)


def librdkafka_token(source: TokenSource) -> tuple[str, float, str, dict[str, str]]:
    """What confluent-kafka's `oauth_cb` must return: token, end of its life, principal, extensions."""
    token = source.token()
    return token.text, token.expires, token.principal, dict(source.oauth.extensions)


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka checks for its own class, untyped
    """The face of a TokenSource that aiokafka asks for."""

    def __init__(self, source: TokenSource) -> None:
        self._source = source

    async def token(self) -> str:
        """The current token, without blocking the event loop."""
        return (await asyncio.get_running_loop().run_in_executor(None, self._source.token)).text

    def extensions(self) -> dict[str, str]:
        """SASL extensions sent along with the token."""
        return dict(self._source.oauth.extensions)


def fetch_token(oauth: OAuth, now: float) -> Token:
    """Ask the token endpoint once; `now` in seconds since 1970.

    Raises:
        KafkaUnavailable: it does not answer (transient), or refuses or answers nonsense.
    """
    answer = _post(oauth)
    where = f"the token endpoint {oauth.shown_endpoint}"
    if answer.status_code >= _SERVER_FAULT:
        msg = f"{where} answers {answer.status_code} {answer.reason}; waiting for it"
        raise KafkaUnavailable(msg)
    try:
        body = answer.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        body = {}
    if answer.status_code != requests.codes.ok or "access_token" not in body:
        reason = str(body.get("error_description") or body.get("error") or answer.reason)[:_SHOWN_CHARACTERS]
        msg = (
            f"{where} gives no token to client `{oauth.client_id}`: {answer.status_code} {reason}; "
            "check clientId, clientSecret and scope in sasl.jaas.config"
        )
        raise KafkaUnavailable(msg, transient=False)
    return _token(body, oauth, now)


def _post(oauth: OAuth) -> requests.Response:
    form = {"grant_type": "client_credentials"} | ({"scope": oauth.scope} if oauth.scope else {})
    encode = quote_plus if oauth.urlencode else str
    credentials = f"{encode(oauth.client_id)}:{encode(oauth.client_secret)}"
    header = {"Authorization": "Basic " + base64.b64encode(credentials.encode()).decode(), "Accept": "application/json"}
    where = f"the token endpoint {oauth.shown_endpoint}"
    with requests.Session() as session:
        session.mount("https://", _TlsAdapter(oauth.tls))
        session.auth = _keep_header
        try:
            return session.post(
                oauth.endpoint,
                data=form,
                headers=header,
                timeout=(oauth.connect_timeout_ms / 1000, oauth.read_timeout_ms / 1000),
                allow_redirects=False,
            )
        except requests.exceptions.SSLError as error:
            msg = f"{where} cannot be trusted: {_innermost(error)}; check its certificate and the trusted ones"
            raise KafkaUnavailable(msg, transient=False) from None
        except requests.exceptions.RequestException as error:
            msg = f"{where} does not answer ({_innermost(error)}); check sasl.oauthbearer.token.endpoint.url"
            raise KafkaUnavailable(msg) from None


def _keep_header(request: requests.PreparedRequest) -> requests.PreparedRequest:
    # Any auth callable keeps requests from replacing our header by an entry of ~/.netrc.
    return request


class _TlsAdapter(HTTPAdapter):
    """Verifies the server against our own trusted certificates alone, held in memory."""

    def __init__(self, tls: Tls) -> None:
        self._tls = {"ssl_context": ssl_context(tls), "assert_hostname": None if tls.check_hostname else False}
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - urllib3's arguments, passed on
        super().init_poolmanager(*args, **(kwargs | self._tls))

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:  # noqa: ANN401
        return super().proxy_manager_for(proxy, **(kwargs | self._tls))

    def cert_verify(self, *_: Any) -> None:  # noqa: ANN401
        """Nothing: requests would add the certificates of its own bundle to ours here."""


def _innermost(error: BaseException) -> str:
    """The sentence at the root of a chain of wrapped errors."""
    while True:
        inner = getattr(error, "reason", None) or error.__cause__ or error.__context__
        if inner is None and error.args and isinstance(error.args[0], BaseException):
            inner = error.args[0]
        if not isinstance(inner, BaseException):
            break
        error = inner
    return str(getattr(error, "verify_message", "") or getattr(error, "strerror", "") or error)


def _token(body: dict[str, object], oauth: OAuth, now: float) -> Token:
    """Life and owner of a token: from its claims where it is a JWT, else from the answer around it."""
    text = str(body["access_token"])
    claims = _claims(text)
    expires = _seconds(claims.get("exp")) or now + _seconds(body.get("expires_in"))
    if expires <= now:
        msg = f"the token endpoint {oauth.shown_endpoint} gave a token that is over or says no end; check its clock"
        raise KafkaUnavailable(msg, transient=False)
    return Token(text, str(claims.get("sub", oauth.client_id)), now + (expires - now) * _RENEW_AT, expires)


def _seconds(value: object) -> float:
    """A number, which some endpoints send as text; 0 for anything else."""
    try:
        number = float(value) if isinstance(value, (int, float, str)) else 0.0
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0


def _claims(text: str) -> dict[str, object]:
    parts = text.split(".")
    try:
        decoded = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
    except (IndexError, binascii.Error, ValueError):
        return {}
    return decoded if isinstance(decoded, dict) else {}
