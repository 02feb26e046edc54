from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from certificates import Certified, authority, issue
from penstock.errors import ConfigError
from penstock.java import find_java
from penstock.kafka.settings import KafkaSettings
from penstock.kafka.tls import Tls, ssl_context

if TYPE_CHECKING:
    from pathlib import Path

ROOT = authority("Root")
MIDDLE = authority("Middle", ROOT)
OWN = issue("penstock", MIDDLE)
SERVER = issue("server", ROOT)
SSL = {"bootstrap.servers": "a:1", "security.protocol": "SSL"}


def tls_of(properties: dict[str, str]) -> Tls:
    tls = KafkaSettings.parse(SSL | properties).tls
    assert tls is not None
    return tls


def problem_of(properties: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as caught:
        KafkaSettings.parse(SSL | properties)
    (problem,) = caught.value.problems
    return problem


def folded(pem: str, joint: str) -> str:
    """PEM as a properties file with continued lines gives it: no line ends within."""
    return joint.join(pem.strip().splitlines())


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "trust.pem").write_text("some words before\n" + ROOT.certificate_pem + MIDDLE.certificate_pem)
    (tmp_path / "trust.p12").write_bytes(ROOT.trust_p12("word"))
    (tmp_path / "own.p12").write_bytes(OWN.p12("word"))
    (tmp_path / "own.pem").write_text(OWN.chain_pem + OWN.key_pem())
    (tmp_path / "sealed.pem").write_text(OWN.key_pem("word") + OWN.chain_pem)
    (tmp_path / "mixed.pem").write_text(OWN.key_pem() + SERVER.certificate_pem)
    (tmp_path / "trust.jks").write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2\0\0\0\0")
    (tmp_path / "words.txt").write_text("nothing to see")
    return tmp_path


TRUST = {
    "PEM file": ({"location": "trust.pem"}, ROOT.certificate_pem + MIDDLE.certificate_pem),
    "PEM file that says so": ({"location": "trust.pem", "type": "PEM"}, ROOT.certificate_pem + MIDDLE.certificate_pem),
    "PKCS12": ({"location": "trust.p12", "password": "word", "type": "PKCS12"}, ROOT.certificate_pem),
    "PKCS12 of no type": ({"location": "trust.p12", "password": "word"}, ROOT.certificate_pem),
    "PKCS12 of Java's default type": (
        {"location": "trust.p12", "password": "word", "type": "JKS"},
        ROOT.certificate_pem,
    ),
    "PEM itself": ({"certificates": ROOT.certificate_pem}, ROOT.certificate_pem),
    "PEM in one line": ({"certificates": folded(ROOT.certificate_pem, " ")}, ROOT.certificate_pem),
    "PEM without any spaces": ({"certificates": folded(ROOT.certificate_pem, "")}, ROOT.certificate_pem),
}


@pytest.mark.parametrize(("settings", "trusted"), TRUST.values(), ids=TRUST)
def test_trusted_certificates_are_read(settings: dict[str, str], trusted: str, files: Path) -> None:
    placed = {name: str(files / text) if name == "location" else text for name, text in settings.items()}
    assert tls_of({f"ssl.truststore.{name}": text for name, text in placed.items()}).trusted == trusted


OWN_PAIRS = {
    "PEM file": {"ssl.keystore.location": "own.pem"},
    "PEM file with a sealed key before it": {"ssl.keystore.location": "sealed.pem", "ssl.key.password": "word"},
    "PKCS12": {"ssl.keystore.location": "own.p12", "ssl.keystore.password": "word", "ssl.key.password": "word"},
    "PEM itself": {"ssl.keystore.certificate.chain": OWN.chain_pem, "ssl.keystore.key": OWN.key_pem()},
    "chain in the wrong order": {
        "ssl.keystore.certificate.chain": MIDDLE.certificate_pem + OWN.certificate_pem,
        "ssl.keystore.key": OWN.key_pem(),
    },
    "PEM in one line, sealed": {
        "ssl.keystore.certificate.chain": folded(OWN.chain_pem, " "),
        "ssl.keystore.key": folded(OWN.key_pem("word"), " "),
        "ssl.key.password": "word",
    },
}


@pytest.mark.parametrize("settings", OWN_PAIRS.values(), ids=OWN_PAIRS)
def test_the_clients_own_key_and_chain_are_read(settings: dict[str, str], files: Path) -> None:
    placed = {name: str(files / text) if name.endswith("location") else text for name, text in settings.items()}
    tls = tls_of(placed)
    assert tls.key == OWN.key_pem()
    assert tls.chain == OWN.certificate_pem + MIDDLE.certificate_pem


