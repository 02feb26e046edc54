"""`penstock complete`: which time partitions have all their records."""

from __future__ import annotations

import datetime as dt
import time
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.known import connector_argument, known
from penstock.cli.options import command, dir_option, output_option, worker_option

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.cli.output import Output
    from penstock.completing import Completing


@command("complete", example="penstock complete s3-sink\npenstock complete my-sink.properties --mark --output json")
@connector_argument
@click.option(
    "--mark", is_flag=True, help="Record what is complete now and write its _SUCCESS objects; a running instance stops."
)
@worker_option
@output_option
@dir_option
def complete(connector: str, mark: bool, worker: Path | None, output: Output, directory: Path) -> None:
    """Show which time partitions are complete: all topic-partitions have passed their end.

    STATE is `recorded` where the state log says so, `complete` where it is so now, and `open` otherwise. A connector
    with complete.markers=true records and marks them itself.
    """
    from penstock.completing import Completing, all_of
    from penstock.pipeline import open_log, read_log

    config, kafka = known(connector, worker, directory)
    with all_of(kafka) as cluster:
        log = open_log(config) if mark else read_log(config)
        found = Completing.open(config, log, cluster, lambda: time.time_ns() // 1_000_000)
        if mark:
            found.advance()
        rows = _rows(found)
    facts: dict[str, Any] = {"connector": config.name, "lateness_ms": config.completeness.lateness_ms}
    output.tables({"time_partitions": rows}, facts=facts)


def _rows(found: Completing) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    verdicts = found.verdicts()
    for topic, periods in sorted(found.periods.items()):
        recorded, verdict = set(found.done(topic, periods)), verdicts.get(topic)
        until = None if verdict is None else verdict.until_ms
        for label, period in sorted(periods.items(), key=lambda each: (each[1].start, each[0])):
            is_now = until is not None and period.end <= until
            state = "recorded" if label in recorded else "complete" if is_now else "open"
            waits = [] if state != "open" or verdict is None else [str(tp) for tp in verdict.waits_for]
            rows.append(
                {
                    "topic": topic,
                    "time_partition": label,
                    "end": dt.datetime.fromtimestamp(period.end / 1000, dt.timezone.utc).isoformat(),
                    "state": state,
                    "waits_for": " ".join(waits),
                }
            )
    return rows
