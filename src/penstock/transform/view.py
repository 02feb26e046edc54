"""The view `records` and the tables of a transformation, in a Spark session of their own."""

from __future__ import annotations

import hashlib
import json
import logging
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql import types as spark
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from penstock.config.transforming import VIEW
from penstock.transform.plans import SOURCE
from penstock.transform.spec import NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    import pyarrow as pa

    from penstock.transform.spec import ReadSpec

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "32768",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
}
_HEADERS = spark.ArrayType(
    spark.StructType([spark.StructField("key", spark.StringType()), spark.StructField("value", spark.BinaryType())])
)
SPECIAL: dict[str, spark.DataType] = {
    "_key": spark.BinaryType(),
    "_headers": _HEADERS,
    "_topic": spark.StringType(),
    "_partition": spark.IntegerType(),
    "_offset": spark.LongType(),
    "_timestamp": spark.TimestampType(),
}
"""What the view has besides the fields of the value."""
NOW = "_now"
"""The plan's recorded time, in place of the clock."""
_BY_ENDING = {".parquet": "parquet", ".orc": "orc", ".csv": "csv", ".json": "json", ".jsonl": "json"}


def own_session(session: SparkSession, fields: spark.StructType) -> SparkSession:
    """A session with views and settings of its own, so that results do not depend on whoever else uses Spark."""
    own = session.newSession()
    logging.getLogger("SQLQueryContextLogger").disabled = True  # it would print a traceback beside our sentence
    for name, value in _SETTINGS.items():
        own.conf.set(name, value)
    if _alike(fields):
        own.conf.set("spark.sql.caseSensitive", "true")
    return own


def _alike(kind: spark.DataType) -> bool:
    """Whether fields of one record differ in the case of letters only."""
    if isinstance(kind, spark.ArrayType):
        return _alike(kind.elementType)
    if isinstance(kind, spark.MapType):
        return _alike(kind.valueType)
    if not isinstance(kind, spark.StructType):
        return False
    return len({each.name.lower() for each in kind}) < len(kind) or any(_alike(each.dataType) for each in kind)


def fields_of(kind: spark.DataType) -> spark.StructType:
    """The view's columns for values of a type: the fields of records, else one column `value`."""
    return kind if isinstance(kind, spark.StructType) else spark.StructType([spark.StructField("value", kind)])


def columns(fields: spark.StructType, needed: Collection[str] | None = None) -> spark.StructType:
    """The columns that are read, the number first. `needed`: those that the query looks at, None for all."""
    special = [spark.StructField(name, kind) for name, kind in SPECIAL.items()]
    chosen = [each for each in (*fields, *special) if needed is None or each.name in needed]
    return spark.StructType([spark.StructField(NUMBER, spark.LongType()), *chosen])


def source(session: SparkSession, columns: spark.StructType, spec: ReadSpec) -> DataFrame:
    """The rows of a job, a Spark partition for each share."""

    def penstock_records(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415 - in the task

        from penstock.transform.reading import rows  # noqa: PLC0415

        list(batches)
        task: Any = TaskContext.get()
        yield from rows(spec, task.partitionId(), task.taskAttemptId())

    assert penstock_records.__name__ == SOURCE  # noqa: S101 - plans are read by this name
    tasks = len(spec.shares)
    return map_arrow(session.range(0, tasks, 1, tasks), penstock_records, columns)


def given(session: SparkSession, columns: spark.StructType, rows: Sequence[pa.RecordBatch]) -> DataFrame:
    """Rows that are here already, in one Spark partition; few, or none."""

    def penstock_records(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        list(batches)
        yield from rows

    return map_arrow(session.range(0, 1, 1, 1), penstock_records, columns)


def map_arrow(rows: DataFrame, run: Callable[..., Any], columns: spark.StructType) -> DataFrame:
    """`DataFrame.mapInArrow`, which asks for pandas without using it."""
    made = UserDefinedFunction(run, returnType=columns, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    expression = made(*[rows[name] for name in rows.columns])
    return DataFrame(rows._jdf.mapInArrow(expression._jc, False, None), rows.sparkSession)  # noqa: SLF001


def show_records(read: DataFrame, fields: spark.StructType, now_ms: int) -> None:
    """Make the view `records` of rows that were read; columns that were not are null, as nobody looks at them."""
    wanted = [(each.name, each.dataType) for each in fields] + list(SPECIAL.items())
    shown = [
        read[f"`{name}`"] if name in read.columns else sql.lit(None).cast(kind).alias(name) for name, kind in wanted
    ]
    read.select(*shown, sql.timestamp_millis(sql.lit(now_ms)).alias(NOW)).createOrReplaceTempView(VIEW)


def table(session: SparkSession, text: str) -> DataFrame:
    """A table by its path or its name."""
    if "/" not in text and not text.endswith(tuple(_BY_ENDING)):
        return session.table(text)
    ending = next((kind for end, kind in _BY_ENDING.items() if text.rstrip("/").endswith(end)), "parquet")
    options = {"header": "true", "inferSchema": "true"} if ending == "csv" else {}
    return session.read.format(ending).options(**options).load(text)


def version(rows: DataFrame) -> str:
    """Names the files of a table with their sizes and times; empty where it is not made of files."""
    session: Any = rows.sparkSession
    jvm, found = session._jvm, []  # noqa: SLF001 - nothing public tells of files
    settings = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
    for name in sorted(rows.inputFiles()):
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(name))
        status = path.getFileSystem(settings).getFileStatus(path)
        found.append([name, status.getLen(), status.getModificationTime()])
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16] if found else ""
