"""Spark Structured Streaming, Kafka source to file sink on S3 (S3A), once per job: what Spark's own guide shows.

Runs in a venv of its own (`benchmarks/spark_peer.py`), because Spark's Kafka connector is published for an older Spark
than ours.
"""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro

from benchmarks.contenders.answering import answer
from benchmarks.contenders.reading import to_noop
from penstock.java import find_java

_JSON_TYPE = "id long, country string, amount double, note string"


def _session() -> SparkSession:
    os.environ["JAVA_HOME"] = str(find_java())
    settings = {
        "spark.master": f"local[{os.environ['BENCH_TASKS']}]",
        "spark.jars": os.environ["BENCH_JARS"],
        "spark.driver.memory": "2g",  # as Confluent's worker had
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.hadoop.fs.s3a.endpoint": os.environ["BENCH_STORE_URL"],
        "spark.hadoop.fs.s3a.endpoint.region": os.environ["BENCH_REGION"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.access.key": os.environ["BENCH_ACCESS_KEY_ID"],
        "spark.hadoop.fs.s3a.secret.key": os.environ["BENCH_SECRET_ACCESS_KEY"],
        "spark.hadoop.fs.s3a.change.detection.mode": "none",
    }
    builder = SparkSession.builder.appName("structured-streaming")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _rows(job: dict[str, Any], source: DataFrame) -> DataFrame:
    """The records as the file sink wants them."""
    if job["output"] == "text":
        return source.select(f.col("value").cast("string"))
    if job["input"] == "avro":
        body = f.expr("substring(value, 6, length(value) - 5)")
        decoded: Column = from_avro(body, json.dumps(job["schema"]))
    else:
        decoded = f.from_json(f.col("value").cast("string"), _JSON_TYPE, {"mode": "FAILFAST"})
    rows = source.select("timestamp", decoded.alias("record")).select("timestamp", "record.*")
    if job["by"] == "hour":
        return rows.withColumn("hour", f.date_format("timestamp", "yyyy-MM-dd-HH")).drop("timestamp")
    if job["by"]:
        return rows.withColumn("label", f.col(job["by"])).drop("timestamp")  # the field stays in the file
    return rows.drop("timestamp")


def _run(spark: SparkSession, job: dict[str, Any]) -> dict[str, Any]:
    source = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", job["bootstrap"])
        .option("subscribe", job["topic"])
        .option("startingOffsets", "earliest")
        .load()
    )
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = (
            _rows(job, source)
            .writeStream.format(job["output"])
            .option("path", f"s3a://{job['bucket']}/{job['run']}/")
            .option("checkpointLocation", checkpoint)
            .option("maxRecordsPerFile", job["flush"])
            .trigger(availableNow=True)
        )
        if job["codec"] or job["output"] == "avro":
            writer = writer.option("compression", job["codec"] or "uncompressed")
        if job["by"]:
            writer = writer.partitionBy("hour" if job["by"] == "hour" else "label")
        query = writer.start()
        query.awaitTermination()
        return {"records": sum(p["numInputRows"] for p in query.recentProgress)}


def main() -> None:
    """Serve jobs on one session."""
    spark = _session()
    answer(lambda job: to_noop(job, spark) if job.get("kind") == "read" else _run(spark, job))


if __name__ == "__main__":
    main()
