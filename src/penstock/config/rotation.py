"""When files close: the properties of rotation (reference s3-sink-connector 1.1, 1.2 and 2.2)."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.config.declare import prop
from penstock.config.kinds import LONG_MAX, Bool, Choice, Int

_BY_TIME = ("partitioner.class", ("time", "daily", "hourly", "fieldandtime"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationConfig:
    """What closes files besides `flush.size`."""

    interval_ms: int = prop(
        "rotate.interval.ms",
        Int(-1, LONG_MAX),
        default="-1",
        shapes=True,
        only_with=_BY_TIME,
        doc="Span of extracted time that the open files hold at most, in milliseconds; -1 for no limit.",
    )
    schedule_interval_ms: int = prop(
        "rotate.schedule.interval.ms",
        Int(-1, LONG_MAX),
        default="-1",
        shapes=True,
        aliases=("rotate.scheduled.interval.ms",),
        doc="Interval of the clock at which open files close, counted from midnight of `timezone`; -1 for none.",
    )
    on_partition_change: bool = prop(
        "rotate.file.on.partition.change",
        Bool(),
        default="true",
        shapes=True,
        doc="With `rotate.interval.ms`: whether a record of another encoded partition closes the open files.",
    )
    max_open_files: int = prop(
        "partitioner.max.open.files",
        Int(-1),
        default="-1",
        shapes=True,
        doc="Encoded partitions that may be open at once; one more closes all. -1 for no limit.",
    )
    schema_compatibility: str = prop(
        "schema.compatibility",
        Choice(("NONE", "BACKWARD", "FORWARD", "FULL", "UNION"), any_case=True),
        default="NONE",
        shapes=True,
        doc="What a changed schema does: with NONE it closes the files; with BACKWARD, FORWARD and FULL records that "
        "fit are projected to the file's schema; with UNION (Penstock's) interleaved versions share a file under the "
        "newest.",
    )
    flush_bytes: int = prop(
        "flush.bytes",
        Int(-1, LONG_MAX),
        default="-1",
        shapes=True,
        origin="Penstock",
        doc="Bytes of values (before compression) at which a file makes all open files of its topic-partition close; "
        "-1 for no limit.",
    )
    max_latency_ms: int = prop(
        "max.latency.ms",
        Int(-1, LONG_MAX),
        default="-1",
        shapes=True,
        origin="Penstock",
        doc="How long after its arrival a record is in a committed object at the latest, on idle topics too; -1 for no "
        "limit.",
    )
    flush_on_stop: bool = prop(
        "flush.on.stop",
        Bool(),
        default="false",
        origin="Penstock",
        doc="Whether what is open is closed and committed when the sink is stopped, and at the end of `--until-done`.",
    )
