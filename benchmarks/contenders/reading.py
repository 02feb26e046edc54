"""A DataFrame read to the end, each row thrown away. Both sessions run it, so nothing of Penstock is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation
from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def to_noop(job: dict[str, Any], spark: SparkSession) -> dict[str, Any]:
    """Read `format` with `options` (and `path`), apply each of `selects`; how many rows reached Spark's noop sink."""
    rows = spark.read.format(job["format"]).options(**job["options"]).load(job.get("path"))
    for expressions in job["selects"]:
        rows = rows.selectExpr(*expressions)
    seen = Observation()
    rows.observe(seen, f.count(f.lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
    return {"records": seen.get["rows"]}
