"""Where records go: the properties of partitioners and extractors (reference s3-sink-connector 1.5 and 3)."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.config import classes
from penstock.config.declare import prop
from penstock.config.kinds import LONG_MAX, Bool, Choice, Int, Named, Text, Words

_TIMED = ("time", "daily", "hourly", "fieldandtime")
_BY_TIME = ("partitioner.class", _TIMED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionConfig:
    """The partitioner with its options."""

    partitioner: str = prop(
        "partitioner.class",
        Named(classes.PARTITIONERS, custom=True),
        default="default",
        shapes=True,
        doc="How records are divided into encoded partitions.",
    )
    fields: tuple[str, ...] = prop(
        "partition.field.name",
        Words(),
        default="",
        shapes=True,
        only_with=("partitioner.class", ("field", "fieldandtime")),
        doc="Fields of the value, dotted where they are nested; Penstock also takes `_key`, `_header.NAME`, "
        "`_partition` and `_topic`.",
    )
    field_names_in_path: bool = prop(
        "partition.field.format.path",
        Bool(),
        default="true",
        shapes=True,
        only_with=("partitioner.class", ("fieldandtime",)),
        doc="Whether fields stand in the path as `name=value`, or as the value alone.",
    )
    duration_ms: int = prop(
        "partition.duration.ms",
        Int(-1, LONG_MAX),
        default="-1",
        shapes=True,
        only_with=("partitioner.class", ("time", "fieldandtime")),
        doc="Length of one time partition in milliseconds.",
    )
    path_format: str = prop(
        "path.format",
        Text(blank=True),
        default="",
        shapes=True,
        only_with=("partitioner.class", ("time", "fieldandtime")),
        doc="Pattern of time partitions, in Joda's letters (docs/time.md).",
    )
    locale: str = prop(
        "locale",
        Text(blank=True),
        default="",
        shapes=True,
        only_with=_BY_TIME,
        doc="Language of names in `path.format`.",
    )
    timezone: str = prop(
        "timezone",
        Text(blank=True),
        default="",
        shapes=True,
        doc="Zone of time partitions, and of the midnight of scheduled rotation.",
    )
    extractor: str = prop(
        "timestamp.extractor",
        Named(classes.EXTRACTORS, custom=True),
        default="Wallclock",
        shapes=True,
        only_with=_BY_TIME,
        doc="Where the time of a record comes from: the clock, Kafka's timestamp, or a field.",
    )
    timestamp_field: str = prop(
        "timestamp.field",
        Text(),
        default="timestamp",
        shapes=True,
        only_with=("timestamp.extractor", ("recordfield",)),
        doc="That field, dotted where it is nested.",
    )
    schema_affix: str = prop(
        "s3.schema.partition.affix.type",
        Choice(("NONE", "PREFIX", "SUFFIX")),
        default="NONE",
        shapes=True,
        doc="Whether `schema_name=NAME` is put before or after the encoded partition.",
    )
    path_template: str = prop(
        "path.template",
        Text(blank=True),
        default="",
        shapes=True,
        origin="Penstock",
        doc="Another layout of object names, e.g. `{{topic}}/{{timestamp:yyyy/MM/dd}}/{{partition}}-{{start_offset}}` "
        "(docs/layouts.md); in place of `topics.dir`, the encoded partition and the file name.",
    )

    @property
    def is_timed(self) -> bool:
        """Whether the partitioner goes by the extracted time; one of the user's own may."""
        return self.partitioner in _TIMED or ":" in self.partitioner or "{{timestamp" in self.path_template
