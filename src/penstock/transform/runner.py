"""A connector's transformation on a Spark session: checked at the start, run once per plan."""

from __future__ import annotations

import pickle
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema, to_arrow_type

from penstock import parts
from penstock.converters import resolve
from penstock.pipeline import read_head
from penstock.sources.typed import Typed
from penstock.sources.values import Plain
from penstock.transform.inputs import SCHEMA, found_type, parsed
from penstock.transform.query import query, show_tables
from penstock.transform.spec import ReadSpec, WriteSpec
from penstock.transform.types import avro
from penstock.transform.view import columns, fields_of, map_arrow, own_session, source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from penstock.config import SinkConfig
    from penstock.kafka.settings import KafkaSettings
    from penstock.model import Plan, PlannedRange, Receipt
    from penstock.sources.values import Values
    from penstock.transform.query import Query

    Shares = tuple[tuple[PlannedRange, ...], ...]


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

    def check(self, config: SinkConfig) -> Checked:
        """What there is to know of a configuration before its first record.

        Raises:
            ConfigError: the query is wrong, or one under which order or exactly-once would be lost.
        """
        known = tuple(sorted(config.given.items()))
        if known not in self._checked:
            fields = fields_of(parsed(config, config.transform.schema))
            own = own_session(self.session(), fields)
            versions = show_tables(own, config)
            found = query(own, config, source(own, columns(fields), None), fields, 0)
            self._checked = {known: Checked(own, fields, found.needed, versions, found.columns)}
        return self._checked[known]

    def run(self, plan: Plan, shares: Shares, config: SinkConfig, seq: int) -> list[Receipt]:
        """One receipt per range, in any order. Raises what Spark raises."""
        checked, job = self.check(config), uuid.uuid4().hex
        made = self._query(checked, config, plan.now_ms, self._read_spec(checked, config, job, shares))
        spec = WriteSpec(job, config, self.kafka, seq, plan.now_ms, shares, avro(made.columns))
        rows = written(made.rows, spec).collect()
        return [pickle.loads(row.receipt) for row in rows]  # noqa: S301 - of our own tasks

    def prepare(self, config: SinkConfig) -> SinkConfig | None:
        """The configuration with what plans made with it must record; None while nothing shows the type of values.

        Raises:
            ConfigError: as `check` does.
            UnavailableError: what has to be asked does not answer.
        """
        if not config.transform.wanted:
            return config
        if not config.transform.schema:
            recorded = (read_head(config).config or {}).get(SCHEMA, "")
            text = found_type(config, self.kafka, recorded)
            if not text:
                return None
            config = config.with_shaping({**config.given, SCHEMA: text})
        checked = self.check(config)
        versions = {name: text for name, text in config.given.items() if name in checked.tables}
        if versions != checked.tables:
            config = config.with_shaping({**config.given, **checked.tables})
            self.check(config)
        return config

    def _query(self, checked: Checked, config: SinkConfig, now_ms: int, spec: ReadSpec) -> Query:
        read = source(checked.session, from_arrow_schema(spec.columns), spec)
        return query(checked.session, config, read, checked.fields, now_ms)

    def _read_spec(self, checked: Checked, config: SinkConfig, job: str, shares: Shares) -> ReadSpec:
        chosen = to_arrow_schema(columns(checked.fields, checked.needed), timezone="UTC")
        kept = bool(config.errors.topic or config.errors.directory)
        looked = parts.looked_at(config)
        return ReadSpec(
            job,
            self.kafka,
            values_of(config),
            shares,
            chosen,
            keys=looked["keys"],
            headers=looked["headers"],
            originals=kept,
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
