"""Spark: the one place that knows its settings.

What the user gives, or what runs in this process already, is used as it is. Otherwise it is started for a driver that
never touches a record: a small heap, no UI, one slot per task, and without Spark SQL until somebody needs it.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import javaproperties

from penstock.errors import PenstockError
from penstock.java import find_java
from penstock.memory import give_back

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_LOGGING = Path(__file__).with_name("log4j2.properties")
_SETTINGS = {
    "spark.app.name": "penstock",
    "spark.driver.memory": "512m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "penstock.daemon",
}
# Freed buffers are kept for the next ones, as memory that is new to a process costs a page fault for every 4 KiB
# (decision 0014); in one arena, so that no thread keeps what another could use.
_MALLOC = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "8388608",
    "MALLOC_TRIM_THRESHOLD_": "33554432",
}
# A small young generation, which Spark's planning would else fill before it is collected: 90 MB less.
_JAVA_OPTIONS = f"-XX:+UseSerialGC -Xmn16m -Dlog4j2.configurationFile=file:{_LOGGING}"
# For a JVM that sees no record: 33 MB less. One that does is half as fast with it.
_QUICK_COMPILER = "-XX:TieredStopAtLevel=1"
_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_BUILDING = threading.Lock()  # connectors of one process share it
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def context(tasks: int, settings: Mapping[str, str], *, rows: bool = False) -> SparkContext:
    """The Spark of this process, or a new one with `settings` (any `spark.*` property) over our defaults.

    It has no Spark SQL, which no copying task needs: 56 MB and two CPU-seconds less. `tasks`: how many are to run at
    once where `spark.master` does not say otherwise. `rows`: records will go through Spark itself, not only past it.

    Raises:
        PenstockError: Spark does not start with these settings.
    """
    with _BUILDING:
        return _context(tasks, settings, rows=rows)


def session(tasks: int, settings: Mapping[str, str]) -> SparkSession:
    """The active session, or a new one on `context(tasks, settings, rows=True)`."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - half a second that a bad configuration need not wait

    with _BUILDING:
        active = SparkSession.getActiveSession()
        if active is not None:
            return active
        _context(tasks, settings, rows=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pyspark's own notes on optional packages
            return SparkSession.builder.getOrCreate()


def _context(tasks: int, settings: Mapping[str, str], *, rows: bool) -> SparkContext:
    from py4j.protocol import Py4JError, Py4JJavaError  # noqa: PLC0415 - as above
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    active = SparkContext._active_spark_context  # noqa: SLF001 - nothing public asks without starting one
    if active is not None:
        return active
    master = settings.get("spark.master", f"local[{tasks}]")
    within = master.startswith("local")
    _environment(settings.get("spark.pyspark.python", sys.executable), within=within)
    local = _LOOPBACK if within else {}
    workers = {f"spark.executorEnv.{name}": value for name, value in _MALLOC.items()}
    java = {"spark.driver.extraJavaOptions": _JAVA_OPTIONS if rows else f"{_JAVA_OPTIONS} {_QUICK_COMPILER}"}
    chosen = {**_SETTINGS, **java, **workers, **local, "spark.master": master, **settings}
    try:
        _start_java(chosen)
        made = SparkContext(conf=SparkConf().setAll(list(chosen.items())))
    except (Py4JError, PySparkException) as error:
        reason = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error
        msg = f"Spark does not start: {reason}; spark.master is `{master}`, check it and the other spark.* settings"
        raise PenstockError(msg) from error
    give_back()
    return made


def _start_java(settings: Mapping[str, str]) -> None:
    """Start the JVM with settings that `ps` does not show: pyspark alone would put all of them on its command line."""
    from pyspark import SparkContext  # noqa: PLC0415

    given = os.environ.get(_ARGUMENTS)
    # The file is made for its owner only, and gone as soon as the JVM has read it.
    with tempfile.NamedTemporaryFile("w", prefix="penstock-", suffix=".conf", encoding="latin-1") as file:
        file.write(javaproperties.dumps(dict(settings)))
        file.flush()
        own = f"--load-spark-defaults --properties-file {shlex.quote(file.name)}"
        os.environ[_ARGUMENTS] = f"{own} {given or 'pyspark-shell'}"
        try:
            SparkContext._ensure_initialized()  # noqa: SLF001 - nothing public starts it without a context
        finally:
            del os.environ[_ARGUMENTS]
            if given is not None:
                os.environ[_ARGUMENTS] = given


def _environment(python: str, *, within: bool) -> None:
    """What the JVM launcher and the Python workers read from the environment. `within`: Spark is in this process."""
    os.environ["JAVA_HOME"] = str(find_java())
    os.environ.setdefault("PYSPARK_PYTHON", python)
    if within:  # executors elsewhere must find the driver by its real name
        os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
        for name, value in _MALLOC.items():
            os.environ.setdefault(name, value)
