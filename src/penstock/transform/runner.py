"""A connector's transformation on a Spark session: checked at the start, run once per plan."""

from __future__ import annotations

import pickle
import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema, to_arrow_type

from penstock import parts
from penstock.config.transforming import is_version
from penstock.converters import resolve
from penstock.model import Plan
from penstock.pipeline import read_head
from penstock.sources.typed import Typed
from penstock.sources.values import Plain
from penstock.transform.inputs import SCHEMA, found_type, grown_type, parsed
from penstock.transform.query import query, show_tables
from penstock.transform.spec import ReadSpec, WriteSpec
from penstock.transform.types import avro
from penstock.transform.view import columns, fields_of, given, map_arrow, own_session, source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from penstock.config import SinkConfig
    from penstock.kafka.settings import KafkaSettings
    from penstock.model import PlannedRange, Receipt, TopicPartition
    from penstock.sources.values import Values
    from penstock.transform.query import Query

    Shares = tuple[tuple[PlannedRange, ...], ...]
    Refused = Mapping[TopicPartition, Mapping[int, str]]


_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Checked:
    """A configuration whose query is sound. `needed`: what it looks at of records; `tables`: which files tables are."""

    session: SparkSession
    fields: StructType
    needed: frozenset[str]
    tables: dict[str, str]
    result: StructType


