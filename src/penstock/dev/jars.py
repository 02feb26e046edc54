"""The jars of the embedded stack: fetched once, by the Ivy that pyspark ships, from the lock in `ivy/`.

Every sum in `ivy/NAME.sha256` is checked before a folder of jars gets its final name, so a folder that is
there is whole.
"""

from __future__ import annotations

import hashlib
import importlib.util
import ssl
import subprocess
import sys
import tempfile
import urllib.request
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509 import load_pem_x509_certificate

from penstock.errors import PenstockError
from penstock.java import cache_folder, find_java, is_bundled

if TYPE_CHECKING:
    from collections.abc import Callable

Server = Literal["kafka", "s3proxy"]
SERVERS: tuple[Server, ...] = ("kafka", "s3proxy")

_LOCKS = Path(__file__).parent / "ivy"
_STORE_PASSWORD = "changeit"  # noqa: S105 - Java's customary one; the file holds public certificates


def jars(server: Server, echo: Callable[[str], None]) -> Path:
    """The folder with exactly the locked jars of a server, fetched if it is not there yet.

    `echo` hears one line per jar that arrives.

    Raises:
        PenstockError: a jar could not be fetched, or is not the one that the lock names.
    """
    sums = locked_sums(server)
    folder = jars_folder(server)
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{server}-", dir=folder.parent) as work:
            fetched = _retrieve(server, Path(work), echo)
            _check(fetched, sums)
            if not folder.is_dir():
                fetched.replace(folder)
    except OSError as error:
        why = error.strerror or error
        msg = f"cannot store jars under `{folder.parent}`: {why}; set PENSTOCK_CACHE to another folder"
        raise PenstockError(msg) from error
    return folder


def jars_folder(server: Server) -> Path:
    """Where the jars of a server are, or will be: the name changes with the lock."""
    digest = hashlib.sha256((_LOCKS / f"{server}.sha256").read_bytes()).hexdigest()
    return cache_folder() / "jars" / f"{server}-{digest[:12]}"


def locked_sums(server: Server) -> dict[str, str]:
    """File name to SHA-256 of every jar that a server needs."""
    lines = (_LOCKS / f"{server}.sha256").read_text(encoding="ascii").splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def _retrieve(server: Server, work: Path, echo: Callable[[str], None]) -> Path:
    home = find_java()
    options = [*_proxy_options(), *(_trust_options(work) if is_bundled(home) else ())]
    target = work / "jars"
    command: list[str | Path] = [
        home / "bin" / "java",
        "-Xmx128m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        *options,
    ]
    command += ["-jar", _ivy(), "-settings", _LOCKS / "settings.xml", "-cache", work / "ivy"]
    command += ["-ivy", _LOCKS / f"{server}.xml", "-confs", "default", "-types", "jar"]
    command += ["-retrieve", f"{target}/[artifact]-[revision].[ext]"]
    said = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        for line in ivy.stdout or ():
            said.append(line.strip())
            if "[SUCCESSFUL ]" in line:
                echo(line.split("]")[1].split("!")[0].strip())
    if ivy.returncode != 0:
        raise PenstockError(_why(server, said))
    return target


def _why(server: Server, said: list[str]) -> str:
    """One sentence from what Ivy printed."""
    text = "\n".join(said)
    if "PKIX" in text or "SSLHandshake" in text:
        cause = "Java does not trust the repository's certificate: point SSL_CERT_FILE at your authority's certificates"
    elif "No space left" in text:
        cause = "the disk is full: make room, or set PENSTOCK_CACHE to a folder on another disk"
    else:
        lost = [line for line in said if "not found" in line or "FAILED" in line or "Exception" in line]
        detail = f" (`{lost[0].strip(': ')}`)" if lost else ""
        cause = f"the Maven repository does not give them{detail}: check the network or HTTPS_PROXY, then try again"
    return f"cannot fetch the jars of {server}; {cause}"


def _check(folder: Path, sums: dict[str, str]) -> None:
    got = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.jar")}
    wrong = sorted(name for name in sums.keys() | got.keys() if sums.get(name) != got.get(name))
    if wrong:
        msg = f"the Maven repository gave other files than the lock names: {', '.join(wrong)}; nothing was kept"
        raise PenstockError(msg)


def _ivy() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        msg = "pyspark is not installed, and with it the Ivy that fetches jars; run `make setup`"
        raise PenstockError(msg)
    return next((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))


def _proxy_options() -> list[str]:
    """Java reads no `HTTPS_PROXY`; its own properties say the same."""
    options = []
    for scheme, url in urllib.request.getproxies().items():
        proxy = urlsplit(url if "//" in url else f"//{url}")
        if scheme in {"http", "https"} and proxy.hostname:
            options += [f"-D{scheme}.proxyHost={proxy.hostname}", f"-D{scheme}.proxyPort={proxy.port or 3128}"]
    return options


def _trust_options(work: Path) -> list[str]:
    """A trust store with the authorities that Python trusts, for a Java that knows only its own."""
    bundle = ssl.get_default_verify_paths().cafile
    if not bundle:
        return []
    store = work / "trust.p12"
    store.write_bytes(_trust_store(Path(bundle).read_text(encoding="utf-8", errors="replace")))
    return [f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={_STORE_PASSWORD}"]


def _trust_store(bundle: str) -> bytes:
    """A PKCS12 trust store of the PEM certificates in `bundle`; one that cannot be parsed is left out."""
    end = "-----END CERTIFICATE-----"
    known: dict[bytes, PKCS12Certificate] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)  # old authorities with serial number 0
        for part in bundle.split(end)[:-1]:
            try:
                certificate = load_pem_x509_certificate((part[part.find("-----BEGIN") :] + end).encode())
            except ValueError:
                continue
            entry = PKCS12Certificate(certificate, f"ca{len(known)}".encode())
            known.setdefault(certificate.public_bytes(Encoding.DER), entry)
    return serialize_java_truststore(list(known.values()), BestAvailableEncryption(_STORE_PASSWORD.encode()))


if __name__ == "__main__":
    try:  # Set-up counts the lines printed here.
        with ThreadPoolExecutor() as pool:
            for _ in pool.map(lambda server: jars(server, lambda name: print(name, flush=True)), SERVERS):  # noqa: T201
                pass
    except PenstockError as failure:
        sys.exit(str(failure))
