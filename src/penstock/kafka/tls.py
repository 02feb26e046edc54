"""Certificates and keys: from Java's `ssl.*` properties to PEM in memory, and from there to an `ssl.SSLContext`.

Files are read where the configuration is read, on the driver; executors need none of them.
"""

from __future__ import annotations

import re
import secrets
import shlex
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat, pkcs12

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

    Refuse = Callable[[str, str], None]

_Read = TypeVar("_Read")
_FOLDED_PEM = re.compile(r"(-----BEGIN [A-Z0-9 ]+-----)\s*([A-Za-z0-9+/=\s]+?)\s*(-----END [A-Z0-9 ]+-----)\s*")
_STORE_TYPES = ("", "JKS", "PEM", "PKCS12")
_SUBJECT_KEY = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


@dataclass(frozen=True, slots=True)
class Tls:
    """What a TLS connection needs. PEM throughout; `key` is PKCS#8, not encrypted, and never in repr().

    `trusted` None: the system's certificates. `chain`: the client's certificate first, then its issuers.
    """

    trusted: str | None = field(default=None, repr=False)
    chain: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    check_hostname: bool = True


def read_tls(values: Mapping[str, str], refuse: Refuse) -> Tls:
    """The `ssl.*` part of `values`; `refuse(name, problem)` is called for each mistake."""
    _check_protocols(values, refuse)
    algorithm = values.get("ssl.endpoint.identification.algorithm", "https").lower()
    if algorithm not in ("", "https"):
        refuse("ssl.endpoint.identification.algorithm", f"must be https or empty, got `{algorithm}`")
    trusted = _guarded(_read_trusted, values, refuse, ("ssl.truststore.location", "ssl.truststore.certificates"))
    pair = _guarded(_read_own, values, refuse, ("ssl.keystore.location", "ssl.keystore.certificate.chain"))
    chain, key = pair or (None, None)
    return Tls(trusted, chain, key, check_hostname=algorithm != "")


