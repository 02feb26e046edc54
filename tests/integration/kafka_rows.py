"""What `penstock.kafka` reads, without Spark: on the driver and in the tasks, as Spark asks it."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import CaseInsensitiveDict

from penstock.sources.kafka import KafkaSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.dev.settings import StackInfo

NAMES = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


def ours(
    stack: StackInfo, options: Mapping[str, str], filters: Iterable[Any] = (), *, whole: bool = False
) -> list[Any]:
    """The rows by our source, as tuples of `NAMES`; with `whole`, each task's rows."""
    source = KafkaSource(CaseInsensitiveDict({"kafka.bootstrap.servers": stack.bootstrap_servers, **options}))
    reader = source.reader(source.schema())
    rest = list(reader.pushFilters(list(filters)))
    assert rest == []
    tasks = [[row for batch in reader.read(part) for row in batch.to_pylist()] for part in reader.partitions()]
    return tasks if whole else in_order(tuple(row.get(name) for name in NAMES) for task in tasks for row in task)


def in_order(rows: Iterable[tuple[Any, ...]]) -> list[Any]:
    """By topic, partition and offset."""
    return sorted(rows, key=operator.itemgetter(2, 3, 4))
