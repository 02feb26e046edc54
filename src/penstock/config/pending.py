"""Properties of the connector that do nothing yet, each declared once, so that the reference is whole.

A value that would change something is refused by name. A property that comes to work moves into `SinkConfig`.
"""

from __future__ import annotations

from penstock.config.classes import EXTRACTORS, FORMATS
from penstock.config.declare import Property
from penstock.config.kinds import LONG_MAX, Bool, Choice, Int, Named, Text, Words

_BY_TIME = ("partitioner.class", ("time", "daily", "hourly"))

CUTS = (
    Property(
        name="rotate.interval.ms",
        kind=Int(-1, LONG_MAX),
        default="-1",
        shapes=True,
        supported=(-1,),
        doc="Span of extracted time that the open files hold at most, in milliseconds; -1 for no limit.",
    ),
    Property(
        name="rotate.schedule.interval.ms",
        kind=Int(-1, LONG_MAX),
        default="-1",
        shapes=True,
        supported=(-1,),
        aliases=("rotate.scheduled.interval.ms",),
        doc="Interval of the clock at which open files close, counted from midnight of `timezone`; -1 for none.",
    ),
    Property(
        name="rotate.file.on.partition.change",
        kind=Bool(),
        default="true",
        shapes=True,
        doc="With `rotate.interval.ms`: whether a record of another encoded partition closes the open files.",
    ),
    Property(
        name="partitioner.max.open.files",
        kind=Int(-1),
        default="-1",
        shapes=True,
        supported=(-1,),
        doc="Encoded partitions that may be open at once; one more closes all. -1 for no limit.",
    ),
    Property(
        name="partition.field.name",
        kind=Words(),
        default="",
        shapes=True,
        only_with=("partitioner.class", ("field",)),
        doc="Fields of the value, dotted where they are nested.",
    ),
    Property(
        name="partition.duration.ms",
        kind=Int(-1, LONG_MAX),
        default="-1",
        shapes=True,
        only_with=("partitioner.class", ("time",)),
        doc="Length of one time partition in milliseconds.",
    ),
    Property(
        name="path.format",
        kind=Text(blank=True),
        default="",
        shapes=True,
        only_with=("partitioner.class", ("time",)),
        doc="Pattern of time partitions, in Joda's letters.",
    ),
    Property(
        name="locale",
        kind=Text(blank=True),
        default="",
        shapes=True,
        only_with=_BY_TIME,
        doc="Language of names in `path.format`.",
    ),
    Property(
        name="timezone",
        kind=Text(blank=True),
        default="",
        shapes=True,
        only_with=_BY_TIME,
        doc="Zone of time partitions, and of the midnight of scheduled rotation.",
    ),
    Property(
        name="timestamp.extractor",
        kind=Named(EXTRACTORS),
        default="Wallclock",
        shapes=True,
        only_with=_BY_TIME,
        doc="Where the time of a record comes from: the clock, Kafka's timestamp, or a field.",
    ),
    Property(
        name="timestamp.field",
        kind=Text(),
        default="timestamp",
        shapes=True,
        only_with=("timestamp.extractor", ("recordfield",)),
        doc="That field, dotted where it is nested.",
    ),
)

CONTENTS = (
    Property(
        name="s3.schema.partition.affix.type",
        kind=Choice(("NONE", "PREFIX", "SUFFIX")),
        default="NONE",
        shapes=True,
        supported=("NONE",),
        doc="Whether `schema_name=NAME` is put before or after the encoded partition.",
    ),
    Property(
        name="allow.optional.map.keys",
        kind=Bool(),
        default="false",
        shapes=True,
        supported=(False,),
        doc="Whether a map with optional text keys becomes an Avro map.",
    ),
    Property(
        name="json.decimal.format",
        kind=Choice(("BASE64", "NUMERIC"), any_case=True),
        default="BASE64",
        shapes=True,
        supported=("BASE64",),
        doc="How decimals are written in JSON.",
    ),
    Property(
        name="parquet.codec",
        kind=Choice(("none", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4_raw")),
        default="snappy",
        shapes=True,
        only_with=("format.class", ("parquet",)),
        doc="Compression of Parquet files.",
    ),
    Property(
        name="store.kafka.keys",
        kind=Bool(),
        default="false",
        shapes=True,
        supported=(False,),
        doc="Whether keys are written to objects of their own.",
    ),
    Property(
        name="keys.format.class",
        kind=Named(FORMATS),
        default="avro",
        shapes=True,
        only_with=("store.kafka.keys", (True,)),
        doc="Format of those objects.",
    ),
    Property(
        name="store.kafka.headers",
        kind=Bool(),
        default="false",
        shapes=True,
        supported=(False,),
        doc="Whether headers are written to objects of their own.",
    ),
    Property(
        name="headers.format.class",
        kind=Named(FORMATS),
        default="avro",
        shapes=True,
        only_with=("store.kafka.headers", (True,)),
        doc="Format of those objects.",
    ),
    Property(
        name="report.null.values.to.dlq",
        kind=Bool(),
        default="true",
        only_with=("behavior.on.null.values", ("ignore",)),
        doc="Whether a record that is left out goes to the dead-letter topic.",
    ),
    Property(
        name="tombstone.encoded.partition",
        kind=Text(),
        default="tombstone",
        shapes=True,
        only_with=("behavior.on.null.values", ("write",)),
        doc="Encoded partition of tombstones.",
    ),
)

ERRORS = (
    Property(
        name="errors.log.enable",
        kind=Bool(),
        default="false",
        origin="Connect",
        only_with=("errors.tolerance", ("all",)),
        doc="Whether each such record is logged.",
    ),
    Property(
        name="errors.log.include.messages",
        kind=Bool(),
        default="false",
        origin="Connect",
        only_with=("errors.log.enable", (True,)),
        doc="Whether topic, partition, offset and time are part of that line.",
    ),
    Property(
        name="errors.deadletterqueue.topic.name",
        kind=Text(blank=True),
        default="",
        origin="Connect",
        supported=("",),
        doc="Topic that receives such records.",
    ),
    Property(
        name="errors.deadletterqueue.topic.replication.factor",
        kind=Int(1, 2**15 - 1),
        default="3",
        origin="Connect",
        only_with=("errors.tolerance", ("all",)),
        doc="Replicas of that topic where it is created.",
    ),
    Property(
        name="errors.deadletterqueue.context.headers.enable",
        kind=Bool(),
        default="false",
        origin="Connect",
        only_with=("errors.tolerance", ("all",)),
        doc="Whether headers there say what was wrong.",
    ),
)

PENDING = (*CUTS, *CONTENTS, *ERRORS)