def ssl_context(tls: Tls) -> ssl.SSLContext:
    """The same settings for Python's ssl module; built in the process that uses it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = tls.check_hostname
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if tls.trusted is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cadata=tls.trusted)
    if tls.chain is not None and tls.key is not None:
        _load_own(context, tls.chain, tls.key)
    return context


def _load_own(context: ssl.SSLContext, chain: str, key: str) -> None:
    # The ssl module reads keys from files only: a file of mode 0600 under a password used once, gone at once.
    password = secrets.token_bytes(16)
    sealed = serialization.load_pem_private_key(key.encode(), None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, serialization.BestAvailableEncryption(password)
    )
    with tempfile.NamedTemporaryFile(prefix="penstock-", suffix=".pem") as file:
        file.write(sealed + chain.encode())
        file.flush()
        context.load_cert_chain(file.name, password=password)


def _check_protocols(values: Mapping[str, str], refuse: Refuse) -> None:
    wanted = {name.strip() for name in values.get("ssl.enabled.protocols", "TLSv1.2,TLSv1.3").split(",")}
    if not {"TLSv1.2", "TLSv1.3"} <= wanted:
        refuse(
            "ssl.enabled.protocols",
            "must hold TLSv1.2 and TLSv1.3, for both are offered (restrict versions at the brokers), "
            f"got `{values['ssl.enabled.protocols']}`",
        )
    if values.get("ssl.protocol", "TLS") not in ("TLS", "TLSv1.3"):
        refuse(
            "ssl.protocol",
            f"must be TLSv1.3 or TLS (restrict versions at the brokers), got `{values['ssl.protocol']}`",
        )


def _guarded(
    read: Callable[[Mapping[str, str]], _Read], values: Mapping[str, str], refuse: Refuse, names: tuple[str, str]
) -> _Read | None:
    location, inline = names
    try:
        return read(values)
    except OSError as error:
        refuse(location, f"cannot be read ({error.strerror}), got `{values.get(location, '')}`")
    except ValueError as error:
        refuse(location if location in values else inline, str(error))
    return None


def _read_trusted(values: Mapping[str, str]) -> str | None:
    inline, location = values.get("ssl.truststore.certificates"), values.get("ssl.truststore.location")
    if inline is not None:
        _only_one(location)
        return _to_pem(_certificates(_unfold(inline)))
    if location is None:
        return None
    data = Path(location).read_bytes()
    password = values.get("ssl.truststore.password")
    if _kind(data, values.get("ssl.truststore.type", ""), location) == "PEM":
        if password is not None:
            msg = "is a PEM file, which has no password: remove ssl.truststore.password"
            raise ValueError(msg)
        return _to_pem(_certificates(data))
    _, leaf, others = _open_pkcs12(data, password, "ssl.truststore.password")
    found = ([leaf] if leaf else []) + others
    if not found:
        msg = f"holds no certificate, got `{location}`"
        raise ValueError(msg)
    return _to_pem(found)


def _read_own(values: Mapping[str, str]) -> tuple[str, str] | None:
    location, inline = values.get("ssl.keystore.location"), values.get("ssl.keystore.certificate.chain")
    inline_key, key_password = values.get("ssl.keystore.key"), values.get("ssl.key.password")
    if inline is not None or inline_key is not None:
        _only_one(location)
        if inline is None or inline_key is None:
            msg = "and ssl.keystore.key go together: set both"
            raise ValueError(msg)
        return _pair(_private_key(_unfold(inline_key), key_password), _certificates(_unfold(inline)))
    if location is None:
        return None
    data, password = Path(location).read_bytes(), values.get("ssl.keystore.password")
    if _kind(data, values.get("ssl.keystore.type", ""), location) == "PEM":
        if password is not None:
            msg = "is a PEM file: its key's password is ssl.key.password; remove ssl.keystore.password"
            raise ValueError(msg)
        return _pair(_private_key(data, key_password), _certificates(data))
    key, leaf, others = _open_pkcs12(data, password, "ssl.keystore.password")
    if key is None or leaf is None:
        msg = f"holds no private key with a certificate, got `{location}`"
        raise ValueError(msg)
    return _pair(key, [leaf, *others])


def _only_one(location: str | None) -> None:
    if location is not None:
        msg = "is set next to the same thing in PEM: keep one of the two"
        raise ValueError(msg)


def _kind(data: bytes, declared: str, location: str) -> str:
    """PEM or PKCS12. `JKS`, Java's default type, means that the file tells, as it does in Java."""
    declared = declared.upper()
    if declared not in _STORE_TYPES:
        msg = f"must be a store of type PEM or PKCS12, got `{declared}`"
        raise ValueError(msg)
    if data[:4] in (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"):
        path = shlex.quote(location)
        msg = (
            "is a JKS store, which only Java can read; convert it and name the new file: "
            f"`keytool -importkeystore -srckeystore {path} -destkeystore {path}.p12 -deststoretype PKCS12`"
        )
        raise ValueError(msg)
    actual = "PEM" if b"-----BEGIN " in data else "PKCS12"
    if declared in ("PEM", "PKCS12") and declared != actual:
        msg = f"is not a {declared} file as its type says, got `{location}`"
        raise ValueError(msg)
    return actual


def _open_pkcs12(
    data: bytes, password: str | None, password_name: str
) -> tuple[PrivateKeyTypes | None, x509.Certificate | None, list[x509.Certificate]]:
    try:
        store = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        if password is None:
            msg = f"is not PEM, and no PKCS12 that opens without a password: set {password_name}"
        else:
            msg = f"cannot be opened as PKCS12: {password_name} is wrong, or the file is damaged"
        raise ValueError(msg) from None
    leaf = store.cert.certificate if store.cert else None
    return store.key, leaf, [each.certificate for each in store.additional_certs]


def _private_key(data: bytes, password: str | None) -> PrivateKeyTypes:
    try:
        return serialization.load_pem_private_key(data, None if password is None else password.encode())
    except TypeError:
        msg = (
            "holds an encrypted private key: set ssl.key.password"
            if password is None
            else "holds a private key without a password: remove ssl.key.password"
        )
    except ValueError:
        msg = "holds no private key that can be read" + ("" if password is None else ", or ssl.key.password is wrong")
    raise ValueError(msg)


def _certificates(data: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(data)
    except ValueError:
        msg = "holds no PEM certificate that can be read"
        raise ValueError(msg) from None


def _pair(key: PrivateKeyTypes, certificates: list[x509.Certificate]) -> tuple[str, str]:
    """The chain of the key's certificate, issuer after issuer, and the key, both PEM."""
    public = key.public_key().public_bytes(*_SUBJECT_KEY)
    own = [each for each in certificates if each.public_key().public_bytes(*_SUBJECT_KEY) == public]
    if not own:
        msg = "holds a private key and certificates that do not belong together"
        raise ValueError(msg)
    chain, rest = own[:1], [each for each in certificates if each != own[0]]
    while issuer := next((each for each in rest if each.subject == chain[-1].issuer), None):
        chain.append(issuer)
        rest.remove(issuer)
    return _to_pem(chain), key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _to_pem(certificates: Iterable[x509.Certificate]) -> str:
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates)


def _unfold(pem: str) -> bytes:
    """PEM from a property, where line ends may have become spaces or nothing, with its lines put back."""

    def restore(match: re.Match[str]) -> str:
        body = "".join(match[2].split())
        lines = [body[start : start + 64] for start in range(0, len(body), 64)]
        return "\n".join([match[1], *lines, match[3], ""])

    return _FOLDED_PEM.sub(restore, pem).encode()
