"""Options of the value converter: what may stand behind `value.converter.`, each declared once."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from penstock.config.accepted import CONVERTER_OPTIONS
from penstock.config.declare import Property
from penstock.config.kinds import Bool, Choice, Hidden, HttpUrl, Matching, Text, Words
from penstock.config.reading import Findings, read_value, unknown
from penstock.config.secret import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.config.properties import Value

PREFIX = "value.converter."
KEY_PREFIX = "key.converter."
WITH_REGISTRY = ("avro", "protobuf", "json_schema")
REGISTRY = "schema.registry.url"
_SOURCE = "basic.auth.credentials.source"
_USER_INFO = "basic.auth.user.info"
_TOKEN_SOURCE, _TOKEN = "bearer.auth.credentials.source", "bearer.auth.token"
_OLD_USER_INFO = "schema.registry.basic.auth.user.info"

_FILE = Matching(r"[^\x00-\x1f\x7f]+", "the path of a PEM file")
_NOT_YET_FALSE = {
    "allow.optional.map.keys": "Whether a map with optional text keys becomes an Avro map.",
    "discard.type.doc.default": "Whether doc texts and defaults of schemas are dropped.",
    "ignore.default.for.nullables": "Whether a null stays null where its field has a default.",
    "scrub.invalid.names": "Whether characters that Avro does not allow in names are replaced.",
}
_NOT_YET_WITH_REGISTRY = {
    "generalized.sum.type.support": "Whether unions of every converter are kept in one form.",
    "use.latest.version": "Whether the newest schema of the subject is used instead of the record's own.",
}
_NOT_YET_JSON_SCHEMA = {
    "ignore.modern.dialects": "Whether a JSON Schema of 2019-09 or later is read as one of draft 7.",
    "preserve.additional.properties": "Whether undeclared properties are kept in a field of their own.",
}
_PROTOBUF_FALSE = {
    "enhanced.protobuf.schema.support": "Whether types are called by their full names, with the package.",
    "flatten.unions": "Whether the members of a oneof are fields of the message itself.",
    "generate.struct.for.nulls": "Whether a message that is not set becomes an empty one.",
    "int.for.enums": "Whether enums become their numbers.",
    "optional.for.nullables": "Whether only fields that say `optional`, and messages, may be null.",
    "wrapper.for.nullables": "Whether only wrapper types, and messages, may be null.",
}
_PROTOBUF_TRUE = {
    "generate.index.for.unions": "Whether a oneof's field has its number behind its name.",
    "optional.for.proto2": "Whether an `optional` field of proto2 that is not set becomes null.",
    "wrapper.for.raw.primitives": "Whether a wrapper message becomes the value in it.",
}
_JSON_SCHEMA_FALSE = {
    "json.fail.invalid.schema": "Whether every value is checked against its JSON Schema.",
    "use.optional.for.nonrequired": "Whether properties that are not required may be missing.",
}
_JSON_SCHEMA_TRUE = {"flatten.singleton.unions": "Whether a union of one type is that type."}
_JAVA_STORES = {
    "schema.registry.ssl.truststore.location": "A Java trust store; `schema.registry.ssl.ca.location` takes PEM.",
    "schema.registry.ssl.truststore.type": "Its type.",
    "schema.registry.ssl.keystore.location": "A Java key store; `schema.registry.ssl.certificate.location` takes PEM.",
    "schema.registry.ssl.keystore.type": "Its type.",
}
_STORE_PASSWORDS = (
    "schema.registry.ssl.truststore.password",
    "schema.registry.ssl.keystore.password",
    "schema.registry.ssl.key.password",
)

_REGISTRY: tuple[Property, ...] = (
    Property(name=REGISTRY, kind=Words(), required=True, doc="Address of the Schema Registry, or several with commas."),
    Property(
        name=_SOURCE,
        kind=Choice(("URL", "USER_INFO", "SASL_INHERIT"), any_case=True),
        default="URL",
        supported=("URL", "USER_INFO"),
        doc="Where user and password for the registry stand: in its URL, or in `basic.auth.user.info`.",
    ),
    Property(name=_USER_INFO, kind=Hidden(), aliases=(_OLD_USER_INFO,), doc="`USER:PASSWORD` for the registry."),
    *(
        Property(name=f"schema.registry.ssl.{name}.location", kind=_FILE, origin="Penstock", doc=doc)
        for name, doc in (
            ("ca", "Certificates (PEM) that the registry's own must come from."),
            ("certificate", "Our certificate (PEM), where the registry asks for one."),
            ("key", "The key (PEM) to it."),
        )
    ),
    *(Property(name=name, kind=Text(), supported=(None,), doc=doc) for name, doc in _JAVA_STORES.items()),
    *(Property(name=name, kind=Hidden(), supported=(None,), doc="Its password.") for name in _STORE_PASSWORDS),
    Property(
        name=_TOKEN_SOURCE,
        kind=Choice(("STATIC_TOKEN", "OAUTHBEARER", "SASL_OAUTHBEARER_INHERIT", "CUSTOM"), any_case=True),
        supported=(None, "STATIC_TOKEN"),
        doc="Where a token for the registry comes from.",
    ),
    Property(name=_TOKEN, kind=Hidden(), doc="That token, sent in the place of user and password."),
)


def _flags(docs: Mapping[str, str], default: str = "false") -> tuple[Property, ...]:
    return tuple(Property(name=name, kind=Bool(), default=default, doc=doc) for name, doc in docs.items())


def _not_yet(docs: Mapping[str, str]) -> tuple[Property, ...]:
    return tuple(
        Property(name=name, kind=Bool(), default="false", supported=(False,), doc=doc) for name, doc in docs.items()
    )


OPTIONS: Mapping[str, tuple[Property, ...]] = {
    "registry": (*_REGISTRY, *_not_yet(_NOT_YET_WITH_REGISTRY)),
    "avro": _not_yet(_NOT_YET_FALSE),
    "protobuf": (*_flags(_PROTOBUF_FALSE), *_flags(_PROTOBUF_TRUE, "true")),
    "json_schema": (
        *_flags(_JSON_SCHEMA_FALSE),
        *_flags(_JSON_SCHEMA_TRUE, "true"),
        *_not_yet(_NOT_YET_JSON_SCHEMA),
    ),
    "json": (
        Property(
            name="schemas.enable",
            kind=Bool(),
            default="true",
            origin="Connect",
            doc="Whether every value is an object of `schema` and `payload`.",
        ),
        Property(
            name="schema.content",
            kind=Text(blank=True),
            default="",
            origin="Connect",
            doc="The schema of every value, as `schema` would hold it; values are then payloads alone.",
        ),
    ),
    "string": (
        Property(
            name="converter.encoding",
            kind=Matching(r"(?i)utf-?8", "UTF-8"),
            default="UTF-8",
            origin="Connect",
            doc="Character set of the texts.",
        ),
    ),
}


def known_options() -> frozenset[str]:
    """Every option of any converter. One that is another converter's is passed over, as Kafka Connect does."""
    declared = (option for options in OPTIONS.values() for option in options)
    return frozenset(name for each in declared for name in (each.name, *each.aliases)) | CONVERTER_OPTIONS.keys()


