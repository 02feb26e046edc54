"""`spark.read.format("penstock.kafka")`: topics as DataFrames, with the options and columns of Spark's own source."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from penstock.errors import ConfigError
from penstock.kafka.cluster import Cluster
from penstock.model import PlannedRange
from penstock.sources.columns import schema as columns
from penstock.sources.edge import plainly
from penstock.sources.filters import accept, bounds, passes
from penstock.sources.options import FORMAT, parse
from penstock.sources.ranges import batch_ranges, existing, pieces
from penstock.sources.reading import Reading
from penstock.sources.shares import Share
from penstock.sources.stream import KafkaStreamReader
from penstock.sources.values import Plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from penstock.sources.filters import Condition
    from penstock.sources.options import KafkaOptions
    from penstock.sources.values import Values

_FILTERED = ("topic", "partition", "offset", "timestamp")


class KafkaSource(DataSource):
    """The data source; Spark makes one for each query."""

    @classmethod
    def name(cls) -> str:
        """What `format` takes."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns of Spark's own source; `value` may be of a type."""
        with plainly():
            options = parse(self.options, "either")
            return from_arrow_schema(columns(_values(options).type, headers=options.headers))

    def reader(self, schema: StructType) -> KafkaBatchReader:
        """What reads a batch."""
        with plainly():
            options = parse(self.options, "batch")
            return KafkaBatchReader(options, _reading(options, schema))

    def streamReader(self, schema: StructType) -> KafkaStreamReader:  # noqa: N802 - Spark's name
        """What reads a stream."""
        with plainly():
            options = parse(self.options, "stream")
            return KafkaStreamReader(options, _reading(options, schema))


class KafkaBatchReader(DataSourceReader):
    """Reads what is in Kafka when the query is planned."""

    def __init__(self, options: KafkaOptions, reading: Reading) -> None:
        self.options = options
        self.reading = reading

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take over what is decided by topic, partition, offset and timestamp."""
        conditions, rest = accept(filters, _FILTERED)
        self.reading = replace(self.reading, conditions=conditions)
        return rest

    def partitions(self) -> list[Share]:
        """Ask Kafka where things are."""
        with plainly(), Cluster(self.options.kafka) as kafka:
            conditions = self.reading.conditions
            every = existing(self.options, kafka)
            ranges = batch_ranges(self.options, kafka, every)
            wanted = [r for r in ranges if passes(conditions, {"topic": r.tp.topic, "partition": r.tp.partition})]
            return [Share(each) for each in pieces(self.options, _narrowed(wanted, conditions, kafka))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In the task: its rows."""
        with plainly():
            yield from self.reading.batches(partition.ranges if isinstance(partition, Share) else ())


def _reading(options: KafkaOptions, schema: StructType) -> Reading:
    """How to read into the columns that `KafkaSource.schema` gave, or that the user did.

    Raises:
        ConfigError: those of the user are others.
    """
    target = to_arrow_schema(schema, timezone="UTC")
    kind = target.field("value").type if "value" in target.names and options.converter != "bytes" else pa.binary()
    if target != columns(kind, headers=options.headers):
        msg = f"{FORMAT}: its columns are fixed; take out `.schema(...)`, which does not name them as they are"
        raise ConfigError([msg])
    return Reading(options.kafka, _values(options, kind), target, skip_lost=not options.fail_on_data_loss)


def _values(options: KafkaOptions, kind: pa.DataType | None = None) -> Values:
    """What the column `value` is; `kind`: its type where that is known."""
    if options.converter == "bytes":
        return Plain()
    from penstock.sources import discovery  # noqa: PLC0415 - binary values need not wait for numba

    return discovery.values_of(options) if kind is None else discovery.typed(options, kind)


def _narrowed(ranges: list[PlannedRange], conditions: tuple[Condition, ...], kafka: Cluster) -> list[PlannedRange]:
    """The ranges without what cannot pass: offsets outside of their bounds, and all before the first record in time."""
    first, last = bounds(conditions, "offset")
    since_ms = -(-bounds(conditions, "timestamp")[0] // 1000)
    times = {each.tp: since_ms for each in ranges if since_ms > 0}
    begun = kafka.offsets_for_times(times) if times else {}
    found = []
    for each in ranges:
        late = begun.get(each.tp, each.start)
        start, end = max(each.start, first, each.end if late is None else late), min(each.end, last)
        if start < end:
            found.append(PlannedRange(each.tp, start, end))
    return found
