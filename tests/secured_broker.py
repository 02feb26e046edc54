"""A second real broker, with every way to log in, and a token endpoint beside it.

Its listeners: `plain` (anyone, may do everything), `secure` (SASL_SSL), `clear` (SASL_PLAINTEXT), `mutual` (SSL with
client certificates), `expired` and `stranger` (SSL; the broker's certificate is over, or names another host).
"""

from __future__ import annotations

import base64
import json
import socket
import ssl
import subprocess
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from confluent_kafka.admin import AdminClient

from certificates import YESTERDAY, Certified, authority, issue
from penstock.dev.jars import jars
from penstock.dev.settings import free_ports
from penstock.java import find_java

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECURITY = "org.apache.kafka.common.security"
CAROL_SECRET = "carol-secret"
STORE_PASSWORD = "store-secret"
LISTENERS = {
    "plain": "PLAINTEXT",
    "secure": "SASL_SSL",
    "clear": "SASL_PLAINTEXT",
    "mutual": "SSL",
    "expired": "SSL",
    "stranger": "SSL",
    "controller": "PLAINTEXT",
}
SCRAM_USERS = {"SCRAM-SHA-256": ("alice", "alice-secret"), "SCRAM-SHA-512": ("albert", "albert-secret")}


@dataclass
class SecuredBroker:
    root: Certified
    client: Certified
    ports: dict[str, int]
    token_url: str = ""
    tokens_given: list[str] = field(default_factory=list)

    def servers(self, listener: str) -> str:
        return f"localhost:{self.ports[listener]}"

    def tls(self) -> dict[str, str]:
        return {"ssl.truststore.certificates": self.root.certificate_pem}

    def password_login(self, mechanism: str, user: str, password: str, listener: str = "secure") -> dict[str, str]:
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        return {
            "bootstrap.servers": self.servers(listener),
            "security.protocol": LISTENERS[listener],
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{SECURITY}.{module} required username="{user}" password="{password}";',
        } | (self.tls() if listener == "secure" else {})

    def oauth_login(self, trust_file: Path, secret: str = CAROL_SECRET) -> dict[str, str]:
        return {
            "bootstrap.servers": self.servers("secure"),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": f"{SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": self.token_url,
            "sasl.jaas.config": (
                f'{SECURITY}.oauthbearer.OAuthBearerLoginModule required clientId="carol" clientSecret="{secret}" '
                f'scope="kafka" ssl.truststore.location="{trust_file}";'
            ),
        } | self.tls()

    def certificate_login(self, listener: str = "mutual", own: Certified | None = None) -> dict[str, str]:
        own = own or self.client
        return {
            "bootstrap.servers": self.servers(listener),
            "security.protocol": "SSL",
            "ssl.keystore.certificate.chain": own.chain_pem,
            "ssl.keystore.key": own.key_pem(),
        } | self.tls()


@contextmanager
def secured_broker(folder: Path) -> Iterator[SecuredBroker]:
    root = authority("Test Root")
    middle = authority("Test Intermediate", root)
    broker = SecuredBroker(root, issue("penstock", middle), free_ports(tuple(LISTENERS)))
    identities = {
        "secure": issue("broker", middle),
        "mutual": issue("broker", middle),
        "expired": issue("broker", root, last_day=YESTERDAY),
        "stranger": issue("broker", root, hosts=("kafka.example.org",)),
    }
    (folder / "trust.p12").write_bytes(root.trust_p12(STORE_PASSWORD))
    for name, identity in identities.items():
        (folder / f"{name}.p12").write_bytes(identity.p12(STORE_PASSWORD))
    with ExitStack() as stack:
        stack.enter_context(_token_endpoint(folder, broker, issue("tokens", root)))
        stack.enter_context(_kafka(folder, _properties(folder, broker.ports, tuple(identities))))
        _wait(broker)
        yield broker


def _properties(folder: Path, ports: dict[str, int], with_tls: tuple[str, ...]) -> str:
    plain = f'{SECURITY}.plain.PlainLoginModule required user_bob="bob-secret" user_nobody="nobody-secret";'
    oauth = f'{SECURITY}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
    lines = [
        "process.roles=broker,controller",
        "node.id=1",
        f"controller.quorum.voters=1@localhost:{ports['controller']}",
        "controller.listener.names=CONTROLLER",
        "inter.broker.listener.name=PLAIN",
        "listeners=" + ",".join(f"{name.upper()}://localhost:{ports[name]}" for name in LISTENERS),
        "listener.security.protocol.map=" + ",".join(f"{name.upper()}:{kind}" for name, kind in LISTENERS.items()),
        f"log.dirs={folder / 'data'}",
        "offsets.topic.replication.factor=1",
        "offsets.topic.num.partitions=2",
        "transaction.state.log.replication.factor=1",
        "transaction.state.log.min.isr=1",
        "transaction.state.log.num.partitions=2",
        "group.initial.rebalance.delay.ms=0",
        "log.retention.ms=-1",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:ANONYMOUS;User:alice;User:albert;User:bob;User:carol;User:CN=penstock",
        f"ssl.truststore.location={folder / 'trust.p12'}",
        f"ssl.truststore.password={STORE_PASSWORD}",
        "ssl.truststore.type=PKCS12",
        "listener.name.mutual.ssl.client.auth=required",
    ]
    for name in with_tls:
        lines += [
            f"listener.name.{name}.ssl.keystore.location={folder / name}.p12",
            f"listener.name.{name}.ssl.keystore.password={STORE_PASSWORD}",
            f"listener.name.{name}.ssl.key.password={STORE_PASSWORD}",
            f"listener.name.{name}.ssl.keystore.type=PKCS12",
        ]
    for name in ("secure", "clear"):
        lines += [
            f"listener.name.{name}.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,OAUTHBEARER"
            + (",SCRAM-SHA-512" if name == "secure" else ""),
            f"listener.name.{name}.plain.sasl.jaas.config={plain}",
            f"listener.name.{name}.scram-sha-256.sasl.jaas.config={SECURITY}.scram.ScramLoginModule required;",
            f"listener.name.{name}.scram-sha-512.sasl.jaas.config={SECURITY}.scram.ScramLoginModule required;",
            f"listener.name.{name}.oauthbearer.sasl.jaas.config={oauth}",
        ]
    return "\n".join(lines) + "\n"


@contextmanager
def _kafka(folder: Path, properties: str) -> Iterator[None]:
    file = folder / "server.properties"
    file.write_text(properties, encoding="utf-8")
    java = [find_java() / "bin" / "java", "-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    java += ["-cp", f"{jars('kafka', lambda _: None)}/*"]
    users = [f"{mechanism}=[name={name},password={word}]" for mechanism, (name, word) in SCRAM_USERS.items()]
    scram = [argument for user in users for argument in ("--add-scram", user)]
    subprocess.run(
        [*java, "kafka.tools.StorageTool", "format", "-t", "penstock-test-cluster1", "-c", file, *scram],
        check=True,
        capture_output=True,
    )
    with (
        (folder / "broker.log").open("wb") as log,
        subprocess.Popen([*java, "kafka.Kafka", file], stdout=log, stderr=subprocess.STDOUT) as process,
    ):
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait(broker: SecuredBroker) -> None:
    client = AdminClient({"bootstrap.servers": broker.servers("plain"), "log_level": 0})
    assert client.list_topics(timeout=240).brokers
    deadline = time.monotonic() + 240
    for name in ("secure", "mutual", "expired", "stranger", "clear"):
        while True:
            try:
                socket.create_connection(("localhost", broker.ports[name]), 5).close()
                break
            except OSError:
                assert time.monotonic() < deadline, f"listener {name} does not open"
                time.sleep(0.1)


@contextmanager
def _token_endpoint(folder: Path, broker: SecuredBroker, own: Certified) -> Iterator[None]:
    """OAuth's client_credentials over TLS; its tokens are the unsigned ones that a broker takes in development."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            expected = "Basic " + base64.b64encode(b"carol:carol-secret").decode()
            if self.headers["Authorization"] != expected:
                self._answer(401, {"error": "invalid_client", "error_description": "no such client"})
            elif form != {"grant_type": ["client_credentials"], "scope": ["kafka"]}:
                self._answer(400, {"error": "invalid_scope"})
            else:
                token = unsigned_token("carol", time.time(), 3600)
                broker.tokens_given.append(token)
                self._answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": 3600})

        def _answer(self, status: int, body: dict[str, object]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Nothing: pytest's output is for failures."""

    files = folder / "tokens.pem", folder / "tokens.key"
    files[0].write_text(own.chain_pem)
    files[1].write_text(own.key_pem())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    with _QuietServer(("localhost", 0), Handler) as server:
        # The handshake belongs into the connection's own thread: one that fails must not stop the server.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        broker.token_url = f"https://localhost:{server.server_port}/token"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Nothing: clients that do not trust the certificate hang up, as they should."""


def unsigned_token(owner: str, now: float, life: float) -> str:
    parts = ({"alg": "none"}, {"sub": owner, "iat": int(now), "exp": int(now + life), "scope": "kafka"})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."