def check_option_names(given: Mapping[str, Value], findings: Findings) -> None:
    """Note the options that no converter has."""
    known = {PREFIX + name for name in known_options()}
    for name, value in given.items():
        if name.startswith(PREFIX) and name not in known:
            findings.problem(name, unknown(name, value, known))


def read_options(
    kind: str, given: Mapping[str, Value], file: str, findings: Findings, prefix: str = PREFIX
) -> dict[str, str]:
    """The options given for a converter by their names without prefix; mistakes in them are noted.

    A login in the registry's address becomes `basic.auth.user.info`, so that the address may be shown.
    """
    behind = {name.removeprefix(prefix): value.text.strip() for name, value in given.items() if name.startswith(prefix)}
    for option in (*(OPTIONS["registry"] if kind in WITH_REGISTRY else ()), *OPTIONS.get(kind, ())):
        declared = _prefixed(option, prefix)
        read_value(declared, given, file, findings)
    return _with_login(behind, given, findings, prefix) if kind in WITH_REGISTRY else behind


def _prefixed(option: Property, prefix: str) -> Property:
    return Property(
        name=prefix + option.name,
        kind=option.kind,
        doc=option.doc,
        default=option.default,
        required=option.required,
        supported=option.supported,
        aliases=tuple(prefix + alias for alias in option.aliases),
    )


