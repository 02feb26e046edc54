"""A connector's configuration as one frozen value: every property that Penstock honours, declared once."""
# ruff: noqa: RUF009 - `prop` makes a field

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from penstock.config import classes
from penstock.config.block_gzip import BlockGzipConfig
from penstock.config.completeness import CompletenessConfig
from penstock.config.declare import declarations, group, prop, replaced
from penstock.config.kinds import (
    LONG_MAX,
    Bool,
    Bucket,
    Choice,
    Hidden,
    HttpUrl,
    Int,
    Matching,
    Named,
    S3Url,
    Separator,
    Text,
    Topics,
)
from penstock.config.options import OPTIONS
from penstock.config.partitioning import PartitionConfig
from penstock.config.records import ErrorsConfig, RecordsConfig
from penstock.config.rotation import RotationConfig
from penstock.config.store import StoreConfig
from penstock.config.store_kinds import Provider
from penstock.config.topic_pattern import TopicPattern
from penstock.config.transforming import TABLES, TransformConfig
from penstock.errors import ConfigError

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from penstock.config.secret import Secret

_PATH = Matching(r"[^\x00-\x1f]*", "a text without control characters")
_DELIMITER = Matching(r"[^\x00-\x1f]+", "a text without control characters, not empty")
OWN_OPTIONS = ("partitioner.option.", "format.option.", TABLES)
"""What the properties begin with whose rest the user chooses: of a partitioner or a format, the names of tables."""
SHAPING_OPTIONS = tuple(
    f"{part}.converter.{each.name}"
    for part in ("value", "key")
    for group_name, options in OPTIONS.items()
    if group_name != "registry"
    for each in options
)
"""The options of converters that decide what files hold: they are recorded like other properties."""
_NAME = Matching(r"[A-Za-z0-9][A-Za-z0-9._-]*", "letters, digits, `.`, `_` and `-`, beginning with a letter or digit")


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkConfig:
    """One connector. Travels to the Spark executors, so it is picklable; its repr shows no secret.

    `given`: the text of each property that shapes files, as the user gave it. `converter_options`: what stands behind
    `value.converter.`, `key_converter_options`: behind `key.converter.`; `provider_options`: what a class of the user's
    own gets to make credentials; `spark`: `spark.*` properties, passed on as they are. `warnings`: what is odd but
    harmless. `places`: where the properties of a transformation stand, as mistakes in it show only later.
    """

    name: str = prop("name", _NAME, required=True, origin="Connect", doc="The connector's name: names its state in S3.")
    connector_class: str = prop(
        "connector.class",
        Named(classes.CONNECTORS),
        default="s3",
        origin="Connect",
        doc="The connector; Confluent's Java class name is understood, and those of the block-GZIP connector.",
    )
    tasks_max: int = prop("tasks.max", Int(1), default="1", origin="Connect", doc="How many Spark tasks run at once.")
    topics: tuple[str, ...] | None = prop(
        "topics", Topics(), default=None, origin="Connect", doc="The topics to write. This or `topics.regex`."
    )
    topics_regex: re.Pattern[str] | None = prop(
        "topics.regex",
        TopicPattern(),
        default=None,
        origin="Connect",
        doc="A Java regular expression that whole topic names match; new topics are picked up while running.",
    )
    flush_size: int = prop(
        "flush.size",
        Int(),
        required=True,
        shapes=True,
        doc="Records of a topic-partition between two cuts, over all its encoded partitions; below 1 is 1.",
    )
    rotation: RotationConfig = group(RotationConfig)
    format_class: str = prop(
        "format.class",
        Named(classes.FORMATS, custom=True),
        required=True,
        shapes=True,
        doc="The file format, or one of your own (docs/formats.md).",
    )
    avro_codec: str = prop(
        "avro.codec",
        Choice(("null", "deflate", "snappy", "bzip2", "zstandard", "xz"), also=(("zstd", "zstandard"),)),
        default="null",
        shapes=True,
        only_with=("format.class", ("avro",)),
        doc="Compression of Avro files.",
    )
    connect_meta_data: bool = prop(
        "connect.meta.data",
        Bool(),
        default="true",
        shapes=True,
        doc="Whether Avro schemas in files carry Connect's properties (`connect.name`, `connect.version`, ...).",
    )
    enhanced_avro_schema_support: bool = prop(
        "enhanced.avro.schema.support",
        Bool(),
        default="true",
        shapes=True,
        supported=(True,),
        doc="Enum symbols and namespaces are kept.",
    )
    parquet_codec: str = prop(
        "parquet.codec",
        Choice(("none", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4_raw")),
        default="snappy",
        shapes=True,
        refused={"lzo": "needs a library under GPL that nobody ships; use snappy or zstd"},
        only_with=("format.class", ("parquet",)),
        doc="Compression of Parquet files. `lz4` and `lz4_raw` are both the raw form.",
    )
    bytearray_extension: str = prop(
        "format.bytearray.extension",
        Matching(r"[^/\x00-\x1f]*", "an extension such as `.bin`"),
        default=".bin",
        shapes=True,
        only_with=("format.class", ("bytes",)),
        doc="What names of ByteArray files end with.",
    )
    bytearray_separator: str = prop(
        "format.bytearray.separator",
        Separator(),
        default="\\n",
        shapes=True,
        only_with=("format.class", ("bytes",)),
        doc="What stands behind each record of a ByteArray file.",
    )
    compression_type: str = prop(
        "s3.compression.type",
        Choice(("none", "gzip", "zstd")),
        default="none",
        shapes=True,
        doc="Compression of JSON and bytes objects.",
    )
    compression_level: int = prop(
        "s3.compression.level",
        Int(-1, 9),
        default="-1",
        shapes=True,
        only_with=("s3.compression.type", ("gzip", "zstd")),
        doc="Level of that compression; -1 leaves it to the library.",
    )
    block_gzip: BlockGzipConfig = group(BlockGzipConfig)
    partitioning: PartitionConfig = group(PartitionConfig)
    storage_class: str = prop(
        "storage.class", Named(classes.STORAGES), default="s3", supported=("s3",), doc="The storage; only S3."
    )
    value_converter: str = prop(
        "value.converter",
        Named(classes.CONVERTERS),
        required=True,
        origin="Connect",
        shapes=True,
        doc="What record values are written in. Without one, that of the worker file.",
    )
    topics_dir: str = prop(
        "topics.dir", _PATH, default="topics", shapes=True, doc="What object names begin with; may be empty."
    )
    directory_delim: str = prop(
        "directory.delim", _DELIMITER, default="/", shapes=True, doc="Between the directories of an object name."
    )
    file_delim: str = prop(
        "file.delim", _DELIMITER, default="+", shapes=True, doc="Between topic, partition and offset of an object name."
    )
    pad_width: int = prop(
        "filename.offset.zero.pad.width",
        Int(0, 19),
        default="10",
        shapes=True,
        doc="Digits to which the offset in an object name is padded.",
    )
    bucket: str = prop("s3.bucket.name", Bucket(), required=True, doc="The bucket.")
    region: str = prop("s3.region", Text(), default="us-west-2", doc="The bucket's region.")
    store_url: str | None = prop("store.url", HttpUrl(), default=None, doc="Another S3 server than AWS's.")
    path_style: bool = prop(
        "s3.path.style.access.enabled", Bool(), default="true", doc="Whether the bucket is in the path of URLs."
    )
    part_size: int = prop(
        "s3.part.size", Int(5_242_880), default="26214400", doc="Bytes of a part; larger objects go up in parts."
    )
    part_retries: int = prop("s3.part.retries", Int(0), default="3", doc="How often a failed request is made again.")
    retry_backoff_ms: int = prop(
        "s3.retry.backoff.ms",
        Int(0, LONG_MAX),
        default="200",
        doc="The longest wait before the first retry; doubles with each, up to 24 hours, with full jitter.",
    )
    buffer_memory: int = prop(
        "buffer.memory",
        Int(1_048_576),
        default="67108864",
        origin="Penstock",
        doc="Bytes that the open files of a task hold in memory together; beyond it they wait on local disk. A "
        "quarter as many may be under way to S3, and up to all of it as two parts.",
    )
    credentials: str = prop(
        "s3.credentials.provider.class",
        Provider(classes.CREDENTIALS, (classes.SYSTEM_PROPERTIES_PROVIDER,)),
        default="default",
        refused={
            classes.SYSTEM_PROPERTIES_PROVIDER: "reads Java system properties, which do not exist here; "
            "set aws.access.key.id and aws.secret.access.key, or use `environment`"
        },
        doc="Where credentials come from: docs/s3.md.",
    )
    access_key_id: str = prop(
        "aws.access.key.id", Text(blank=True), default="", doc="Static credentials; both or neither."
    )
    secret_access_key: Secret = prop("aws.secret.access.key", Hidden(), default="", doc="The secret to it.")
    store: StoreConfig = group(StoreConfig)
    records: RecordsConfig = group(RecordsConfig)
    transform: TransformConfig = group(TransformConfig)
    errors: ErrorsConfig = group(ErrorsConfig)
    completeness: CompletenessConfig = group(CompletenessConfig)
    state_dir: str = prop(
        "state.dir",
        Matching(r"[^/\x00-\x1f][^\x00-\x1f]*[^/\x00-\x1f]|[^/\x00-\x1f]", "a path without slashes at its ends"),
        default="_penstock",
        origin="Penstock",
        doc="Where the state log is, in the sink's bucket: `<state.dir>/<name>/`.",
    )
    state_url: str | None = prop(
        "state.url", S3Url(), default=None, origin="Penstock", doc="Where the state log is, if not under `state.dir`."
    )
    existing_objects: str = prop(
        "s3.existing.objects",
        Choice(("fail", "overwrite")),
        default="fail",
        origin="Penstock",
        doc="What happens when an object that this connector did not write stands under one of its names.",
    )
    on_data_loss: str = prop(
        "on.data.loss",
        Choice(("fail", "skip")),
        default="fail",
        origin="Penstock",
        doc="What happens when Kafka deleted records before they were written: stop, or go on behind the gap.",
    )
    on_missing_state: Literal["fail", "resume", "reset"] = prop(
        "on.missing.state",
        Choice(("fail", "resume", "reset")),
        default="fail",
        origin="Penstock",
        doc="What happens when only our own mirrored group offsets are left: stop, go on from them, or begin anew.",
    )
    fencing: str = prop(
        "fencing",
        Choice(("on", "off")),
        default="on",
        origin="Penstock",
        doc="`off` allows a store without conditional writes, where two instances are not kept apart.",
    )
    checkpoint_entries: int = prop(
        "checkpoint.interval.entries",
        Int(1),
        default="100",
        origin="Penstock",
        doc="After how many entries of the state log its positions are summed up.",
    )
    cycle_max_records: int = prop(
        "cycle.max.records",
        Int(1, LONG_MAX),
        default="10000000",
        origin="Penstock",
        doc="The most offsets that one cycle reads of a topic-partition.",
    )
    cycle_interval_ms: int = prop(
        "cycle.interval.ms",
        Int(1),
        default="1000",
        origin="Penstock",
        doc="The pause before Kafka is asked again when there was nothing to do.",
    )
    given: Mapping[str, str] = field(default_factory=dict)
    converter_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    key_converter_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    provider_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = field(default=(), compare=False)
    places: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def shaping(self) -> dict[str, str]:
        """What the state log records: the texts of the properties that shape files. No secret is among them."""
        return dict(self.given)

    def with_shaping(self, recorded: Mapping[str, str]) -> SinkConfig:
        """This configuration with files shaped as recorded; what was not given then has its default.

        Raises:
            ConfigError: something was recorded that this version cannot do.
        """
        shaping = {name: each for name, each in declarations(SinkConfig).items() if each.shapes}
        own = {name for name in recorded if name.startswith(OWN_OPTIONS) or name in SHAPING_OPTIONS}
        unknown = recorded.keys() - {each.name for each in shaping.values()} - own
        problems = [_cannot(name, recorded[name]) for name in recorded if name in unknown]
        values = {name: each.default_value for name, each in shaping.items()}
        for name, each in shaping.items():
            if each.name in recorded:
                try:
                    values[name] = each.kind.parse(recorded[each.name])
                except ValueError:
                    problems.append(_cannot(each.name, recorded[each.name]))
                    continue
                if each.supported is not None and values[name] not in each.supported:
                    problems.append(_cannot(each.name, recorded[each.name]))
        if problems:
            raise ConfigError(problems)
        if (
            values["records.store_keys"] or values["records.envelope"]
        ):  # looked at only then, so any text may stand there otherwise
            values["records.key_converter"] = Named(classes.CONVERTERS).parse(
                values["records.key_converter"] or "string"
            )
        return replace(
            replaced(self, values),
            given=dict(recorded),
            converter_options=_recorded_options("value.converter.", self.converter_options, recorded),
            key_converter_options=_recorded_options("key.converter.", self.key_converter_options, recorded),
        )


def _recorded_options(prefix: str, now: Mapping[str, str], recorded: Mapping[str, str]) -> dict[str, str]:
    """A converter's options with those that shape files as they were recorded."""
    names = [name.removeprefix(prefix) for name in SHAPING_OPTIONS if name.startswith(prefix)]
    then = {name: recorded[prefix + name] for name in names if prefix + name in recorded}
    return {**{name: value for name, value in now.items() if name not in names}, **then}


def _cannot(name: str, text: str) -> str:
    return f"the state log records {name}=`{text}`, which this Penstock cannot do; run the version that recorded it"
