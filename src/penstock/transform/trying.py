"""What a transformation makes of the newest records, without writing anything."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from penstock.errors import ConfigError, PenstockError
from penstock.formats.read import plain
from penstock.kafka.cluster import Cluster
from penstock.model import PlannedRange, TopicPartition
from penstock.sources.ranges import existing
from penstock.transform.culprits import culprits
from penstock.transform.inputs import SCHEMA, as_query, found_type
from penstock.transform.job import told
from penstock.transform.reading import Reading
from penstock.transform.spec import NUMBER
from penstock.transform.view import SPECIAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from penstock.config import SinkConfig
    from penstock.transform.ledger import Page
    from penstock.transform.runner import Transformer

    Json = Any


@dataclass(frozen=True, slots=True)
class Trial:
    """A record, its fields, and what is made of it. `note`: why there is no result, where there is none."""

    tp: TopicPartition
    offset: int
    fields: Json
    result: Json
    note: str = ""


class _Pages(list["Page"]):
    """A ledger in memory."""

    def write(self, page: Page) -> None:
        """Keep it."""
        self.append(page)


def trials(transformer: Transformer, config: SinkConfig, limit: int, now_ms: int) -> list[Trial]:
    """The newest `limit` records, by topic, partition and offset.

    Raises:
        ConfigError: the query is wrong or refused, or there is nothing to try it on.
        PenstockError: Kafka or the registry does not answer, or a range cannot be read.
    """
    schema = config.transform.schema or found_type(config, transformer.kafka, "")
    if not schema:
        where = config.places.get(config.transform.name, config.name)
        msg = f"{where}: {config.transform.name}: there is no record yet to try it on"
        raise ConfigError([msg])
    config = config.with_shaping({**config.given, SCHEMA: schema})
    spec, pages = transformer.reading(config, _newest(transformer, config, limit)), _Pages()
    rows = list(Reading(spec, pages).batches(0))
    failed = next((page.fault for page in pages if page.fault is not None), None)
    if failed is not None:
        raise PenstockError(failed.message)
    results, failures = _results(transformer, config, rows, now_ms)
    fields = {row.pop(NUMBER): row for batch in rows for row in batch.to_pylist()}
    found = [
        _trial(page, row, fields, results, failures)
        for page in pages
        if page.records is not None
        for row in range(len(page.records))
    ]
    return sorted(found, key=lambda each: (each.tp, each.offset))[-limit:]


def _newest(transformer: Transformer, config: SinkConfig, limit: int) -> tuple[PlannedRange, ...]:
    with Cluster(transformer.kafka) as kafka:
        tps = existing(as_query(config, transformer.kafka), kafka)
        starts, ends = kafka.log_starts(tps), kafka.log_ends(tps)
    each = -(-limit // max(len(tps), 1))
    return tuple(PlannedRange(tp, max(starts[tp], ends[tp] - each), ends[tp]) for tp in tps)


def _results(
    transformer: Transformer, config: SinkConfig, rows: Sequence[pa.RecordBatch], now_ms: int
) -> tuple[dict[int, Json], dict[int, str]]:
    """(number -> result, number -> why the query fails)."""
    last = max((int(batch.column(NUMBER)[-1].as_py()) for batch in rows), default=-1)
    whole = PlannedRange(TopicPartition("", 0), 0, last + 1)

    def fails(part: PlannedRange) -> str | None:
        try:
            list(_collected(transformer, config, list(_within(rows, part, ())), now_ms))
        except (PySparkException, Py4JError) as error:
            return f"fails: {told(error)}"
        return None

    failures: dict[int, str] = {}
    while whole.start < whole.end:
        found, known = culprits(whole, fails, every=True)
        failures |= found
        if known <= whole.start:
            break
        whole = replace(whole, start=known)
    left = list(_within(rows, PlannedRange(whole.tp, 0, last + 1), tuple(failures)))
    return dict(_collected(transformer, config, left, now_ms)), failures


def _within(rows: Sequence[pa.RecordBatch], part: PlannedRange, without: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        numbers = batch.column(NUMBER).to_numpy()
        chosen = (numbers >= part.start) & (numbers < part.end) & ~np.isin(numbers, without)
        if chosen.any():
            yield batch.take(np.flatnonzero(chosen))


def _collected(
    transformer: Transformer, config: SinkConfig, rows: Sequence[pa.RecordBatch], now_ms: int
) -> Iterator[tuple[int, Json]]:
    for row in transformer.tried(config, rows, now_ms).collect():
        found = row.asDict(recursive=True)
        yield found.pop(NUMBER), plain(found)


def _trial(page: Page, row: int, fields: dict[int, Json], results: dict[int, Json], failures: dict[int, str]) -> Trial:
    records, number = page.records, page.first + row
    assert records is not None  # noqa: S101 - the caller looked
    note = ""
    if row in page.refused:
        note = page.refused[row].text
    elif page.asked is not None and not page.asked[row]:
        note = "has no value, so it is not asked about"
    elif number in failures:
        note = failures[number]
    elif number not in results:
        note = "is left out"
    shown = {name: value for name, value in fields.get(number, {}).items() if name not in SPECIAL}
    return Trial(records.tp, int(records.offsets[row]), plain(shown), results.get(number), note)
