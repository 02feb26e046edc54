"""The user's query, or function, over the view: checked, and made to a plan whose rows say which record they are."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql import types as spark

from penstock.config.transforming import TABLES, VERSION, VIEW, tables
from penstock.errors import ConfigError
from penstock.sources.edge import words
from penstock.transform.plans import RefusedPlan, carried, check_physical, items
from penstock.transform.types import unwritable
from penstock.transform.view import NOW, SPECIAL, show_records, table, version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from penstock.config import SinkConfig


@dataclass(frozen=True, slots=True)
class Query:
    """A checked query.

    `rows`: the number of the record first, then `columns`. `needed`: which columns of the records it looks at.
    """

    rows: DataFrame
    columns: spark.StructType
    needed: frozenset[str]


def show_tables(session: SparkSession, config: SinkConfig) -> dict[str, str]:
    """Make a view of each table; the names of their properties and which files they are.

    Raises:
        ConfigError: one cannot be read, or is not made of files.
    """
    versions, problems = {}, []
    for name, text in tables(config.given).items():
        where = config.places.get(TABLES + name, config.name)
        try:
            rows = table(session, text)
            found = version(rows)
            sql.broadcast(rows).createOrReplaceTempView(name)
        except (PySparkException, Py4JError) as error:
            problems.append(f"{where}: {TABLES}{name}=`{text}` cannot be read: {words(error)}")
            continue
        if not found:
            problems.append(f"{where}: {TABLES}{name}=`{text}` holds no files, so nobody can say later what was in it")
        versions[f"{TABLES}{name}{VERSION}"] = found
    if problems:
        raise ConfigError(problems)
    return versions


def query(session: SparkSession, config: SinkConfig, read: DataFrame, fields: spark.StructType, now_ms: int) -> Query:
    """The query over rows that were read; the tables are there.

    Raises:
        ConfigError: it is wrong, or such that order or exactly-once would be lost.
    """
    show_records(read, fields, now_ms)
    where = f"{config.places.get(config.transform.name, config.name)}: {config.transform.name}"
    try:
        asked = _asked(session, config, where)
        kept = [each for each in asked.schema if each.name not in (*SPECIAL, NOW)]
        why = unwritable(spark.StructType(kept), config.format_class)
        if why is not None:
            raise ConfigError([f"{where}: its result {why}"])
        rows = _with_number(session, asked, read)
        check_physical(_execution(rows).executedPlan())
    except RefusedPlan as refused:
        raise ConfigError([f"{where}: it {refused}"]) from refused
    except (PySparkException, Py4JError) as error:
        raise ConfigError([f"{where}: {words(error)}"]) from error
    return Query(rows, spark.StructType(kept), _needed(rows, read))


def _asked(session: SparkSession, config: SinkConfig, where: str) -> DataFrame:
    """What the user asks for, as Spark has analyzed it."""
    text = config.transform.sql
    if text:
        _java(session).sessionState().sqlParser().parseQuery(text)  # statements would be run at once
        return session.sql(text)
    made = _called(config.transform.function, session.table(VIEW), where)
    if not isinstance(made, DataFrame):
        raise ConfigError([f"{where}: the function must give a DataFrame, it gave `{type(made).__name__}`"])
    return made


def _called(name: str, rows: DataFrame, where: str) -> object:
    module, _, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ConfigError([f"{where}=`{name}` cannot be imported: {error}"]) from error
    try:
        return found(rows)
    except (PySparkException, Py4JError):
        raise
    except Exception as error:  # the user's code may raise anything
        raise ConfigError([f"{where}: the function failed: {type(error).__name__}: {error}"]) from error


def _with_number(session: SparkSession, asked: DataFrame, read: DataFrame) -> DataFrame:
    jvm: Any = session._jvm  # noqa: SLF001 - nothing public shows plans
    number = items(_execution(read).analyzed().output())[0]
    plan = _execution(asked).analyzed()
    kept = [each for each in items(plan.output()) if each.name() not in (*SPECIAL, NOW)]
    wanted = jvm.PythonUtils.toSeq([number, *kept])
    made = jvm.org.apache.spark.sql.catalyst.plans.logical.Project(wanted, carried(jvm, plan, number))
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(_java(session), made), session)


def _needed(rows: DataFrame, read: DataFrame) -> frozenset[str]:
    """The columns of `read` that the optimized plan still looks at."""
    own: Mapping[int, str] = {each.exprId().id(): each.name() for each in items(_execution(read).analyzed().output())}
    found: set[str] = set()
    pending = [_execution(rows).optimizedPlan()]
    if pending[0].nodeName() == "MapInArrow":
        return frozenset(own.values())
    while pending:
        node = pending.pop()
        if node.nodeName() == "MapInArrow":
            continue
        found.update(own[each.exprId().id()] for each in items(node.references().toSeq()) if each.exprId().id() in own)
        pending += [*items(node.children()), *items(node.subqueries())]
    return frozenset(found)


def _execution(rows: DataFrame) -> Any:  # noqa: ANN401 - an object of the JVM
    return rows._jdf.queryExecution()  # noqa: SLF001


def _java(session: SparkSession) -> Any:  # noqa: ANN401 - an object of the JVM
    return session._jsparkSession  # noqa: SLF001
