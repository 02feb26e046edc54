from __future__ import annotations

import asyncio
import base64
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import pytest

from penstock.errors import KafkaUnavailable
from penstock.kafka.oauth import OAuth, TokenProvider, TokenSource, fetch_token, librdkafka_token
from secured_broker import unsigned_token

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = 1_700_000_000.0


class Endpoint:
    """A token endpoint on loopback: answers what it is told, keeps what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.status, self.body = 200, b"{}"
        self.asked: list[tuple[str | None, dict[str, list[str]]]] = []

    def gives(self, body: object, status: int = 200) -> None:
        self.status, self.body = status, body if isinstance(body, bytes) else json.dumps(body).encode()


@contextmanager
def running() -> Iterator[Endpoint]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            endpoint.asked.append((self.headers["Authorization"], form))
            self.send_response(endpoint.status)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(endpoint.body)))
            self.end_headers()
            self.wfile.write(endpoint.body)

        def log_message(self, *_: object) -> None:
            """Nothing: pytest's output is for failures."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        endpoint = Endpoint(f"http://127.0.0.1:{server.server_port}/token")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield endpoint
        finally:
            server.shutdown()


@pytest.fixture(scope="module")
def shared() -> Iterator[Endpoint]:
    with running() as endpoint:
        yield endpoint


@pytest.fixture
def endpoint(shared: Endpoint) -> Endpoint:
    shared.asked.clear()
    return shared


def oauth(endpoint: Endpoint, **more: object) -> OAuth:
    return OAuth(f"{endpoint.url}?tenant=hidden", "ann", "hu:sh/", **more)  # type: ignore[arg-type]


def basic(header: str | None) -> str:
    assert header is not None
    return base64.b64decode(header.removeprefix("Basic ")).decode()


def test_the_request_is_client_credentials_with_the_secret_in_the_header(endpoint: Endpoint) -> None:
    endpoint.gives({"access_token": unsigned_token("ann", NOW, 100)})
    fetch_token(oauth(endpoint, scope="kafka read"), NOW)
    ((header, form),) = endpoint.asked
    assert basic(header) == "ann:hu:sh/"
    assert form == {"grant_type": ["client_credentials"], "scope": ["kafka read"]}


def test_no_scope_is_sent_where_none_is_set_and_credentials_are_encoded_where_wanted(endpoint: Endpoint) -> None:
    endpoint.gives({"access_token": unsigned_token("ann", NOW, 100)})
    fetch_token(oauth(endpoint, urlencode=True), NOW)
    ((header, form),) = endpoint.asked
    assert basic(header) == "ann:hu%3Ash%2F"
    assert form == {"grant_type": ["client_credentials"]}


def test_life_and_owner_come_from_the_claims_of_a_jwt(endpoint: Endpoint) -> None:
    endpoint.gives({"access_token": unsigned_token("service-7", NOW, 100), "expires_in": 5})
    token = fetch_token(oauth(endpoint), NOW)
    assert (token.principal, token.expires, token.renew) == ("service-7", NOW + 100, NOW + 80)


def test_life_and_owner_of_an_opaque_token_come_from_the_answer_and_the_settings(endpoint: Endpoint) -> None:
    endpoint.gives({"access_token": "opaque", "expires_in": 50})
    token = fetch_token(oauth(endpoint), NOW)
    assert (token.text, token.principal, token.expires, token.renew) == ("opaque", "ann", NOW + 50, NOW + 40)
    assert "opaque" not in repr(token)


def test_a_life_in_text_is_a_number_too(endpoint: Endpoint) -> None:
    endpoint.gives({"access_token": "opaque", "expires_in": "50"})
    assert fetch_token(oauth(endpoint), NOW).expires == NOW + 50


