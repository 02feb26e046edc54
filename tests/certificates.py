"""Certificate authorities and certificates for tests: made anew each time, elliptic keys because they are quick."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

NOW = dt.datetime.now(dt.timezone.utc)
YESTERDAY = NOW - dt.timedelta(days=1)
NEXT_YEAR = NOW + dt.timedelta(days=365)


@dataclass(frozen=True)
class Certified:
    """A key with its certificate, and the certificates above it."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    above: tuple[x509.Certificate, ...] = ()

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def chain_pem(self) -> str:
        return self.certificate_pem + "".join(each.public_bytes(Encoding.PEM).decode() for each in self.above)

    def key_pem(self, password: str | None = None) -> str:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, _sealed(password)).decode()

    def p12(self, password: str) -> bytes:
        return pkcs12.serialize_key_and_certificates(b"own", self.key, self.certificate, self.above, _sealed(password))

    def trust_p12(self, password: str) -> bytes:
        """As `keytool -importcert` makes one: a certificate without a key."""
        entry = pkcs12.PKCS12Certificate(self.certificate, b"authority")
        return pkcs12.serialize_java_truststore([entry], _sealed(password))


def authority(name: str, above: Certified | None = None) -> Certified:
    return _make(name, above, hosts=(), is_authority=True, last_day=NEXT_YEAR)


def issue(
    name: str,
    above: Certified,
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1"),
    last_day: dt.datetime = NEXT_YEAR,
) -> Certified:
    return _make(name, above, hosts=hosts, is_authority=False, last_day=last_day)


def _make(
    name: str, above: Certified | None, *, hosts: tuple[str, ...], is_authority: bool, last_day: dt.datetime
) -> Certified:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(above.certificate.subject if above else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - dt.timedelta(days=30))
        .not_valid_after(last_day)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_host(each) for each in hosts]), critical=False)
    certificate = builder.sign(above.key if above else key, hashes.SHA256())
    # What is sent along ends below the root, which the other side must have already.
    chain = (above.certificate, *above.above) if above and above.certificate.subject != above.certificate.issuer else ()
    return Certified(certificate, key, chain)


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _sealed(password: str | None) -> KeySerializationEncryption:
    return NoEncryption() if password is None else BestAvailableEncryption(password.encode())
