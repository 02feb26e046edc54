"""The Spark session: the one place that knows Spark's settings.

A session that the user gives, or one that is active, is used as it is. Otherwise one is built for a driver that never
touches a record: a small heap, no UI, one slot per task.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.java import find_java

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

_LOGGING = Path(__file__).with_name("log4j2.properties")
_SETTINGS = {
    "spark.app.name": "penstock",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": (
        f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile=file:{_LOGGING}"
    ),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.python.worker.reuse": "true",
}
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def session(tasks: int, settings: Mapping[str, str]) -> SparkSession:
    """The active session, or a new one with `settings` (any `spark.*` property) over our defaults.

    `tasks`: how many Spark tasks are to run at once where `spark.master` does not say otherwise.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - half a second that a bad configuration need not wait

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    master = settings.get("spark.master", f"local[{tasks}]")
    _environment()
    builder = SparkSession.builder
    local = _LOOPBACK if master.startswith("local") else {}
    for name, value in {**_SETTINGS, **local, "spark.master": master, **settings}.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's own notes on optional packages
        return builder.getOrCreate()


def _environment() -> None:
    """What the JVM launcher and the Python workers read from the environment."""
    os.environ["JAVA_HOME"] = str(find_java())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