def test_a_token_is_kept_until_four_fifths_of_its_life_are_over(endpoint: Endpoint) -> None:
    now = [NOW]
    source = TokenSource(oauth(endpoint, extensions=(("pool", "p"),)), clock=lambda: now[0])
    endpoint.gives({"access_token": "first", "expires_in": 100})
    assert source.token().text == "first"
    endpoint.gives({"access_token": "second", "expires_in": 100})
    now[0] += 79.9
    assert librdkafka_token(source) == ("first", NOW + 100, "ann", {"pool": "p"})
    now[0] += 0.1
    assert asyncio.run(TokenProvider(source).token()) == "second"
    assert TokenProvider(source).extensions() == {"pool": "p"}
    assert len(endpoint.asked) == 2


ANSWERS = {
    "refused": (
        401,
        {"error": "invalid_client", "error_description": "who are you"},
        (
            "the token endpoint {url} gives no token to client `ann`: 401 who are you; "
            "check clientId, clientSecret and scope in sasl.jaas.config"
        ),
        False,
    ),
    "no JSON": (
        403,
        b"<html>",
        (
            "the token endpoint {url} gives no token to client `ann`: 403 Forbidden; "
            "check clientId, clientSecret and scope in sasl.jaas.config"
        ),
        False,
    ),
    "redirected": (
        302,
        b"",
        (
            "the token endpoint {url} gives no token to client `ann`: 302 Found; "
            "check clientId, clientSecret and scope in sasl.jaas.config"
        ),
        False,
    ),
    "no token": (
        200,
        {"token": "x"},
        (
            "the token endpoint {url} gives no token to client `ann`: 200 OK; "
            "check clientId, clientSecret and scope in sasl.jaas.config"
        ),
        False,
    ),
    "broken": (
        503,
        b"",
        "the token endpoint {url} answers 503 Service Unavailable; waiting for it",
        True,
    ),
    "token that is over": (
        200,
        {"access_token": unsigned_token("ann", NOW - 100, 50)},
        "the token endpoint {url} gave a token that is over or says no end; check its clock",
        False,
    ),
    "token without an end": (
        200,
        {"access_token": "opaque"},
        "the token endpoint {url} gave a token that is over or says no end; check its clock",
        False,
    ),
    "end that never comes": (
        200,
        {"access_token": "opaque", "expires_in": "inf"},
        "the token endpoint {url} gave a token that is over or says no end; check its clock",
        False,
    ),
    "end that is no number": (
        200,
        {"access_token": "opaque", "expires_in": "soon"},
        "the token endpoint {url} gave a token that is over or says no end; check its clock",
        False,
    ),
}


@pytest.mark.parametrize(("status", "body", "sentence", "transient"), ANSWERS.values(), ids=ANSWERS)
def test_what_is_no_token_is_one_sentence_without_secrets(
    status: int, body: object, sentence: str, transient: bool, endpoint: Endpoint
) -> None:
    endpoint.gives(body, status)
    with pytest.raises(KafkaUnavailable) as caught:
        fetch_token(oauth(endpoint), NOW)
    assert str(caught.value) == sentence.format(url=endpoint.url)
    assert caught.value.transient is transient


def test_an_endpoint_that_is_away_may_come_back() -> None:
    with pytest.raises(KafkaUnavailable) as caught:
        fetch_token(OAuth("http://127.0.0.1:1/token", "ann", "hush"), NOW)
    assert str(caught.value) == (
        "the token endpoint http://127.0.0.1:1/token does not answer (Connection refused); "
        "check sasl.oauthbearer.token.endpoint.url"
    )
    assert caught.value.transient


def test_entries_of_netrc_do_not_replace_the_credentials(
    endpoint: Endpoint, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = f"{tmp_path}/netrc"
    with open(netrc, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write("machine 127.0.0.1 login other password other\n")
    monkeypatch.setenv("NETRC", netrc)
    endpoint.gives({"access_token": "opaque", "expires_in": 50})
    fetch_token(oauth(endpoint), NOW)
    assert basic(endpoint.asked[0][0]) == "ann:hu:sh/"
