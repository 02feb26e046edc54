"""Data sources for Spark: `penstock.kafka` reads topics, `penstock` committed objects. docs/spark.md shows both."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Make the formats `penstock.kafka` and `penstock` known to a session; may be called again.

    Switches on the push-down of filters to Python data sources, which Spark leaves off.
    """
    from penstock.sources.kafka import KafkaSource  # noqa: PLC0415 - PySpark takes half a second to import
    from penstock.sources.objects import ObjectSource  # noqa: PLC0415

    spark.conf.set(_PUSHDOWN, "true")
    spark.dataSource.register(KafkaSource)
    spark.dataSource.register(ObjectSource)
