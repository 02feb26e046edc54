"""What a team would write by hand: a loop over confluent-kafka's consumer, fastavro or json, and boto3's put_object.

One process per task, each with its share of the partitions; a file per partition and label, all files of a partition
written when it has `flush` records (or, by the hour, when the hour changes), then the offset is committed.
"""

from __future__ import annotations

import gzip
import io
import json
import multiprocessing
import os
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

import boto3
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import requests
from botocore.config import Config
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from benchmarks.contenders.answering import answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from confluent_kafka import Message

_EXTENSIONS = {"avro": ".avro", "json": ".json", "text": ".txt", "parquet": ".parquet"}


@dataclass(slots=True)
class _Partition:
    """What is open of one partition: its records by label, and where the files begin."""

    number: int
    left: int
    rows: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    first: int = 0
    count: int = 0
    hour: str = ""


def consume(job: dict[str, Any], shares: Sequence[tuple[int, int]]) -> int:
    """One process's work: how many records it wrote. `shares`: partitions and how many records each has."""
    consumer = Consumer(
        {
            "bootstrap.servers": job["bootstrap"],
            "group.id": job["run"],
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.max.bytes": 50 << 20,
            "max.partition.fetch.bytes": 8 << 20,
            "queued.max.messages.kbytes": 65536,
        }
    )
    put = partial(_client(job).put_object, Bucket=job["bucket"])
    decode, encode = _decoder(job), _encoder(job)
    states = {number: _Partition(number, left) for number, left in shares if left}
    consumer.assign([TopicPartition(job["topic"], number, OFFSET_BEGINNING) for number in states])
    written = 0
    while any(state.left for state in states.values()):
        for message in consumer.consume(10_000, 1.0):
            if message.error():
                raise RuntimeError(message.error())
            written += _take(message, states[message.partition()], job, decode, partial(_write, job, put, encode))
        consumer.commit(asynchronous=True)
    for state in states.values():
        if job["by"] == "hour":
            written += _write(job, put, encode, state)
    consumer.close()
    return written


def _take(
    message: Message,
    state: _Partition,
    job: dict[str, Any],
    decode: Callable[[bytes], Any],
    write: Callable[[_Partition], int],
) -> int:
    row = decode(message.value())
    label, written = "", 0
    if job["by"] == "hour":
        time = datetime.fromtimestamp(message.timestamp()[1] / 1000, timezone.utc)
        label = time.strftime("/year=%Y/month=%m/day=%d/hour=%H")
        if state.hour not in {label, ""}:
            written = write(state)
        state.hour = label
    elif job["by"]:
        label = f"/{job['by']}={row[job['by']]}"
    if not state.count:
        state.first = message.offset()
    state.rows[label].append(row)
    state.count += 1
    state.left -= 1
    if state.count >= job["flush"]:
        written += write(state)
    return written


def _write(
    job: dict[str, Any], put: Callable[..., Any], encode: Callable[[list[Any]], bytes], state: _Partition
) -> int:
    extension = _EXTENSIONS[job["output"]] + (".gz" if job["codec"] == "gzip" else "")
    for label, rows in state.rows.items():
        name = f"{job['topic']}+{state.number}+{state.first:010d}{extension}"
        put(Key=f"{job['run']}/{job['topic']}{label}/{name}", Body=encode(rows))
    written = state.count
    state.rows.clear()
    state.count = 0
    return written


def _decoder(job: dict[str, Any]) -> Callable[[bytes], Any]:
    if job["input"] == "json":

        def validated(value: bytes) -> bytes:
            json.loads(value)
            return value

        return validated
    if job["input"] == "bytes":
        return lambda value: value
    schemas: dict[bytes, Any] = {}

    def decode(value: bytes) -> Any:  # noqa: ANN401 - what the schema says
        schema = schemas.get(value[1:5])
        if schema is None:
            schema = schemas[value[1:5]] = _schema(job, int.from_bytes(value[1:5], "big"))
        return fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None)

    return decode


def _schema(job: dict[str, Any], number: int) -> Any:  # noqa: ANN401
    text = requests.get(f"{job['registry']}/schemas/ids/{number}", timeout=30).json()["schema"]
    return fastavro.parse_schema(json.loads(text))


def _encoder(job: dict[str, Any]) -> Callable[[list[Any]], bytes]:
    plain = {"avro": _avro, "json": _json, "text": _text, "parquet": _parquet}[job["output"]]
    if job["output"] == "avro":
        return partial(_avro, schema=fastavro.parse_schema(job["schema"]), codec=job["codec"] or "null")
    if job["codec"] == "gzip":
        return lambda rows: gzip.compress(plain(rows), 6)
    return plain


def _avro(rows: list[Any], schema: Any = None, codec: str = "null") -> bytes:  # noqa: ANN401
    file = io.BytesIO()
    fastavro.writer(file, schema, rows, codec)
    return file.getvalue()


def _json(rows: list[Any]) -> bytes:
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    return b"\n".join(lines) + b"\n"


def _text(rows: list[Any]) -> bytes:
    return b"\n".join(rows) + b"\n"


def _parquet(rows: list[Any]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file, compression="snappy")
    return file.getvalue()


def _client(job: dict[str, Any]) -> Any:  # noqa: ANN401
    return boto3.client(
        "s3",
        endpoint_url=job["store_url"],
        region_name=job["region"],
        aws_access_key_id=job["access_key_id"],
        aws_secret_access_key=job["secret_access_key"],
        config=Config(s3={"addressing_style": "path"}),
    )


def main() -> None:
    """Serve jobs, with as many processes as tasks."""
    tasks = int(os.environ["BENCH_TASKS"])
    with multiprocessing.get_context("spawn").Pool(tasks) as pool:

        def run(job: dict[str, Any]) -> dict[str, Any]:
            numbered = list(enumerate(job["shares"]))
            work = [(job, numbered[task::tasks]) for task in range(tasks)]
            return {"records": sum(pool.starmap(consume, work, 1))}

        answer(run)


if __name__ == "__main__":
    main()
