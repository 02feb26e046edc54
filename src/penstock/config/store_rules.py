"""Rules between the store's properties, and between formats and compression (reference s3-sink-connector 1.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from penstock.config.store import PROVIDER_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.config.properties import Value
    from penstock.config.reading import Findings

_PROVIDER = "s3.credentials.provider.class"
_ROLE = "s3.credentials.provider.sts.role.arn"
_STS = "s3.credentials.provider.sts."
_COMPRESSED = ("json", "bytes")
_OBJECTS = (  # whether the object is written, and its format
    (None, "format.class"),
    ("store.kafka.keys", "keys.format.class"),
    ("store.kafka.headers", "headers.format.class"),
)


def check(parsed: Mapping[str, Any], given: Mapping[str, Value], findings: Findings) -> None:
    """Note every combination that cannot work. `parsed`: the values by property name."""
    _check_compression(parsed, given, findings)
    _check_role(parsed, given, findings)
    _check_acceleration(parsed, given, findings)
    _check_encryption(parsed, given, findings)
    _check_proxy(parsed, given, findings)


def provider_options(parsed: Mapping[str, Any], given: Mapping[str, Value]) -> dict[str, str]:
    """What a provider of the user's own is given: every property with the prefix, without it."""
    if ":" not in (parsed[_PROVIDER] or ""):
        return {}
    named = {name: value.text for name, value in given.items() if name.startswith(PROVIDER_OPTIONS)}
    return {name.removeprefix(PROVIDER_OPTIONS): text for name, text in named.items() if name != _PROVIDER}


def _check_compression(parsed: Mapping[str, Any], given: Mapping[str, Value], findings: Findings) -> None:
    name = "s3.compression.type"
    if parsed[name] in (None, "none"):
        return
    for switch, kind in _OBJECTS:
        chosen = parsed.get(kind)
        if (switch is None or parsed.get(switch) is True) and chosen is not None and chosen not in _COMPRESSED:
            findings.problem(
                name,
                f"{given[name].where}: {name}=`{given[name].shown}` is for the formats json and bytes, and {kind} is "
                f"`{chosen}`; take it out, `{chosen}` files compress by themselves",
            )


def _check_role(parsed: Mapping[str, Any], given: Mapping[str, Value], findings: Findings) -> None:
    provider = parsed[_PROVIDER]
    if provider == "assume_role" and parsed[_ROLE] == "":
        findings.problem(_PROVIDER, f"{given[_PROVIDER].where}: {_PROVIDER} assumes a role; set {_ROLE}")
    if provider is None or provider == "assume_role" or ":" in provider:
        return
    for name, value in given.items():
        if name.startswith(_STS) and name in parsed and value.text.strip():
            text = f"{value.where}: {name} has no effect without {_PROVIDER}=`assume_role`"
            findings.warnings.append((name, text))


def _check_acceleration(parsed: Mapping[str, Any], given: Mapping[str, Value], findings: Findings) -> None:
    name = "s3.wan.mode"
    if not parsed[name]:
        return
    where = given[name].where
    if parsed["s3.path.style.access.enabled"]:
        advice = "set s3.path.style.access.enabled=false, which is true by default"
        findings.problem(name, f"{where}: {name} needs the bucket in the host's name; {advice}")
    if parsed["store.url"] is not None:
        findings.problem(name, f"{where}: {name} is Amazon's own and {given['store.url'].where} names another store")
    if "." in (parsed["s3.bucket.name"] or ""):
        findings.problem(name, f"{where}: {name} is not for buckets with a dot in their name; turn it off")


def _check_encryption(parsed: Mapping[str, Any], given: Mapping[str, Value], findings: Findings) -> None:
    name = "s3.sse.customer.key"
    if parsed[name] is None:
        return
    where = given[name].where
    if parsed["s3.ssea.name"] not in (None, "AES256"):
        findings.problem(name, f"{where}: {name} encrypts with AES256 only; set s3.ssea.name=AES256")
    elif (parsed["store.url"] or "").startswith("http://"):
        findings.warnings.append((name, f"{where}: {name} goes to store.url in clear text; use https there"))


def _check_proxy(parsed: Mapping[str, Any], given: Mapping[str, Value], findings: Findings) -> None:
    url, user, password = "s3.proxy.url", "s3.proxy.user", "s3.proxy.password"
    if url in given and given[url].text.strip():
        named = parsed[user] or (parsed[url] is not None and urlsplit(parsed[url].reveal()).username)
        if parsed[password] and not named:
            findings.problem(password, f"{given[password].where}: {password} is of no use without {user}; set that")
        return
    for name in (user, password):
        if parsed[name]:
            findings.warnings.append((name, f"{given[name].where}: {name} has no effect without {url}"))