def test_a_chain_that_goes_up_to_the_root_is_put_in_order_and_ends_there() -> None:
    deep = issue("deep", authority("Lower", MIDDLE))
    pems = [ROOT.certificate_pem, *(each.public_bytes(Encoding.PEM).decode() for each in deep.above)]
    tls = tls_of(
        {"ssl.keystore.certificate.chain": "".join([*pems, deep.certificate_pem]), "ssl.keystore.key": deep.key_pem()}
    )
    assert tls.chain == deep.chain_pem + ROOT.certificate_pem


MISTAKES = {
    "no such file": (
        {"ssl.truststore.location": "{}/none.pem"},
        "ssl.truststore.location cannot be read (No such file or directory), got `{}/none.pem`",
    ),
    "folder": (
        {"ssl.keystore.location": "{}"},
        "ssl.keystore.location cannot be read (Is a directory), got `{}`",
    ),
    "JKS": (
        {"ssl.truststore.location": "{}/trust.jks", "ssl.truststore.password": "word"},
        (
            "ssl.truststore.location is a JKS store, which only Java can read; convert it and name the new file: "
            "`keytool -importkeystore -srckeystore {}/trust.jks -destkeystore {}/trust.jks.p12 -deststoretype PKCS12`"
        ),
    ),
    "wrong password": (
        {"ssl.truststore.location": "{}/trust.p12", "ssl.truststore.password": "hush"},
        "ssl.truststore.location cannot be opened as PKCS12: ssl.truststore.password is wrong, or the file is damaged",
    ),
    "no password": (
        {"ssl.keystore.location": "{}/own.p12"},
        "ssl.keystore.location is not PEM, and no PKCS12 that opens without a password: set ssl.keystore.password",
    ),
    "neither PEM nor PKCS12": (
        {"ssl.truststore.location": "{}/words.txt"},
        "ssl.truststore.location is not PEM, and no PKCS12 that opens without a password: set ssl.truststore.password",
    ),
    "another type than it says": (
        {"ssl.truststore.location": "{}/trust.pem", "ssl.truststore.type": "PKCS12"},
        "ssl.truststore.location is not a PKCS12 file as its type says, got `{}/trust.pem`",
    ),
    "type that only Java knows": (
        {"ssl.truststore.location": "{}/trust.pem", "ssl.truststore.type": "BCFKS"},
        "ssl.truststore.location must be a store of type PEM or PKCS12, got `BCFKS`",
    ),
    "password for PEM": (
        {"ssl.truststore.location": "{}/trust.pem", "ssl.truststore.password": "hush"},
        "ssl.truststore.location is a PEM file, which has no password: remove ssl.truststore.password",
    ),
    "password for a PEM key store": (
        {"ssl.keystore.location": "{}/own.pem", "ssl.keystore.password": "hush"},
        "ssl.keystore.location is a PEM file: its key's password is ssl.key.password; remove ssl.keystore.password",
    ),
    "trust store as key store": (
        {"ssl.keystore.location": "{}/trust.p12", "ssl.keystore.password": "word"},
        "ssl.keystore.location holds no private key with a certificate, got `{}/trust.p12`",
    ),
    "key store without a key": (
        {"ssl.keystore.location": "{}/trust.pem"},
        "ssl.keystore.location holds no private key that can be read",
    ),
    "sealed key, no password": (
        {"ssl.keystore.location": "{}/sealed.pem"},
        "ssl.keystore.location holds an encrypted private key: set ssl.key.password",
    ),
    "sealed key, wrong password": (
        {"ssl.keystore.location": "{}/sealed.pem", "ssl.key.password": "hush"},
        "ssl.keystore.location holds no private key that can be read, or ssl.key.password is wrong",
    ),
    "open key with a password": (
        {"ssl.keystore.location": "{}/own.pem", "ssl.key.password": "hush"},
        "ssl.keystore.location holds a private key without a password: remove ssl.key.password",
    ),
    "key of another certificate": (
        {"ssl.keystore.location": "{}/mixed.pem"},
        "ssl.keystore.location holds a private key and certificates that do not belong together",
    ),
    "chain without a key": (
        {"ssl.keystore.certificate.chain": OWN.chain_pem},
        "ssl.keystore.certificate.chain and ssl.keystore.key go together: set both",
    ),
    "file and PEM": (
        {"ssl.truststore.certificates": ROOT.certificate_pem, "ssl.truststore.location": "{}/trust.pem"},
        "ssl.truststore.location is set next to the same thing in PEM: keep one of the two",
    ),
    "damaged PEM": (
        {"ssl.truststore.certificates": ROOT.certificate_pem.replace("M", "N")},
        "ssl.truststore.certificates holds no PEM certificate that can be read",
    ),
}


