"""What partitioners and scheduled rotation need of the configuration (reference s3-sink-connector 1.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.partitioners import custom
from penstock.partitioners.joda import Names, PathFormat
from penstock.partitioners.template import Template, Variable
from penstock.partitioners.zones import Zone

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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


def check_partitioner(parsed: Mapping[str, Any], given: Mapping[str, Value], file: str, findings: Findings) -> None:
    """Note what the chosen partitioner lacks, and every value that it cannot use."""
    if not parsed["path.template"]:
        _check_needs(parsed, given, file, findings)
    _check_fields(parsed, given, findings)
    one_topic = parsed["topics"] is not None and len(parsed["topics"]) == 1
    readers: dict[str, Callable[[str], object]] = {
        "timezone": Zone.parse,
        "locale": Names.of,
        "path.format": lambda text: PathFormat.parse(text, Names()),
        "path.template": lambda text: _template(text, one_topic=one_topic),
    }
    for name in ("partitioner.class", "timestamp.extractor"):
        if ":" in (parsed[name] or ""):
            readers[name] = custom
    for name, read in readers.items():
        if parsed[name] and name in given:
            try:
                read(parsed[name])
            except ValueError as error:
                # It may quote a part of the text, which is not to be shown where a variable gave it.
                phrase = error if given[name].written is None else "cannot be read"
                findings.problem(name, f"{given[name].where}: {name} {phrase}, got `{given[name].shown}`")


def _template(text: str, *, one_topic: bool) -> None:
    for piece in Template.parse(text, one_topic=one_topic).pieces:
        if isinstance(piece, Variable) and piece.name == "timestamp":
            PathFormat.parse(piece.argument, Names())


def _check_needs(parsed: Mapping[str, Any], given: Mapping[str, Value], file: str, findings: Findings) -> None:
    kind = parsed["partitioner.class"]
    needs = dict.fromkeys(_NEEDS.get(kind, ()), f"partitioner.class `{kind}`")
    if (parsed["rotate.schedule.interval.ms"] or -1) > 0:
        needs.setdefault("timezone", "rotate.schedule.interval.ms")
    delim = parsed["directory.delim"]
    for name, why in needs.items():
        if parsed[name] in ("", (), -1, 0, delim):
            where = given[name].where if name in given else file
            findings.problem(name, f"{where}: {why} needs {name}; set it, for example {name}={_EXAMPLES[name]}")


def _check_fields(parsed: Mapping[str, Any], given: Mapping[str, Value], findings: Findings) -> None:
    for field in parsed["partition.field.name"] or ():
        if not all(field.split(".")):
            where = given["partition.field.name"].where
            findings.problem(
                "partition.field.name",
                f"{where}: partition.field.name has an empty part in `{field}`; write nested fields as `outer.inner`",
            )
