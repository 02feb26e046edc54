"""`penstock state`: what the state log says, and setting positions by hand."""

from __future__ import annotations

import datetime as dt
import functools
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.known import connector_argument, known
from penstock.cli.options import dir_option, output_option, subcommand, worker_option
from penstock.cli.places import at_offset
from penstock.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from penstock.audit.history import History
    from penstock.cli.output import Output
    from penstock.config import SinkConfig
    from penstock.kafka.settings import KafkaSettings
    from penstock.model import TopicPartition
    from penstock.resetting import Change
    from penstock.statelog import Entry


@dataclass(frozen=True, slots=True)
class Subject:
    """The connector that the subcommands are about."""

    config: SinkConfig
    kafka: KafkaSettings

    def history(self) -> History:
        """The whole log."""
        from penstock import stores
        from penstock.audit.logbook import read_log
        from penstock.store.s3 import store
        from penstock.stores import state_names

        return read_log(store(stores.of_state(self.config)), state_names(self.config))[0]


class _ShowsByDefault(click.Group):
    """`penstock state NAME` is short for `penstock state show NAME`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The subcommand of the first word, or `show` where that is none."""
        return super().resolve_command(ctx, args if args[0] in self.commands else ["show", *args])


@click.group(
    "state",
    cls=_ShowsByDefault,
    epilog="\b\nExample:\n  penstock state etc/quickstart-s3.properties\n"
    "  penstock state object s3-sink s3_topic-0@4\n"
    "  penstock state reset s3-sink --offset s3_topic-0=3 --yes",
)
def state() -> None:
    """Look into the state log of a connector, or set its positions; with a connector alone, it shows them."""


def _about_a_connector(function: Callable[..., None]) -> Callable[..., None]:
    """FILE-OR-NAME, `--worker` and `--dir`, handed on as a Subject."""

    @functools.wraps(function)
    def about(connector: str, worker: Path | None, directory: Path, **given: object) -> None:
        function(Subject(*known(connector, worker, directory)), **given)

    return connector_argument(worker_option(dir_option(about)))


@subcommand(state, "show", example="penstock state show s3-sink --output json")
@_about_a_connector
@output_option
def show(subject: Subject, output: Output) -> None:
    """Show where every topic-partition stands, and the plan that is still open."""
    from penstock.pipeline import read_head, state_url

    head = read_head(subject.config)
    rows: list[dict[str, Any]] = [
        {"topic": tp.topic, "partition": tp.partition, "position": at, "last_object": head.last_objects.get(tp)}
        for tp, at in sorted(head.positions.items())
    ]
    complete = [{"topic": topic, "complete_until": _time(at)} for topic, at in sorted(head.complete.items())]
    facts: dict[str, Any] = {
        "connector": subject.config.name,
        "state": state_url(subject.config),
        "entries": head.seq,
        "open_plan": None if head.open_intent is None else head.open_intent[0],
    }
    output.tables({"positions": rows, "complete": complete}, facts=facts)


@subcommand(state, "history", example="penstock state history s3-sink -n 10")
@_about_a_connector
@click.option("-n", "--entries", "most", type=click.IntRange(min=1), default=50, show_default=True, help="How many.")
@output_option
def history(subject: Subject, most: int, output: Output) -> None:
    """Show the newest entries: who wrote them, when, and what they did."""
    from penstock import stores
    from penstock.pipeline import read_head
    from penstock.statelog.history import entries
    from penstock.store.s3 import store
    from penstock.stores import state_names

    last = read_head(subject.config).seq
    found = entries(store(stores.of_state(subject.config)), state_names(subject.config), max(last - most, 0))
    rows: list[dict[str, Any]] = [
        {"entry": each.seq, "time": each.time, "host": each.host, "what": _deed(each)} for each in found
    ]
    output.tables({"entries": rows}, facts={"connector": subject.config.name})


@subcommand(state, "object", example="penstock state object s3-sink s3_topic-0@4")
@_about_a_connector
@click.argument("place", metavar="TOPIC-PARTITION@OFFSET")
@output_option
def holding_object(subject: Subject, place: str, output: Output) -> None:
    """Show which object holds a record."""
    from penstock.resetting import holding

    tp, offset = at_offset(place, "@")
    objects, sentence = holding(subject.history(), tp, offset)
    rows: list[dict[str, Any]] = [
        {"object": each.key, "start": each.start, "end": each.end, "records": each.records, "holds": each.view}
        for each in objects
    ]
    output.tables({"objects": rows}, facts={"note": sentence})


