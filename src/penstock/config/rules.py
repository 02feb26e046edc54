"""Rules between properties (reference s3-sink-connector 1.8, and our own)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.config.properties import Value
    from penstock.config.reading import Findings

_TIMES = ("locale", "timezone")
_NEEDS = {
    "field": ("partition.field.name",),
    "time": ("partition.duration.ms", "path.format", *_TIMES),
    "daily": _TIMES,
    "hourly": _TIMES,
    "fieldandtime": ("partition.field.name", "partition.duration.ms", "path.format", *_TIMES),
}
_EXAMPLES = {
    "partition.field.name": "country",
    "partition.duration.ms": "3600000",
    "path.format": "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH",
    "locale": "en-US",
    "timezone": "UTC",
}
_KEY_ID = "aws.access.key.id"
_SECRET_KEY = "aws.secret.access.key"  # noqa: S105 - a property's name
_PROVIDER = "s3.credentials.provider.class"


def check(parsed: Mapping[str, Any], given: Mapping[str, Value], file: str, findings: Findings) -> None:
    """Note every combination that cannot work. `parsed`: the values by property name."""
    _check_topics(given, file, findings)
    _check_credentials(parsed, given, findings)
    _check_places(parsed, given, findings)
    _check_partitioner(parsed, given, file, findings)
    _check_changes(given, findings)


def _check_partitioner(parsed: Mapping[str, Any], given: Mapping[str, Value], file: str, findings: Findings) -> None:
    """What each partitioner, and scheduled rotation, cannot be without (reference 1.8, rules 4 to 6)."""
    kind = parsed["partitioner.class"]
    needs = list(_NEEDS.get(kind, ()))
    if (parsed["rotate.schedule.interval.ms"] or -1) > 0 and "timezone" not in needs:
        needs.append("timezone")
    for name in needs:
        value = parsed[name]
        if value in ("", (), -1, 0):
            where = given[name].where if name in given else file
            why = f"partitioner.class `{kind}`" if name in _NEEDS.get(kind, ()) else "rotate.schedule.interval.ms"
            findings.problem(name, f"{where}: {why} needs {name}; set it, for example {name}={_EXAMPLES[name]}")
    for field in parsed["partition.field.name"] or ():
        if not all(field.split(".")):
            findings.problem(
                "partition.field.name",
                f"{given['partition.field.name'].where}: partition.field.name has an empty part in `{field}`; "
                "write nested fields as `outer.inner`",
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


def _check_changes(given: Mapping[str, Value], findings: Findings) -> None:
    """Transformations would change the records: they must not be passed over."""
    for name in ("transforms", "predicates"):
        if name in given and given[name].text.strip():
            value = given[name]
            findings.problem(
                name,
                f"{value.where}: not supported yet: {name}=`{value.shown}`; records are written unchanged, take it out",
            )