@pytest.mark.parametrize(("settings", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_a_store_is_one_sentence(settings: dict[str, str], sentence: str, files: Path) -> None:
    problem = problem_of({name: text.replace("{}", str(files)) for name, text in settings.items()})
    assert problem == sentence.replace("{}", str(files))
    assert "hush" not in problem


@pytest.mark.parametrize("old", [(), ("-Dkeystore.pkcs12.legacy",)], ids=["today's ciphers", "those of old Javas"])
def test_stores_that_keytool_makes_are_read(old: tuple[str, ...], tmp_path: Path) -> None:
    # By its class: a bundled Java has no bin/keytool.
    keytool = [find_java() / "bin" / "java", *old, "sun.security.tools.keytool.Main"]
    (tmp_path / "root.pem").write_text(ROOT.certificate_pem)
    (tmp_path / "own.p12").write_bytes(OWN.p12("secret1"))
    trust = ["-importcert", "-noprompt", "-alias", "root", "-file", "root.pem", "-keystore", "trust.p12"]
    own = ["-importkeystore", "-srckeystore", "own.p12", "-srcstorepass", "secret1", "-destkeystore", "made.p12"]
    for command in (
        [*trust, "-storetype", "PKCS12", "-storepass", "secret1"],
        [*own, "-deststoretype", "PKCS12", "-deststorepass", "secret1"],
    ):
        subprocess.run([*keytool, *command], cwd=tmp_path, check=True, capture_output=True)
    tls = tls_of(
        {
            "ssl.truststore.location": str(tmp_path / "trust.p12"),
            "ssl.truststore.password": "secret1",
            "ssl.keystore.location": str(tmp_path / "made.p12"),
            "ssl.keystore.password": "secret1",
        }
    )
    assert tls == Tls(ROOT.certificate_pem, OWN.certificate_pem + MIDDLE.certificate_pem, OWN.key_pem())


def test_keys_and_certificates_are_never_shown() -> None:
    settings = KafkaSettings.parse(
        SSL
        | {"ssl.truststore.certificates": ROOT.certificate_pem}
        | {"ssl.keystore.certificate.chain": OWN.chain_pem, "ssl.keystore.key": OWN.key_pem()}
    )
    assert "BEGIN" not in repr(settings)
    assert OWN.key_pem().splitlines()[1] not in repr(settings)


def shake_hands(context: ssl.SSLContext, server: Certified, folder: Path, host: str) -> str | None:
    """One TLS handshake with a server that asks for a certificate; the subject that it saw."""
    (folder / "server.pem").write_text(server.chain_pem + server.key_pem())
    (folder / "root.pem").write_text(ROOT.certificate_pem)
    listening = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    listening.load_cert_chain(folder / "server.pem")
    listening.load_verify_locations(folder / "root.pem")
    listening.verify_mode = ssl.CERT_OPTIONAL
    seen: list[str | None] = []

    def serve(connection: socket.socket) -> None:
        try:
            with listening.wrap_socket(connection, server_side=True) as secured:
                certificate = secured.getpeercert()
                seen.append(str(certificate["subject"][0][0][1]) if certificate else None)
                secured.sendall(b"!")
        except OSError:
            connection.close()

    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=serve, args=(theirs,))
    thread.start()
    try:
        with ours, context.wrap_socket(ours, server_hostname=host) as secured:
            assert secured.recv(1) == b"!"
    finally:
        ours.close()
        thread.join(10)
    return seen[0]


TRUST_ROOT = {"ssl.truststore.certificates": ROOT.certificate_pem}


def test_the_context_shows_our_certificate_with_its_chain(tmp_path: Path) -> None:
    own = {"ssl.keystore.certificate.chain": OWN.chain_pem, "ssl.keystore.key": OWN.key_pem()}
    assert shake_hands(ssl_context(tls_of(TRUST_ROOT | own)), SERVER, tmp_path, "localhost") == "penstock"
    assert shake_hands(ssl_context(tls_of(TRUST_ROOT)), SERVER, tmp_path, "localhost") is None


def test_the_context_checks_the_host_name_unless_the_algorithm_is_empty(tmp_path: Path) -> None:
    unchecked = tls_of(TRUST_ROOT | {"ssl.endpoint.identification.algorithm": ""})
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(ssl_context(tls_of(TRUST_ROOT)), SERVER, tmp_path, "kafka.example.org")
    assert shake_hands(ssl_context(unchecked), SERVER, tmp_path, "kafka.example.org") is None


def test_the_context_still_checks_the_authority_when_the_host_name_is_not_checked(tmp_path: Path) -> None:
    other = {"ssl.truststore.certificates": authority("Other").certificate_pem}
    tls = tls_of(other | {"ssl.endpoint.identification.algorithm": ""})
    with pytest.raises(ssl.SSLCertVerificationError, match="self-signed certificate in"):
        shake_hands(ssl_context(tls), SERVER, tmp_path, "localhost")


def test_the_key_goes_through_a_file_that_is_gone_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ssl_context(tls_of({"ssl.keystore.certificate.chain": OWN.chain_pem, "ssl.keystore.key": OWN.key_pem()}))
    assert list(tmp_path.iterdir()) == []
