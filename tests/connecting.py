"""Records to produce, a job that runs in this process, and what lies in a bucket afterwards."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any

import fastavro

from penstock.job import Spec, run_share


@dataclass(frozen=True)
class Rec:
    """A record to produce. `value`: a JSON value, raw bytes, or, with `schema`, an Avro value."""

    value: Any
    ts: int = 1_717_171_717_171
    schema: Any = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int = 0


@dataclass(frozen=True)
class Outcome:
    """What a run left in the bucket: object name without `topics/<topic>/` and extension -> its records."""

    objects: dict[str, list[Any]]
    faults: list[str]
    open: int
    warnings: tuple[str, ...] = ()


@dataclass
class InProcess:
    """A job without Spark: what a task does, here."""

    kafka: Any

    def __call__(self, plan: Any, config: Any, seq: int) -> list[Any]:
        return run_share(Spec(config, self.kafka, seq, plan.now_ms), plan.ranges)

    def cancel(self) -> None:
        """It ends by itself."""


def stored(s3, bucket: str, topic: str) -> dict[str, list[Any]]:
    """Every object that is no part of the state log, with its records."""
    found = {}
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    for each in (item for page in pages for item in page.get("Contents", [])):
        key = each["Key"]
        if key.startswith("_penstock/"):
            continue
        body = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        short = key.removeprefix(f"topics/{topic}/").replace(f"{topic}+", "").replace(topic, "TOPIC")
        if key.endswith(".avro"):
            found[short.removesuffix(".avro")] = list(fastavro.reader(io.BytesIO(body)))
        elif key.endswith(".json"):
            found[short.removesuffix(".json")] = [json.loads(line) for line in body.splitlines()]
        else:
            found[short] = body.split(b"\n")
    return found