@subcommand(state, "reset", example="penstock state reset s3-sink --time 2024-06-01T00:00:00Z --topic s3_topic --yes")
@_about_a_connector
@click.option("--earliest", is_flag=True, help="To the first record that Kafka still has.")
@click.option(
    "--time", "time", metavar="ISO", help="To the first record of that time or later, e.g. 2024-06-01T00:00Z."
)
@click.option(
    "--offset", "offsets", multiple=True, metavar="TOPIC-PARTITION=OFFSET", help="To an offset; may be repeated."
)
@click.option("--topic", "topics", multiple=True, help="Only this topic; may be repeated. Default: all of them.")
@click.option("--yes", is_flag=True, help="Do it without asking.")
@output_option
def reset(
    subject: Subject,
    earliest: bool,
    time: str | None,
    offsets: tuple[str, ...],
    topics: tuple[str, ...],
    yes: bool,
    output: Output,
) -> None:
    """Set positions, as one more entry of the log; a running instance stops.

    Objects from the new position on do not count any more and are written anew; they are not deleted. A position never
    lies inside an object: it is moved to the object's start.
    """
    from penstock.kafka.cluster import Cluster
    from penstock.resetting import carry_out, changes, wanted_offsets

    if sum((earliest, time is not None, bool(offsets))) != 1:
        msg = "say where to: one of --earliest, --time and --offset"
        raise UsageError(msg)
    at, given = None if time is None else _instant(time), dict(at_offset(each, "=") for each in offsets)
    found = subject.history()
    tps = _chosen(found, given, topics)
    with Cluster(subject.kafka) as kafka:
        wanted = wanted_offsets(kafka, tps, given, at)
        planned = changes(found, wanted, kafka.log_starts(tps))
    output.tables({"changes": [_row(each) for each in planned]}, facts={"connector": subject.config.name})
    if not planned:
        click.echo("every position is there already", err=True)
        return
    _ask(planned, yes=yes)
    seq = carry_out(subject.config, planned)
    click.echo(f"recorded as entry {seq}", err=True)


def _ask(planned: Sequence[Change], *, yes: bool) -> None:
    """Go on only if the user wants it."""
    if yes:
        return
    taken = sum(len(each.taken_back) for each in planned)
    passed = sum(each.passed_over for each in planned)
    what = f"{taken} objects will not count any more, and {passed} offsets will never be written"
    if not sys.stdin.isatty():
        msg = f"{what}; say --yes to do it"
        raise UsageError(msg)
    click.confirm(f"{what}. Go on?", abort=True, err=True)


def _chosen(found: History, given: dict[TopicPartition, int], topics: tuple[str, ...]) -> list[TopicPartition]:
    """The topic-partitions that are reset. Raises UsageError for one that the log does not know."""
    positions = found.head.positions
    unknown = [str(tp) for tp in given if tp not in positions]
    unknown += [topic for topic in topics if topic not in {tp.topic for tp in positions}]
    if unknown:
        known_tps = ", ".join(map(str, sorted(positions))) or "nothing"
        msg = f"the state log does not know `{unknown[0]}`; it knows {known_tps}"
        raise UsageError(msg)
    if given:
        return sorted(given)
    return [tp for tp in sorted(positions) if not topics or tp.topic in topics]


def _row(change: Change) -> dict[str, Any]:
    return {
        "topic": change.tp.topic,
        "partition": change.tp.partition,
        "position": change.position,
        "asked": change.asked,
        "new_position": change.target,
        "objects_taken_back": len(change.taken_back),
        "records_taken_back": sum(each.records for each in change.taken_back if each.view == "value"),
        "offsets_passed_over": change.passed_over,
    }


def _instant(text: str) -> int:
    """Milliseconds since 1970 UTC; a time without a zone is refused."""
    try:
        found = dt.datetime.fromisoformat(text.removesuffix("Z") + "+00:00" if text.endswith("Z") else text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        msg = f"--time must be an ISO time with its zone, such as 2024-06-01T00:00:00Z; got `{text}`"
        raise UsageError(msg)
    return (found - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)) // dt.timedelta(milliseconds=1)


def _time(ms: int) -> str:
    return dt.datetime.fromtimestamp(ms / 1000, dt.timezone.utc).isoformat(timespec="seconds")


def _deed(entry: Entry) -> str:
    """What an entry did, in a few words."""
    done = []
    if entry.takeover is not None:
        done.append("took over" if entry.takeover.previous else "began")
    if entry.config is not None:
        done.append("recorded the configuration")
    objects = [each for commit in entry.commits for each in commit.objects]
    if objects:
        records = sum(each.records for each in objects if each.view == "value")
        done.append(f"committed {len(objects)} objects with {records} records")
    elif entry.commits:
        done.append("set positions: " + ", ".join(f"{each.tp}@{each.position}" for each in entry.commits))
    done += [f"reset {each.tp} to {each.position}" for each in entry.resets]
    done += [f"completed {each.topic} until {_time(each.until_ms)}" for each in entry.complete]
    if entry.intent is not None:
        done.append("planned " + ", ".join(f"{each.tp} [{each.start}, {each.end})" for each in entry.intent.ranges))
    if entry.closes is not None:
        done.append(f"closed plan {entry.closes}")
    return "; ".join(done) or "nothing"
