"""Rules between properties (reference s3-sink-connector 1.8, and our own)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.config import store_rules, transforming
from penstock.config.partition_rules import check_partitioner
from penstock.keys import PADDING, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.config.properties import Value
    from penstock.config.reading import Findings

_KEY_ID = "aws.access.key.id"
_SECRET_KEY = "aws.secret.access.key"  # noqa: S105 - a property's name
_PROVIDER = "s3.credentials.provider.class"


def check(parsed: Mapping[str, Any], given: Mapping[str, Value], file: str, findings: Findings) -> None:
    """Note every combination that cannot work. `parsed`: the values by property name."""
    _check_topics(given, file, findings)
    _check_credentials(parsed, given, findings)
    _check_places(parsed, given, findings)
    check_partitioner(parsed, given, file, findings)
    _check_records(parsed, given, findings)
    _check_last_index(parsed, given, findings)
    _check_changes(given, findings)
    store_rules.check(parsed, given, findings)
    transforming.check(given, findings)


def _check_records(parsed: Mapping[str, Any], given: Mapping[str, Value], findings: Findings) -> None:
    """Tombstones are keys only; dead letters are no records of the connector itself."""
    keeps_keys = parsed["store.kafka.keys"] or parsed["store.envelope"]
    if parsed["behavior.on.null.values"] == "write" and not keeps_keys:
        where = given["behavior.on.null.values"].where
        findings.problem(
            "behavior.on.null.values",
            f"{where}: behavior.on.null.values is `write`, which writes keys; set store.kafka.keys=true as well",
        )
    if parsed["store.envelope"] and parsed["format.class"] in ("bytes", "block_gzip"):
        where, chosen = given["store.envelope"].where, parsed["format.class"]
        findings.problem(
            "store.envelope",
            f"{where}: store.envelope is true, and files of format.class `{chosen}` have no fields; set format.class "
            "to avro, json or parquet, or store keys and headers beside the values",
        )
    topic = parsed["errors.deadletterqueue.topic.name"]
    if topic and topic in (parsed["topics"] or ()):
        where = given["errors.deadletterqueue.topic.name"].where
        findings.problem(
            "errors.deadletterqueue.topic.name",
            f"{where}: the dead-letter topic `{topic}` is among topics; use another",
        )


def _check_topics(given: Mapping[str, Value], file: str, findings: Findings) -> None:
    named = [name for name in ("topics", "topics.regex") if name in given and given[name].text.strip()]
    if not named:
        findings.problem(None, f"{file}: one of topics and topics.regex must be set, neither is")
    elif len(named) > 1:
        where = given[named[1]].where
        findings.problem(named[1], f"{where}: one of topics and topics.regex must be set, not both")


def _check_credentials(parsed: Mapping[str, Any], given: Mapping[str, Value], findings: Findings) -> None:
    key, secret = bool(parsed[_KEY_ID]), bool(parsed[_SECRET_KEY])
    if key != secret:
        have, lack = (_KEY_ID, _SECRET_KEY) if key else (_SECRET_KEY, _KEY_ID)
        findings.problem(have, f"{given[have].where}: {_KEY_ID} and {_SECRET_KEY} go together; set {lack} as well")
    elif not key and parsed[_PROVIDER] == "static":
        where = given[_PROVIDER].where
        findings.problem(_PROVIDER, f"{where}: {_PROVIDER} is `static`; set {_KEY_ID} and {_SECRET_KEY}")


def _check_places(parsed: Mapping[str, Any], given: Mapping[str, Value], findings: Findings) -> None:
    """The state log must not lie where objects of topics do."""
    if parsed["state.url"] is None and parsed["state.dir"] and parsed["state.dir"] == parsed["topics.dir"]:
        name = "state.dir" if "state.dir" in given else "topics.dir"
        findings.problem(name, f"{given[name].where}: state.dir and topics.dir are the same; change one of them")


def _check_last_index(parsed: Mapping[str, Any], given: Mapping[str, Value], findings: Findings) -> None:
    """Each topic-partition has a name of its own for its newest index."""
    name, text = "last.chunk.index.path", parsed["last.chunk.index.path"]
    if not text:
        return
    named = [(match[1], match[2] or "") for match in VARIABLE.finditer(text)]
    one_topic = parsed["topics"] is not None and len(parsed["topics"]) == 1
    wanted = {"partition"} if one_topic else {"topic", "partition"}
    known = all(
        (variable == "topic" and not argument)
        or (variable == "partition" and (not argument or PADDING.fullmatch(argument)))
        for variable, argument in named
    )
    closed = VARIABLE.sub("x", text)
    if not known or "{{" in closed or "}}{{" in text or not wanted <= {variable for variable, _ in named}:
        words = " and ".join(f"{{{{{each}}}}}" for each in sorted(wanted))
        findings.problem(
            name,
            f"{given[name].where}: {name} must hold {words}, apart from each other, and no variable but {{{{topic}}}}, "
            f"{{{{partition}}}} and {{{{partition:padding=N}}}}, got `{given[name].shown}`",
        )


def _check_changes(given: Mapping[str, Value], findings: Findings) -> None:
    """Transformations would change the records: they must not be passed over."""
    for name in ("transforms", "predicates"):
        if name in given and given[name].text.strip():
            value = given[name]
            findings.problem(
                name,
                f"{value.where}: not supported yet: {name}=`{value.shown}`; records are written unchanged, take it out",
            )
