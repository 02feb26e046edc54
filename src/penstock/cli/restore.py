"""`penstock restore`: what a connector has committed, back into Kafka."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.options import command, dir_option, output_option, worker_option
from penstock.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.cli.output import Json, Output
    from penstock.config import SinkConfig
    from penstock.model import TopicPartition
    from penstock.restore.offsets import Row
    from penstock.restore.plan import Carried, Leniency
    from penstock.restore.prepare import Planned
    from penstock.restore.readers import ByShape
    from penstock.restore.run import Limits
    from penstock.restore.schema_ids import SchemaIds
    from penstock.restore.selection import Selection
    from penstock.restore.target import Place, Target

_FILE = click.Path(path_type=Path, dir_okay=False)
_EXAMPLE = """\
penstock restore etc/quickstart-s3.properties --topic s3_topic --to-topic s3_topic_again --create-topic
penstock restore my-sink.properties --to-kafka other.properties --from-time 2024-05-01T00:00:00Z --rate 5000"""


def _edges(_context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> object:
    from penstock.restore.selection import edges

    try:
        return edges(texts)
    except ValueError as error:
        msg = f"--{(option.name or '').replace('_', '-')} {error}"
        raise UsageError(msg) from None


def _time(_context: click.Context, option: click.Parameter, text: str | None) -> int | None:
    """Milliseconds since 1970, or an ISO time; without a zone it is UTC."""
    if text is None or text.isdecimal():
        return None if text is None else int(text)
    try:
        time = dt.datetime.fromisoformat(text.removesuffix("Z") + ("+00:00" if text.endswith("Z") else ""))
    except ValueError:
        name = (option.name or "").replace("_", "-")
        msg = f"--{name} must be a time such as 2024-05-01T00:00:00Z, or milliseconds since 1970, got `{text}`"
        raise UsageError(msg) from None
    return int((time if time.tzinfo else time.replace(tzinfo=dt.timezone.utc)).timestamp() * 1000)


@command("restore", example=_EXAMPLE)
@click.argument("connector", metavar="FILE|NAME")
@click.option("--topic", "topics", multiple=True, help="Only this topic; may be given several times.")
@click.option("--to-topic", help="Another topic than the one that the records came from.")
@click.option(
    "--from-offset",
    multiple=True,
    callback=_edges,
    metavar="[TP=]OFFSET",
    help="From this old offset on: of TOPIC-PARTITION=OFFSET, or of all.",
)
@click.option(
    "--to-offset",
    multiple=True,
    callback=_edges,
    metavar="[TP=]OFFSET",
    help="Up to this old offset, which is left out.",
)
@click.option("--from-time", callback=_time, help="Records of this time (ISO, or ms since 1970) and later ones.")
@click.option("--to-time", callback=_time, help="Records before this time.")
@click.option("--whole-objects", is_flag=True, help="Where an edge lies within an object that cannot be cut, take all.")
@click.option("--unordered", is_flag=True, help="Accept that records of overlapping objects lose their order.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="At most so many records a second.")
@click.option("--to-kafka", type=_FILE, help="Properties of another Kafka (bootstrap.servers, ...) to restore to.")
@click.option("--create-topic", is_flag=True, help="Create a topic that is not there, with the partitions it needs.")
@click.option("--append", is_flag=True, help="Write behind the records that the topic holds already.")
@click.option("--register-schemas", is_flag=True, help="Register schemas that the Schema Registry does not have.")
@click.option("--name", help="The restore's name, under which it goes on; default: connector, and the new topic.")
@click.option(
    "--transaction-records",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="Most records of a transaction.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be restored.")
@worker_option
@output_option
@dir_option
def restore(  # noqa: PLR0913 - one parameter per option
    connector: str,
    topics: tuple[str, ...],
    to_topic: str | None,
    from_offset: dict[object, int],
    to_offset: dict[object, int],
    from_time: int | None,
    to_time: int | None,
    whole_objects: bool,
    unordered: bool,
    rate: float | None,
    to_kafka: Path | None,
    create_topic: bool,
    append: bool,
    register_schemas: bool,
    name: str | None,
    transaction_records: int,
    dry_run: bool,
    worker: Path | None,
    output: Output,
    directory: Path,
) -> None:
    """Put the objects that a connector has committed back into Kafka, exactly once.

    Records come back in their order, to the partition that they were in, with key, headers and time where these are
    stored. The same command again goes on where a killed one stood, or where the connector has committed more
    since. The map from old offsets to new ones is printed at the end.
    """
    from penstock.restore.plan import Leniency
    from penstock.restore.run import Limits
    from penstock.restore.selection import Selection
    from penstock.restore.target import Target

    selection = Selection(topics, from_offset, to_offset, from_time, to_time)  # type: ignore[arg-type] # made by _edges
    config = _config(connector, worker, directory)
    place, registry = _places(config, to_kafka or worker, directory)
    opened = _Opened(config, selection, to_topic, Leniency(whole_objects, unordered), registry, register_schemas)
    called = name or (f"{config.name}-{to_topic}" if to_topic else config.name)
    with Target(place, called) as target:
        if dry_run:
            output.tables({"topic_partitions": _shown(opened.plan)}, facts={"restore": called})
            return
        limits = Limits(records=transaction_records, rate=rate)
        made = opened.run(target, limits, create=create_topic, append=append)
    records = sum(row.records for rows in made.values() for row in rows)
    shown = [row for each in opened.plan for row in _rows(each.tp, each.to, made[each.tp])]
    output.tables({"offsets": shown}, facts={"restore": called, "records": records})


@dataclass(slots=True)
class _Opened:
    """A connector's log as far as this restore is concerned; what does not come back has been said."""

    config: SinkConfig
    selection: Selection
    to_topic: str | None
    lenient: Leniency
    registry: Mapping[str, str]
    may_register: bool
    plan: list[Planned] = field(init=False)
    readers: ByShape = field(init=False)

    def __post_init__(self) -> None:
        from penstock import stores
        from penstock.restore.history import read
        from penstock.restore.prepare import losses, planned
        from penstock.restore.readers import ByShape
        from penstock.statelog.history import entries
        from penstock.store.s3 import store

        history = read(
            entries(store(stores.of_state(self.config)), stores.state_names(self.config)),
            self.selection.covers,
            self._carried,
        )
        self.readers = ByShape(self.config, history.shapes, self._ids)
        self.plan = planned(history, self.selection, self.to_topic, self.lenient, self.config.name)
        for loss in losses(self.plan, history.rejected, self.readers.changed):
            click.echo(f"warning: {loss}", err=True)

    def run(self, target: Target, limits: Limits, *, create: bool, append: bool) -> dict[TopicPartition, list[Row]]:
        """Restore everything that is left; the whole map of offsets, earlier runs' rows included."""
        from penstock import stores
        from penstock.cli.progress import shown
        from penstock.restore.maps import Maps
        from penstock.restore.prepare import check_partitions, new, works
        from penstock.restore.reading import Reading
        from penstock.restore.run import Restore
        from penstock.store.s3 import store

        check_partitions(self.plan, target, create=create)
        for topic in sorted({each.to.topic for each in self.plan}):
            if target.stamps_itself(topic):
                click.echo(
                    f"warning: topic `{topic}` has message.timestamp.type=LogAppendTime: times are lost", err=True
                )
        target.take_over()
        work = works(self.plan, target, self.selection.text, append=append)
        maps = Maps(store(stores.of_state(self.config)), stores.state_names(self.config), target.name)
        going = Restore(target, Reading(store(stores.of_sink(self.config)), self.readers), maps, limits)
        going.begin(new(work))
        with shown(going.words):
            positions = going.run(work)
        click.echo(f"{going.sent} records restored", err=True)
        return {tp: maps.rows(position) for tp, position in positions.items()}

    def _carried(self, recorded: Mapping[str, str]) -> Carried:
        from penstock.restore.readers import carried

        return carried(self.config.with_shaping(recorded)) if recorded else frozenset()

    def _ids(self) -> SchemaIds:
        from penstock.registry import Registry
        from penstock.restore.schema_ids import SchemaIds

        renamed = {each.tp.topic: each.to.topic for each in self.plan}
        return SchemaIds(Registry.of(self.registry, "value.converter"), renamed, self.may_register)


