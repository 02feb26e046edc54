"""Records per CPU-second on the embedded stack: the reader alone, a task's work by case, and the whole sink.

CPU is user + system of all processes of ours, children included; broker, S3 server and registry are not counted. A
task's work is what one Spark task does, in this process and warm: read, convert, label, cut, encode, upload. The whole
sink is `penstock run --until-done`, cold start of Spark included.
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
from penstock.job import Spec, run_share
from penstock.kafka.reader import ReaderOptions, read
from penstock.kafka.settings import KafkaSettings
from penstock.loading import load
from penstock.model import Gather, PlannedRange, Records, TopicPartition

PARTITIONS, PER_PARTITION, RUNS = 4, 500_000, 3
SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "country", "type": "string"},
        {"name": "note", "type": "string"},
    ],
}
COUNTRIES = [f"{a}{b}" for a in "ABCDE" for b in "WXYZ"]
FIRST_MS, PER_HOUR = 1_717_200_000_000, 50_000
TIMED = {"partitioner.class": "hourly", "locale": "en-US", "timezone": "UTC", "timestamp.extractor": "Record"}
CASES = {
    "avro-avro": {},
    "avro-avro-snappy": {"avro.codec": "snappy"},
    "avro-avro-hourly": {**TIMED, "rotate.interval.ms": "3600000"},
    "avro-avro-field": {"partitioner.class": "field", "partition.field.name": "country"},
    "avro-json": {"format.class": "json"},
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
        fastavro.schemaless_writer(
            body, parsed, {"id": number, "country": COUNTRIES[number * 7 % 20], "note": f"{number:088d}"}
        )
        at = FIRST_MS + number * 3_600_000 // PER_HOUR
        for partition in range(PARTITIONS):
            while True:
                try:
                    producer.produce(topic, body.getvalue(), partition=partition, timestamp=at)
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


def properties(info: stack.StackInfo, topic: str, name: str, case: str) -> dict[str, str]:
    """A connector's properties for a case; each run has names of its own."""
    return {
        "name": name,
        "topics": topic,
        "topics.dir": name,
        "tasks.max": "2",
        "flush.size": "100000",
        "format.class": "avro",
        "value.converter": "avro",
        "value.converter.schema.registry.url": info.schema_registry_url,
        **{n: v for n, v in info.as_json().items() if n not in ("bootstrap.servers", "schema.registry.url")},
        **CASES[case],
    }


def task(info: stack.StackInfo, topic: str, case: str, run: int) -> float:
    """Records per CPU-second of a task's work in this process; only whole files count."""
    given = properties(info, topic, f"task-{case}-{run}", case)
    config, kafka = load(given, {"bootstrap.servers": info.bootstrap_servers}, None)
    share = tuple(PlannedRange(TopicPartition(topic, p), 0, PER_PARTITION) for p in range(PARTITIONS))
    began = time.process_time()
    receipts = run_share(Spec(config, kafka, 1, FIRST_MS), share)
    cpu = time.process_time() - began
    assert all(receipt.fault is None for receipt in receipts)
    written = sum(o.records for receipt in receipts for o in receipt.commit.objects)
    assert written >= 0.8 * PARTITIONS * PER_PARTITION
    return PARTITIONS * PER_PARTITION / cpu


def sink(info: stack.StackInfo, topic: str, run: int, folder: Path) -> tuple[float, float]:
    """(records per CPU-second, wall seconds) of a whole run, cold start included."""
    given = properties(info, topic, f"sink-{run}", "avro-avro")
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
            base = 0.0
            for case in CASES:
                task(info, topic, case, 0)
                rates = [task(info, topic, case, run) for run in range(1, RUNS + 1)]
                base = base or statistics.median(rates)
                print(
                    f"task {case}: {statistics.median(rates):,.0f} records/CPU-s (min {min(rates):,.0f}, "
                    f"max {max(rates):,.0f}), {base / statistics.median(rates):.2f}x the CPU of avro-avro",
                    flush=True,
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
