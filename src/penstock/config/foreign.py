"""Connector files of the block-GZIP family (seed 003 and its forks), read as if they were written for Penstock.

Their objects keep their names: `[<s3.prefix>/]<date>/<topic>-<partition>-<offset>.gz`, an index beside each, and the
object that names the newest index (reference peers A.2, A.3, A.8). The date is that of the record's arrival, recorded
with the plan, so that no second try writes to another day.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.config.kinds import Int
from penstock.config.properties import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.config.properties import Properties
    from penstock.config.reading import Findings

DEVIANTART = "com.deviantart.kafka_connect_s3.S3SinkConnector"
CLASSES = (
    DEVIANTART,
    "com.spredfast.kafka.connect.s3.sink.S3SinkConnector",
    "com.spredfast.kafka.connect.s3.S3SinkConnector",
)
OURS = "io.confluent.connect.s3.S3SinkConnector"
_RENAMED = {
    "s3.bucket": "s3.bucket.name",
    "s3.endpoint": "store.url",
    "s3.path_style": "s3.path.style.access.enabled",
    "flush.interval.ms": "rotate.interval.ms",
}
_DROPPED = ("local.buffer.dir", "s3.prefix", "layout", "flush.grace.period.ms", "compressed_file_size")
_METRICS = "metrics."
_BY_DATE = "grouped_by_date"
_LAYOUTS = {
    _BY_DATE: (
        "{{timestamp:yyyy-MM-dd}}/{{topic}}-{{partition:padding=5}}-{{start_offset:padding=12}}",
        "last_chunk_index.{{topic}}-{{partition:padding=5}}.txt",
    ),
    "grouped_by_topic": (
        "{{topic}}/{{timestamp:yyyy-MM-dd}}/{{partition:padding=5}}-{{start_offset:padding=12}}",
        "{{topic}}/last_chunk_index.{{partition:padding=5}}.txt",
    ),
}
_FLUSH = "offset.flush.interval.ms"
_INTERVAL = "flush.interval.ms"
_GRACE = "flush.grace.period.ms"


def is_foreign(properties: Mapping[str, Value]) -> bool:
    """Whether a file is for one of these connectors."""
    named = properties.get("connector.class")
    return named is not None and named.text.strip() in CLASSES


def understood(connector: Properties, worker: Properties | None, findings: Findings) -> Properties:
    """A file in our properties. What has another name keeps its place, so that messages point at the user's line.

    `worker`: its `offset.flush.interval.ms` said how often these connectors closed their files.
    """
    _check(connector.entries, findings)
    given = connector.entries
    named = given["connector.class"]
    flushing = _flushing(given, worker.entries if worker is not None else {}, findings)
    wrong = {name for name, _ in findings.problems}
    said = {
        _RENAMED.get(name, name): value for name, value in given.items() if not _is_dropped(name) and name not in wrong
    }
    said["connector.class"] = replace(named, text=OURS)
    prefix = given["s3.prefix"].text.strip().strip("/") if "s3.prefix" in given else ""
    template, last = _LAYOUTS.get(given["layout"].text.strip() if "layout" in given else _BY_DATE, _LAYOUTS[_BY_DATE])
    root = f"{prefix}/" if prefix else ""
    defaults = {
        "format.class": "block_gzip",
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "flush.size": "2147483647",
        "path.template": root + template,
        "last.chunk.index.path": root + last,
        "topics.dir": prefix,
        "timezone": "UTC",
        "locale": "en",
        "s3.path.style.access.enabled": "false",
        "format.value.delimiter.once": str(named.text.strip() == DEVIANTART).lower(),
        **flushing,
    }
    place = named.where
    filled = {name: Value(text, place) for name, text in defaults.items() if name not in said}
    return replace(connector, entries={**said, **filled})


def _check(given: Mapping[str, Value], findings: Findings) -> None:
    layout, size = given.get("layout"), given.get("compressed_file_size")
    if layout is not None and layout.text.strip() not in _LAYOUTS:
        words = " or ".join(_LAYOUTS)
        findings.problem("layout", f"{layout.where}: layout must be {words}, got `{layout.shown}`")
    if size is not None and size.text.strip() != "-1":
        why = "where a file ends would depend on the compression; use flush.bytes, which counts uncompressed bytes"
        findings.problem("compressed_file_size", f"{size.where}: compressed_file_size is not supported: {why}")


def _is_dropped(name: str) -> bool:
    return name in _DROPPED or name.startswith(_METRICS)


def _flushing(given: Mapping[str, Value], worker: Mapping[str, Value], findings: Findings) -> dict[str, str]:
    """When files close: by the records' times where the file says so, else as often as Connect committed offsets."""
    interval = _milliseconds(given, _INTERVAL, -1, findings)
    if interval > 0:
        grace = _milliseconds(given, _GRACE, interval // 2, findings)
        return {"timestamp.extractor": "Record", "max.latency.ms": str(interval + grace)}
    return {"max.latency.ms": str(_milliseconds(worker, _FLUSH, 60_000, findings))}


def _milliseconds(given: Mapping[str, Value], name: str, default: int, findings: Findings) -> int:
    """A time of these connectors; the default where it is not given or is none, which is then a problem."""
    value = given.get(name)
    if value is None:
        return default
    try:
        return Int(-1).parse(value.text)
    except ValueError as error:
        findings.problem(name, f"{value.where}: {name} {error}, got `{value.shown}`")
        return default