def _config(connector: str, worker: Path | None, directory: Path) -> SinkConfig:
    """The configuration of a connector's file, or of one that the stack's worker hosts."""
    from penstock.config.load import load_sink
    from penstock.config.properties import of_mapping, read
    from penstock.config.variables import resolve
    from penstock.dev import stack
    from penstock.worker import saved

    file = Path(connector)
    if file.is_file():
        given = read(file)
    else:
        hosted = {each.name: each for each in saved.read_all(directory / "worker" / "connectors")}
        if connector not in hosted:
            names = ", ".join(f"`{name}`" for name in hosted) or "none"
            msg = f"`{connector}` is neither a connector's file nor loaded here (there are: {names})"
            raise UsageError(msg)
        given = of_mapping(hosted[connector].config, f"connector {connector}")
    info = stack.load_info(directory) if worker is None else None
    return load_sink(
        resolve(given, os.environ),
        None if worker is None else resolve(read(worker), os.environ),
        None if info is None else info.as_json(),
    )


def _places(config: SinkConfig, file: Path | None, directory: Path) -> tuple[Place, Mapping[str, str]]:
    """The Kafka to restore to, and the options of the registry that belongs to it: its own, or the connector's."""
    from penstock.cli.kafka_edge import connection
    from penstock.restore.target import Place

    found = connection(file, directory)
    url = "schema.registry.url"
    own = next((each for each in (config.converter_options, config.key_converter_options) if url in each), {})
    named = found.registry if file is not None and url in found.registry else own or found.registry
    return Place(found.servers, found.kafka), named


def _shown(plan: Sequence[Planned]) -> list[dict[str, Json]]:
    return [
        {
            "topic_partition": str(each.tp),
            "to": str(each.to),
            "start": each.segments[0].start if each.segments else None,
            "end": each.segments[-1].end if each.segments else None,
            "records": each.records,
            "bytes": sum(segment.size for segment in each.segments),
        }
        for each in plan
    ]


def _rows(tp: TopicPartition, to: TopicPartition, rows: Sequence[Row]) -> list[dict[str, Json]]:
    return [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "old_start": row.old_start,
            "old_end": row.old_end,
            "to_topic": to.topic,
            "new_start": row.new_start,
            "new_end": row.new_end,
            "records": row.records,
            "exact": "yes" if row.is_exact else "no",
        }
        for row in rows
    ]