@dataclass(slots=True)
class Transformer:
    """Runs plans with a transformation. `session`: any session; one of its own is made for each configuration."""

    session: Callable[[], SparkSession]
    kafka: KafkaSettings
    _checked: dict[tuple[tuple[str, str], ...], Checked] = field(default_factory=dict)
    _grown: list[str] = field(default_factory=list)
    _failing: dict[TopicPartition, dict[int, str]] = field(default_factory=dict)

    def prepare(self, config: SinkConfig) -> SinkConfig | None:
        """The configuration with what plans made with it must record; None while nothing shows the type of values.

        Raises:
            ConfigError: as `check` does.
            UnavailableError: what has to be asked does not answer.
        """
        schema = config.transform.schema
        if not schema:
            recorded = (read_head(config).config or {}).get(SCHEMA, "")
            schema = found_type(config, self.kafka, recorded)
        if self._grown:
            schema, self._grown = grown_type(config, self.kafka, [schema, *self._grown]), []
        if not schema:
            return None
        if schema != config.transform.schema:
            config = config.with_shaping({**config.given, SCHEMA: schema})
        tables = self.check(config).tables
        return config if tables.items() <= config.given.items() else config.with_shaping({**config.given, **tables})

    def check(self, config: SinkConfig) -> Checked:
        """What there is to know of a configuration before its first record.

        Raises:
            ConfigError: the query is wrong, or one under which order or exactly-once would be lost.
        """
        known = tuple(sorted((name, text) for name, text in config.given.items() if not is_version(name)))
        if known not in self._checked:
            fields = fields_of(parsed(config, config.transform.schema))
            own = own_session(self.session(), fields)
            versions = show_tables(own, config)
            found = query(own, config, given(own, columns(fields), ()), fields, 0)
            self._failing = {}
            self._checked = {known: Checked(own, fields, found.needed, versions, found.columns)}
        return self._checked[known]

    def are_tables_the_same(self, config: SinkConfig) -> bool:
        """Whether tables are the files that the configuration names; where not, they are looked at anew."""
        checked = self.check(config)
        same = not checked.tables or show_tables(checked.session, config).items() <= config.given.items()
        if not same:
            self._checked = {}
        return same

    def tried(self, config: SinkConfig, rows: Sequence[pa.RecordBatch], now_ms: int) -> DataFrame:
        """The query over rows that are here already, with all columns: the number first."""
        checked = self.check(config)
        read = given(checked.session, columns(checked.fields), rows)
        return query(checked.session, config, read, checked.fields, now_ms).rows

    def reading(self, config: SinkConfig, ranges: tuple[PlannedRange, ...]) -> ReadSpec:
        """How to read all columns of ranges, here and now."""
        every = to_arrow_schema(columns(self.check(config).fields), timezone="UTC")
        return ReadSpec("", self.kafka, values_of(config), (ranges,), every, grows=False)

    def run(self, plan: Plan, shares: Shares, config: SinkConfig, seq: int, refused: Refused) -> list[Receipt]:
        """One receipt per range, in any order. Raises what Spark raises.

        `refused`: records that Spark is not asked about, and why.
        """
        checked, job = self.check(config), uuid.uuid4().hex
        reading = replace(self._reading(checked, config, shares), job=job, refused=refused)
        made = self._query(checked, config, plan.now_ms, reading)
        spec = WriteSpec(job, config, self.kafka, seq, plan.now_ms, shares, avro(made.columns))
        rows = written(made.rows, spec).collect()
        receipts: list[Receipt] = [pickle.loads(row.receipt) for row in rows]  # noqa: S301 - of our own tasks
        self._grown += [each.grown for each in receipts if each.grown]
        return receipts

    def failing(self, plan: Plan) -> dict[TopicPartition, dict[int, str]]:
        """The records of a plan that the query is known to fail on: what is read again is not looked through again."""
        found = {}
        for each in plan.ranges:
            mine = {at: why for at, why in self._failing.get(each.tp, {}).items() if each.start <= at < each.end}
            if mine:
                found[each.tp] = mine
        return found

    def fails_on(self, tp: TopicPartition, offsets: Mapping[int, str]) -> None:
        """Remember records that the query fails on, and why."""
        kept = self._failing.setdefault(tp, {})
        kept.update(offsets)
        for at in sorted(kept)[:-_REMEMBERED]:
            del kept[at]

    def evaluate(self, planned: PlannedRange, config: SinkConfig, now_ms: int) -> None:
        """Run the query over a range, but for records that it is known to fail on, and write nothing.

        Raises what Spark raises.
        """
        checked, known = self.check(config), self.failing(Plan((planned,), now_ms))
        reading = replace(self._reading(checked, config, ((planned,),)), refused=known)
        made = self._query(checked, config, now_ms, reading)
        made.rows.write.format("noop").mode("overwrite").save()

    def _query(self, checked: Checked, config: SinkConfig, now_ms: int, reading: ReadSpec) -> Query:
        read = source(checked.session, from_arrow_schema(reading.columns), reading)
        return query(checked.session, config, read, checked.fields, now_ms)

    def _reading(self, checked: Checked, config: SinkConfig, shares: Shares) -> ReadSpec:
        chosen = to_arrow_schema(columns(checked.fields, checked.needed), timezone="UTC")
        looked, errors = parts.looked_at(config), config.errors
        return ReadSpec(
            "",
            self.kafka,
            values_of(config),
            shares,
            chosen,
            keys=looked["keys"],
            headers=looked["headers"],
            originals=bool(errors.topic or errors.directory),
            grows=SCHEMA not in config.places,
        )


def values_of(config: SinkConfig) -> Values:
    """How values are decoded."""
    if config.value_converter == "bytes":
        return Plain()
    name = resolve(config.value_converter, config.converter_options)
    kind = to_arrow_type(parsed(config, config.transform.schema), timezone="UTC")
    return Typed(kind, name, config.converter_options, tolerant=True)


def written(rows: DataFrame, spec: WriteSpec) -> DataFrame:
    """The receipts of rows that are written in the tasks that read them."""

    def penstock_files(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415 - in the task

        from penstock.transform.writing import receipts  # noqa: PLC0415

        task: Any = TaskContext.get()
        yield from receipts(spec, batches, task.partitionId(), task.taskAttemptId())

    return map_arrow(rows, penstock_files, from_arrow_schema(_receipts()))


def _receipts() -> pa.Schema:
    from penstock.transform.writing import RECEIPTS  # noqa: PLC0415 - numba

    return RECEIPTS
