"""The Schema Registry, as the converters see it: schemas by id, cached for the life of the process."""

from __future__ import annotations

import functools
import json
import re
import ssl
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2 as httpx
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from penstock.errors import ConfigError, PenstockError, RegistryUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")
_NOT_FOUND = 404
_REFUSED = (401, 403)
_NOT_TAKEN = (409, 422)  # does not fit the subject's other versions; is no schema
_SERVER_ERROR = 500
_NO_REGISTRY = -1  # the client's word for an answer that is not the registry's
_TIMEOUT_SECONDS = 10
_NO_SCHEMA = 2**31 - 1
_PASSED_ON = {
    "schema.registry.ssl.ca.location": "ssl.ca.location",
    "schema.registry.ssl.certificate.location": "ssl.certificate.location",
    "schema.registry.ssl.key.location": "ssl.key.location",
}


@dataclass(frozen=True, slots=True)
class Registered:
    """A schema as the registry has it.

    `named`: what it refers to; for Avro, full name -> definition; for other kinds, name of the reference -> text.
    """

    text: str
    kind: str
    version: int | None
    named: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Registry:
    """A registry at `url`, which may be several with commas: the next one is asked where one does not answer.

    `login`: `user:password` or empty; `token`: sent in its place. Neither is ever shown.
    """

    url: str
    login: str = field(default="", repr=False)
    tls: Mapping[str, str] = field(default_factory=dict)
    token: str = field(default="", repr=False)
    _known: dict[tuple[int, str], Registered | None] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Mapping[str, str], where: str) -> Registry:
        """From a converter's options (without their `value.converter.` prefix, which `where` names)."""
        url = options.get("schema.registry.url", "").strip()
        if not url:
            msg = f"{where}.schema.registry.url must be set: the converter reads schemas from a Schema Registry"
            raise ConfigError([msg])
        source = options.get("basic.auth.credentials.source", "URL").upper()
        login = ""
        if source == "USER_INFO":
            login = options.get("basic.auth.user.info") or options.get("schema.registry.basic.auth.user.info", "")
        tls = {theirs: options[ours] for ours, theirs in _PASSED_ON.items() if options.get(ours)}
        static = options.get("bearer.auth.credentials.source", "").upper() == "STATIC_TOKEN"
        return cls(url, login, tls, options.get("bearer.auth.token", "") if static else "")

    def schema(self, schema_id: int, subject: str) -> Registered | None:
        """The schema with its version in `subject`; None where the registry has no such id.

        Raises:
            RegistryUnavailable: it does not answer, or refuses.
        """
        key = (schema_id, subject)
        if key not in self._known or self._known[key] is None:
            self._known[key] = self._fetch(schema_id, subject)
        return self._known[key]

    def check(self) -> None:
        """Ask for a schema that is not there: the cheapest question that shows whether the login is right.

        Raises:
            RegistryUnavailable: it does not answer, or refuses.
        """
        self._fetch(_NO_SCHEMA, "")

    def versions(self, subject: str) -> list[tuple[int, Registered]]:
        """The versions of a subject with their ids, the newest first; none where there is no such subject.

        Raises:
            RegistryUnavailable: it does not answer, or refuses.
        """
        return self._asked(lambda: self._all(subject)) or []

    def register(self, subject: str, text: str) -> int:
        """Register an Avro schema, if it is not there yet; its id.

        Raises:
            PenstockError: the registry does not take it.
            RegistryUnavailable: it does not answer, or refuses.
        """

        def ask() -> int:
            try:
                return self._connected().register_schema(subject, Schema(text, "AVRO"))
            except SchemaRegistryError as error:
                if error.http_status_code not in _NOT_TAKEN:
                    raise
                msg = f"the Schema Registry does not take a schema under `{subject}`: {error.error_message}"
                raise PenstockError(msg) from None

        made = self._asked(ask)
        if made is None:
            msg = f"the Schema Registry at {self._shown} cannot register anything under `{subject}`"
            raise PenstockError(msg)
        return made

    def _fetch(self, schema_id: int, subject: str) -> Registered | None:
        return self._asked(lambda: self._ask(schema_id, subject))

    def _asked(self, question: Callable[[], T]) -> T | None:
        """The answer to a question; None where the registry knows nothing of what it is about."""
        try:
            return question()
        except SchemaRegistryError as error:
            if (error.error_code or 0) // 100 == _NOT_FOUND:
                return None
            raise self._answered(error) from None
        except (httpx.HTTPError, OSError) as error:
            raise self._silent(error) from None
        except ValueError:
            msg = f"what answers at {self._shown} is no Schema Registry; correct schema.registry.url"
            raise RegistryUnavailable(msg, transient=False) from None

    def _all(self, subject: str) -> list[tuple[int, Registered]]:
        client = self._connected()
        found = []
        for number in sorted(client.get_versions(subject), reverse=True):
            held = client.get_version(subject, number)
            named: dict[str, Any] = {}
            self._collect(client, held.schema.references or [], named)
            kind = held.schema.schema_type or "AVRO"
            found.append((int(held.schema_id or 0), Registered(str(held.schema.schema_str), kind, number, named)))
        return found

    def _ask(self, schema_id: int, subject: str) -> Registered:
        client = self._connected()
        schema = client.get_schema(schema_id)
        named: dict[str, Any] = {}
        self._collect(client, schema.references or [], named)
        try:
            version = client.lookup_schema(subject, schema).version
        except SchemaRegistryError as error:
            if error.http_status_code is not None and error.http_status_code >= _SERVER_ERROR:
                raise
            version = None  # registered under another naming strategy
        return Registered(str(schema.schema_str), schema.schema_type or "AVRO", version, named)

    def _collect(self, client: SchemaRegistryClient, references: list[Any], named: dict[str, Any]) -> None:
        for reference in references:
            found = client.get_version(reference.subject, reference.version).schema
            self._collect(client, found.references or [], named)
            text = str(found.schema_str)
            named[reference.name] = json.loads(text) if (found.schema_type or "AVRO") == "AVRO" else text

    def _connected(self) -> SchemaRegistryClient:
        config: dict[str, Any] = {"url": self.url, "max.retries": 2, "timeout": _TIMEOUT_SECONDS, **self.tls}
        if self.login:
            config["basic.auth.user.info"] = self.login
        if self.token:
            config |= {"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": self.token}
            config["bearer.auth.logical.cluster"] = ""  # Confluent's own header; other registries pass over it
        try:
            return _client(tuple(config.items()))
        except (OSError, ValueError) as error:
            named = ", ".join(f"{ours} `{self.tls[name]}`" for ours, name in _PASSED_ON.items() if name in self.tls)
            msg = f"the certificates for the Schema Registry cannot be used ({_words(error)}); correct {named}"
            raise RegistryUnavailable(msg, transient=False) from None

    @property
    def _shown(self) -> str:
        """The address without a login."""
        return ",".join(part.rpartition("@")[2] for part in self.url.split(","))

    def _answered(self, error: SchemaRegistryError) -> RegistryUnavailable:
        """It answers, but not what it was asked for."""
        status = error.http_status_code
        if status in _REFUSED:
            given = "bearer.auth.token" if self.token else "basic.auth.user.info"
            msg = f"the Schema Registry at {self._shown} refuses this client (HTTP {status}); check {given}"
            return RegistryUnavailable(msg, transient=False)
        if error.error_code in (None, _NO_REGISTRY, _NOT_FOUND):
            msg = f"what answers at {self._shown} is no Schema Registry (HTTP {status}); correct schema.registry.url"
            return RegistryUnavailable(msg, transient=(status or 0) >= _SERVER_ERROR)
        reason = f"{error.error_message}, HTTP {status}"
        msg = f"the Schema Registry at {self._shown} does not answer ({reason}); check that it runs"
        return RegistryUnavailable(msg)

    def _silent(self, error: Exception) -> RegistryUnavailable:
        """No answer came."""
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, ssl.SSLError):
            cause = cause.__cause__ or cause.__context__
        if isinstance(cause, ssl.SSLCertVerificationError):
            msg = (
                f"the certificate of the Schema Registry at {self._shown} is not accepted ({cause.verify_message}); "
                "put its authority's certificate (PEM) into schema.registry.ssl.ca.location"
            )
            return RegistryUnavailable(msg, transient=False)
        reason = _words(error if cause is None else cause)
        return RegistryUnavailable(
            f"the Schema Registry at {self._shown} does not answer ({reason}); check that it runs"
        )


def _words(error: BaseException) -> str:
    """What the operating system or OpenSSL says, without their codes."""
    if isinstance(error, ssl.SSLError):
        return str(error.reason or error).replace("_", " ").lower()
    said = (isinstance(error, OSError) and error.strerror) or re.sub(r"^\[Errno -?\d+\] ", "", str(error))
    return " ".join(said.split()) or type(error).__name__


@functools.lru_cache(maxsize=64)
def _client(config: tuple[tuple[str, Any], ...]) -> SchemaRegistryClient:
    """One client with its connections for all converters of a process that ask the same registry."""
    made = SchemaRegistryClient(dict(config))
    # Whoever held it last closes no connection: the cache drops it, or the process ends.
    weakref.finalize(made, made._rest_client.session.close)  # noqa: SLF001 - `close` of the client would keep it alive
    return made
