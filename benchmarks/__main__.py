"""Records per CPU-second: the reader alone, and the whole sink as `penstock run --until-done`, on the embedded stack.

CPU is user + system of all processes of ours, children included; broker, S3 server and registry are not counted.
"""

from __future__ import annotations

import io
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fastavro
import requests
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.dev import stack
from penstock.kafka.reader import ReaderOptions, read
from penstock.kafka.settings import KafkaSettings
from penstock.model import Gather, PlannedRange, Records, TopicPartition

PARTITIONS, PER_PARTITION, RUNS = 4, 500_000, 3
SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}],
}


def fill(info: stack.StackInfo, topic: str) -> int:
    """Four partitions of Avro records of about 100 bytes; how many in all."""
    admin = AdminClient({"bootstrap.servers": info.bootstrap_servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    url = f"{info.schema_registry_url}/subjects/{topic}-value/versions"
    schema_id = requests.post(url, json={"schema": json.dumps(SCHEMA)}, timeout=30).json()["id"]
    parsed = fastavro.parse_schema(SCHEMA)
    producer = Producer({"bootstrap.servers": info.bootstrap_servers, "linger.ms": 50, "compression.type": "lz4"})
    for number in range(PER_PARTITION):
        body = io.BytesIO()
        body.write(b"\x00" + schema_id.to_bytes(4, "big"))
        fastavro.schemaless_writer(body, parsed, {"id": number, "note": f"{number:090d}"})
        for partition in range(PARTITIONS):
            while True:
                try:
                    producer.produce(topic, body.getvalue(), partition=partition)
                    break
                except BufferError:
                    producer.poll(0.1)
    producer.flush()
    return PARTITIONS * PER_PARTITION


def reader(info: stack.StackInfo, topic: str) -> float:
    """Records per CPU-second of the reader in this process."""
    settings = KafkaSettings.parse({"bootstrap.servers": info.bootstrap_servers})
    ranges = [PlannedRange(TopicPartition(topic, p), 0, PER_PARTITION) for p in range(PARTITIONS)]
    began, count = time.process_time(), 0
    for item in read(ranges, ReaderOptions(settings.aiokafka_kwargs), Gather(strip=5)):
        assert isinstance(item, Records)
        count += len(item)
    assert count == PARTITIONS * PER_PARTITION
    return count / (time.process_time() - began)


def sink(info: stack.StackInfo, topic: str, run: int, folder: Path) -> tuple[float, float]:
    """(records per CPU-second, wall seconds) of a whole run, cold start included."""
    given = {
        "name": f"bench-{run}",
        "topics": topic,
        "topics.dir": f"bench-{run}",
        "tasks.max": "2",
        "flush.size": "100000",
        "format.class": "avro",
        "value.converter": "avro",
        "value.converter.schema.registry.url": info.schema_registry_url,
        **{n: v for n, v in info.as_json().items() if n not in ("bootstrap.servers", "schema.registry.url")},
    }
    connector, worker = folder / f"{run}.properties", folder / "worker.properties"
    connector.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    worker.write_text(f"bootstrap.servers={info.bootstrap_servers}\n")
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    program = Path(sys.executable).with_name("penstock")
    subprocess.run([program, "run", worker, connector, "--until-done"], check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return PARTITIONS * PER_PARTITION / cpu, time.monotonic() - began


def main() -> None:
    """Print a row per measurement, with the spread over the runs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        info = stack.start(folder / "stack", echo=print)
        try:
            topic = "bench"
            count = fill(info, topic)
            print(f"{count} Avro records of about 100 bytes, {PARTITIONS} partitions, lz4, {os.cpu_count()} cores")
            reader(info, topic)
            rates = [reader(info, topic) for _ in range(RUNS)]
            print(
                f"reader: {statistics.median(rates):,.0f} records/CPU-s (min {min(rates):,.0f}, max {max(rates):,.0f})"
            )
            results = [sink(info, topic, run, folder) for run in range(RUNS)]
            whole = [rate for rate, _ in results]
            walls = [wall for _, wall in results]
            print(
                f"avro-avro, cold start included: {statistics.median(whole):,.0f} records/CPU-s "
                f"(min {min(whole):,.0f}, max {max(whole):,.0f}), {statistics.median(walls):.1f} s"
            )
        finally:
            stack.destroy(folder / "stack", print)


if __name__ == "__main__":
    main()
