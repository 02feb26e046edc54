"""A connector with a transformation on the stack, its jobs on the Spark session of the tests."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from connecting import InProcess, stored
from penstock.job import SparkJob
from penstock.loading import load
from penstock.loop import keep_running
from penstock.running import Running
from penstock.statelog.history import entries
from penstock.transform.job import TransformingJob
from penstock.transform.runner import Transformer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from penstock.dev.settings import StackInfo
    from penstock.model import Commit

T = 1_700_000_000_000


@dataclass
class Connector:
    """One connector: its topic, its bucket, what it wrote."""

    stack: StackInfo
    spark: SparkSession
    s3: Any
    bucket: str
    topic: str

    def produce(self, values: Iterable[Any], partition: int = 0) -> None:
        """JSON values, or bytes as they are, a second apart, with keys `k0`, `k1`, ..."""
        producer = Producer({"bootstrap.servers": self.stack.bootstrap_servers, "linger.ms": 5})
        for n, value in enumerate(values):
            raw = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
            producer.produce(self.topic, raw, f"k{n}", partition, timestamp=T + 1000 * n)
        assert producer.flush(30) == 0

    def properties(self, more: Mapping[str, str | None]) -> dict[str, str]:
        """Its file."""
        given = {
            "name": self.bucket,
            "connector.class": "io.confluent.connect.s3.S3SinkConnector",
            "topics": self.topic,
            "s3.bucket.name": self.bucket,
            "storage.class": "io.confluent.connect.s3.storage.S3Storage",
            "format.class": "json",
            "value.converter": "json",
            "value.converter.schemas.enable": "false",
            "flush.size": "3",
            **{n: v for n, v in self.stack.as_json().items() if n in ("s3.region", "store.url") or n[:4] == "aws."},
            **more,
        }
        return {name: value for name, value in given.items() if value is not None}

    def opened(self, more: Mapping[str, str | None]) -> Running:
        """It holds its state log."""
        config, kafka = load(self.properties(more), {"bootstrap.servers": self.stack.bootstrap_servers}, None)
        transformer = Transformer(lambda: self.spark, kafka)
        job = TransformingJob(SparkJob(lambda: self.spark.sparkContext, kafka, 2), lambda: transformer, 2)
        return Running.open(config, kafka, job, job.prepare)

    def run(self, more: Mapping[str, str | None]) -> list[str]:
        """Run it until it is done; what stopped."""
        with self.opened(more) as running:
            keep_running(running, threading.Event(), until_done=True)
            return [fault.message for fault in running.engine.faults.values()]

    def objects(self) -> dict[str, list[Any]]:
        """Every object with its records."""
        return stored(self.s3, self.bucket, self.topic)

    def commits(self) -> list[Commit]:
        """All commits there are."""
        config, kafka = load(self.properties({}), {"bootstrap.servers": self.stack.bootstrap_servers}, None)
        with Running.open(config, kafka, InProcess(kafka)) as running:
            log = running.engine.log
            return [commit for entry in entries(log.store, log.names) for commit in entry.commits]