def _with_login(behind: dict[str, str], given: Mapping[str, Value], findings: Findings, prefix: str) -> dict[str, str]:
    """Addresses and login of the registry, checked."""
    behind = dict(behind)
    source = behind.get(_SOURCE, "URL").upper()
    place = next((prefix + name for name in (_USER_INFO, _OLD_USER_INFO) if behind.get(name)), None)
    if source == "USER_INFO" and place is None:
        where = given[prefix + _SOURCE].where
        findings.problem(prefix + _SOURCE, f"{where}: {prefix}{_SOURCE} is USER_INFO; give {prefix}{_USER_INFO}")
    elif source == "URL" and place is not None:
        needed = f"{prefix}{_SOURCE}=USER_INFO"
        findings.problem(place, f"{given[place].where}: {place} counts only with {needed}; set that")
    addresses = []
    for text in Words().parse(behind.get(REGISTRY, "")):
        login, address = _split_login(text)
        if login and source == "URL":
            behind |= {_SOURCE: "USER_INFO", _USER_INFO: login}
            place = prefix + REGISTRY
        addresses.append(_address(address, prefix + REGISTRY, bool(login), given, findings))
    _check_token(behind, given, findings, prefix)
    login = behind.get(_USER_INFO) or behind.get(_OLD_USER_INFO, "")
    if place is not None and ":" not in login:
        findings.problem(place, f"{given[place].where}: {place} must hold USER:PASSWORD, got `{HIDDEN}`")
    return {**behind, REGISTRY: ",".join(addresses)}


def _check_token(behind: Mapping[str, str], given: Mapping[str, Value], findings: Findings, prefix: str) -> None:
    """A token and where it comes from go together."""
    source, token = behind.get(_TOKEN_SOURCE, "").upper() == "STATIC_TOKEN", bool(behind.get(_TOKEN))
    if source and not token:
        where = given[prefix + _TOKEN_SOURCE].where
        findings.problem(
            prefix + _TOKEN_SOURCE, f"{where}: {prefix}{_TOKEN_SOURCE} is STATIC_TOKEN; give {prefix}{_TOKEN}"
        )
    elif token and not source:
        needed = f"{prefix}{_TOKEN_SOURCE}=STATIC_TOKEN"
        findings.problem(
            prefix + _TOKEN, f"{given[prefix + _TOKEN].where}: {prefix}{_TOKEN} counts only with {needed}; set that"
        )


def _address(address: str, name: str, login: bool, given: Mapping[str, Value], findings: Findings) -> str:
    try:
        return HttpUrl().parse(address)
    except ValueError as error:
        shown = f"{HIDDEN}@{address}" if login else address
        findings.problem(name, f"{given[name].where}: {name} {error}, got `{shown}`")
        return address


def _split_login(url: str) -> tuple[str, str]:
    """(user:password or "", the address without them)."""
    scheme, _, rest = url.rpartition("://")
    login, at, host = rest.rpartition("@")
    address = f"{scheme}://{host}" if scheme else host
    return (unquote(login), address) if at else ("", url)
