"""What of the records is written, and what becomes of those that cannot be (reference s3-sink-connector 1.2, 1.3)."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.config.classes import FORMATS
from penstock.config.declare import prop
from penstock.config.kinds import Bool, Choice, Int, Matching, Named, Text

_IF_IGNORED = ("behavior.on.null.values", ("ignore",))
_IF_TOLERATED = ("errors.tolerance", ("all",))
_TOPIC = Matching(r"[A-Za-z0-9._-]{0,249}", "a topic name (letters, digits, `.`, `_`, `-`)")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsConfig:
    """Keys, headers, null values."""

    store_keys: bool = prop(
        "store.kafka.keys",
        Bool(),
        default="false",
        shapes=True,
        doc="Whether keys are written to objects of their own.",
    )
    keys_format: str = prop(
        "keys.format.class",
        Named(FORMATS),
        default="avro",
        shapes=True,
        supported=("avro", "json", "bytes", "parquet"),
        only_with=("store.kafka.keys", (True,)),
        doc="Format of those objects.",
    )
    store_headers: bool = prop(
        "store.kafka.headers",
        Bool(),
        default="false",
        shapes=True,
        doc="Whether headers are written to objects of their own.",
    )
    headers_format: str = prop(
        "headers.format.class",
        Named(FORMATS),
        default="avro",
        shapes=True,
        supported=("avro", "json", "parquet"),
        only_with=("store.kafka.headers", (True,)),
        doc="Format of those objects.",
    )
    envelope: bool = prop(
        "store.envelope",
        Bool(),
        default="false",
        shapes=True,
        origin="Penstock",
        doc="Whether each record is written with its key, headers, timestamp, topic, partition and offset around its "
        "value (docs/formats.md).",
    )
    key_converter: str = prop(
        "key.converter",
        Text(blank=True),
        default="",
        shapes=True,
        origin="Connect",
        doc="What record keys are written in: like `value.converter`, with options behind `key.converter.`. Looked at "
        "only where `store.kafka.keys` or `store.envelope` is true; `string` where nothing is said.",
    )
    decimals: str = prop(
        "json.decimal.format",
        Choice(("BASE64", "NUMERIC"), any_case=True),
        default="BASE64",
        shapes=True,
        doc="How decimals are written in JSON: their unscaled bytes in base64, or as numbers.",
    )
    optional_map_keys: bool = prop(
        "allow.optional.map.keys",
        Bool(),
        default="false",
        shapes=True,
        doc="Whether a map with optional text keys becomes an Avro map (JSON with schemas).",
    )
    null_values: str = prop(
        "behavior.on.null.values",
        Choice(("fail", "ignore", "write"), any_case=True),
        default="fail",
        shapes=True,
        doc="What a record without a value does: stop the topic-partition, be left out and counted as skipped, or be "
        "written as a tombstone, which needs `store.kafka.keys`.",
    )
    tombstones: str = prop(
        "tombstone.encoded.partition",
        Matching(r"[^/\x00-\x1f][^\x00-\x1f]*", "a name without control characters that does not begin with `/`"),
        default="tombstone",
        shapes=True,
        only_with=("behavior.on.null.values", ("write",)),
        doc="Encoded partition of tombstones.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorsConfig:
    """Records that cannot be written."""

    tolerance: str = prop(
        "errors.tolerance",
        Choice(("none", "all")),
        default="none",
        origin="Connect",
        doc="With `none`, a topic-partition stops at a record that cannot be written; with `all`, it is left out, "
        "counted as skipped, and kept as `errors.dir` and `errors.deadletterqueue.topic.name` say.",
    )
    log: bool = prop(
        "errors.log.enable",
        Bool(),
        default="false",
        origin="Connect",
        only_with=_IF_TOLERATED,
        doc="Whether such records are logged: the first ten of a topic-partition in each cycle, and their number.",
    )
    log_messages: bool = prop(
        "errors.log.include.messages",
        Bool(),
        default="false",
        origin="Connect",
        only_with=("errors.log.enable", (True,)),
        doc="Accepted; topic, partition and offset are always part of the line, values only as far as the reason says.",
    )
    directory: str = prop(
        "errors.dir",
        Matching(r"([^/\x00-\x1f]([^\x00-\x1f]*[^/\x00-\x1f])?)?", "a path without slashes at its ends"),
        default="",
        origin="Penstock",
        only_with=_IF_TOLERATED,
        doc="Where such records are written as JSON lines, with reason, key, value and headers, in objects that are "
        "committed with the cut: `<errors.dir>/<topic>/<topic>+<partition>+<offset>.jsonl`. Empty for nowhere.",
    )
    topic: str = prop(
        "errors.deadletterqueue.topic.name",
        _TOPIC,
        default="",
        origin="Connect",
        doc="Topic that receives such records, and null values that are left out.",
    )
    topic_replication: int = prop(
        "errors.deadletterqueue.topic.replication.factor",
        Int(1, 2**15 - 1),
        default="3",
        origin="Connect",
        doc="Replicas of that topic where it is created.",
    )
    context_headers: bool = prop(
        "errors.deadletterqueue.context.headers.enable",
        Bool(),
        default="false",
        origin="Connect",
        doc="Whether headers there say where a record comes from and what was wrong.",
    )
    report_nulls: bool = prop(
        "report.null.values.to.dlq",
        Bool(),
        default="true",
        only_with=_IF_IGNORED,
        doc="Whether a null value that is left out goes to the dead-letter topic.",
    )
