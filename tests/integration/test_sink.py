"""The sink as its users run it: `penstock run` against a real broker, S3 server and registry, with real Spark."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import fastavro
import numpy as np
import pytest
import requests
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

pytestmark = [pytest.mark.stack, pytest.mark.spark]

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
SCHEMA = '{"type":"record","name":"myrecord","fields":[{"name":"f1","type":"string"}]}'
EVOLVED = SCHEMA.replace("}]}", '},{"name":"f2","type":"int","default":0}]}')


@pytest.fixture
def worker(stack, tmp_path):
    file = tmp_path / "worker.properties"
    file.write_text(f"bootstrap.servers={stack.bootstrap_servers}\n")
    return file


@pytest.fixture
def connector(stack, bucket, tmp_path):
    """Write a connector's file; None takes a property away."""

    def write(topics, *, name=None, **changes):
        info = stack.as_json()
        properties = {
            "name": name or bucket,
            "connector.class": "io.confluent.connect.s3.S3SinkConnector",
            "topics": topics,
            "flush.size": "3",
            "tasks.max": "2",
            "s3.bucket.name": bucket,
            "storage.class": "io.confluent.connect.s3.storage.S3Storage",
            "format.class": "avro",
            "value.converter": "avro",
            "value.converter.schema.registry.url": info["schema.registry.url"],
            **{key: info[key] for key in ("s3.region", "store.url", "aws.access.key.id", "aws.secret.access.key")},
            **{key.replace("__", "-").replace("_", "."): value for key, value in changes.items()},
        }
        file = tmp_path / f"{properties['name']}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items() if value is not None))
        return file

    return write


def run(*arguments, **options):
    command = [PENSTOCK, "run", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)


def until_done(worker, file):
    done = run(worker, file, "--until-done")
    assert done.returncode == 0, done.stderr
    return done.stderr


def produce(stack, topic, values, partition=0, **extra):
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers, "linger.ms": 20})
    for value in values:
        producer.produce(topic, value, partition=partition, **extra)
        producer.poll(0)
    assert producer.flush(60) == 0


def bodies(s3, bucket, prefix="topics/"):
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    keys = [each["Key"] for page in pages for each in page.get("Contents", [])]
    return {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


def test_a_million_records_over_four_partitions_come_back_exactly(stack, s3, bucket, worker, connector, make_topic):
    topic, per_partition = make_topic(4), 250_000
    schema = fastavro.parse_schema(
        {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}]}
    )
    registered = registered_id(stack, topic, schema)
    for partition in range(4):
        values = (wire(registered, schema, {"id": n, "note": f"n{n % 97}"}) for n in range(per_partition))
        produce(stack, topic, values, partition)
    until_done(worker, connector(topic, flush_size="100000", avro_codec="snappy"))
    found = bodies(s3, bucket)
    expected = {
        f"topics/{topic}/partition={p}/{topic}+{p}+{start:010d}.avro" for p in range(4) for start in (0, 100_000)
    }
    assert set(found) == expected
    for key, body in found.items():
        start = int(key[-15:-5])
        records = list(fastavro.reader(io.BytesIO(body)))
        assert np.array_equal([r["id"] for r in records], np.arange(start, start + 100_000))
        assert all(r["note"] == f"n{r['id'] % 97}" for r in records)


def registered_id(stack, topic, schema):
    plain = {key: value for key, value in schema.items() if not key.startswith("__")}
    url = f"{stack.schema_registry_url}/subjects/{topic}-value/versions"
    return requests.post(url, json={"schema": json.dumps(plain)}, timeout=30).json()["id"]


def wire(schema_id, schema, value):
    stream = io.BytesIO()
    stream.write(b"\x00" + schema_id.to_bytes(4, "big"))
    fastavro.schemaless_writer(stream, schema, value)
    return stream.getvalue()


def test_a_changed_schema_closes_the_files_and_each_file_has_its_own(
    s3, bucket, worker, connector, make_topic, produce_avro
):
    topic = make_topic()
    produce_avro(topic, SCHEMA, [{"f1": f"v{n}"} for n in range(4)])
    produce_avro(topic, EVOLVED, [{"f1": "w", "f2": 5}])
    produce_avro(topic, SCHEMA, [{"f1": f"x{n}"} for n in range(3)])
    said = until_done(worker, connector(topic))
    found = {key[-15:-5]: fastavro.reader(io.BytesIO(body)) for key, body in bodies(s3, bucket).items()}
    assert {start: len(list(reader)) for start, reader in found.items()} == {
        "0000000000": 3,
        "0000000003": 1,
        "0000000004": 1,
        "0000000005": 3,
    }
    assert found["0000000003"].writer_schema["connect.version"] == 1
    assert found["0000000004"].writer_schema["connect.version"] == 2
    assert found["0000000004"].writer_schema["connect.name"] == "myrecord"
    assert "left open" not in said


def test_json_string_and_bytes_are_written_as_they_are(stack, s3, bucket, worker, connector, make_topic):
    topic = make_topic()
    produce(stack, topic, [b'{"a": 1}', b"[1,2]", b'"x"'])
    schemaless = {"value_converter_schemas_enable": "false", "value_converter_schema_registry_url": None}
    until_done(worker, connector(topic, name="json", format_class="json", value_converter="json", **schemaless))
    until_done(
        worker,
        connector(
            topic,
            name="bytes",
            topics_dir="raw",
            format_class="io.confluent.connect.s3.format.bytearray.ByteArrayFormat",
            value_converter="org.apache.kafka.connect.converters.ByteArrayConverter",
            format_bytearray_separator="|",
        ),
    )
    until_done(worker, connector(topic, name="text", topics_dir="", format_class="json", value_converter="string"))
    found = bodies(s3, bucket, "")
    place = f"{topic}/partition=0/{topic}+0+0000000000"
    assert found[f"topics/{place}.json"] == b'{"a": 1}\n[1,2]\n"x"\n'
    assert found[f"raw/{place}.bin"] == b'{"a": 1}|[1,2]|"x"|'
    assert found[f"{place}.json"] == b'"{\\"a\\": 1}"\n"[1,2]"\n"\\"x\\""\n'


def test_what_is_not_full_is_left_open_and_written_once_it_is(stack, s3, bucket, worker, connector, make_topic):
    topic = make_topic()
    file = connector(topic, format_class="bytes", value_converter="bytes")
    produce(stack, topic, [b"1", b"2", b"3", b"4"])
    assert f"{topic}-0: 1 record left open" in until_done(worker, file)
    produce(stack, topic, [b"5", b"6"])
    until_done(worker, file)
    assert sorted(bodies(s3, bucket).values()) == [b"1\n2\n3\n", b"4\n5\n6\n"]


def test_objects_of_several_parts(stack, s3, bucket, worker, connector, make_topic):
    topic = make_topic()
    values = [bytes([65 + n % 26]) * 900_000 for n in range(14)]
    produce(stack, topic, values)
    until_done(
        worker,
        connector(topic, format_class="bytes", value_converter="bytes", flush_size="14", s3_part_size="5242880"),
    )
    assert list(bodies(s3, bucket).values()) == [b"".join(value + b"\n" for value in values)]


def test_new_partitions_and_topics_are_picked_up_while_running(
    stack, s3, bucket, worker, connector, make_topic, kafka_admin: AdminClient, start
):
    topic = make_topic()
    file = connector(None, topics_regex=f"{topic}.*", format_class="bytes", value_converter="bytes", flush_size="1")
    produce(stack, topic, [b"a"])
    process = start(worker, file)
    wait_for(lambda: len(bodies(s3, bucket)) == 1, process)
    kafka_admin.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
    kafka_admin.create_topics([NewTopic(f"{topic}-more", 1, 1)])[f"{topic}-more"].result(30)
    wait_for(lambda: len(kafka_admin.list_topics(topic, timeout=10).topics[topic].partitions) == 2, process)
    produce(stack, topic, [b"b"], partition=1)
    produce(stack, f"{topic}-more", [b"c"])
    wait_for(lambda: len(bodies(s3, bucket)) == 3, process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0, process.said()


@pytest.fixture
def start(tmp_path):
    """Start `penstock run` in the background; `said()` is what it wrote to stderr so far."""
    processes = []

    def start(*arguments):
        log = (tmp_path / f"stderr-{len(processes)}").open("w+")
        command = [PENSTOCK, "run", *map(str, arguments)]
        process = subprocess.Popen(command, stderr=log, start_new_session=True)
        process.said = lambda: Path(log.name).read_text()
        processes.append((process, log))
        return process

    yield start
    for process, log in processes:
        process.kill()
        process.wait(30)
        log.close()


def wait_for(condition, process, seconds=280):
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.said()
        assert time.monotonic() < deadline, process.said()
        time.sleep(0.3)


def test_a_second_instance_takes_over_and_the_first_says_who(stack, s3, bucket, worker, connector, make_topic, start):
    topic = make_topic()
    file = connector(topic, format_class="bytes", value_converter="bytes", flush_size="1", cycle_interval_ms="300")
    produce(stack, topic, [b"a"])
    first = start(worker, file)
    wait_for(lambda: len(bodies(s3, bucket)) == 1, first)
    until_done(worker, file)
    assert first.wait(120) == 3, first.said()  # although there is nothing to write, by which it would find out
    assert f"connector `{bucket}` was taken over by another instance on host" in first.said()
    produce(stack, topic, [b"b"])
    until_done(worker, file)
    assert sorted(bodies(s3, bucket).values()) == [b"a\n", b"b\n"]


def test_an_existing_connector_is_taken_over_where_connect_stood(stack, s3, bucket, worker, connector, make_topic):
    topic = make_topic()
    produce(stack, topic, [str(n).encode() for n in range(10)])
    consumer = Consumer({"bootstrap.servers": stack.bootstrap_servers, "group.id": f"connect-{bucket}"})
    consumer.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
    file = connector(topic, format_class="bytes", value_converter="bytes")
    until_done(worker, file)
    assert sorted(bodies(s3, bucket).values()) == [b"4\n5\n6\n", b"7\n8\n9\n"]
    (mirrored,) = consumer.committed([TopicPartition(topic, 0)], timeout=30)
    assert (mirrored.offset, mirrored.metadata) == (10, "penstock")
    consumer.close()
    for each in s3.list_objects_v2(Bucket=bucket, Prefix="_penstock/")["Contents"]:
        s3.delete_object(Bucket=bucket, Key=each["Key"])
    lost = run(worker, file, "--until-done")
    assert lost.returncode == 1
    assert "on.missing.state" in lost.stderr


BAD_VALUES = [
    ("avro", b"not avro", "not Avro in Confluent's wire format"),
    ("avro", b"\x00\x00\x0f\x42\x3fabc", "schema id 999999"),
    ("avro", None, "the value is null"),
    ("json", b'{"a":', "not JSON"),
]


@pytest.mark.parametrize(("converter", "bad", "words"), BAD_VALUES)
def test_a_bad_record_stops_its_partition_at_the_record_and_no_other(
    stack, s3, bucket, worker, connector, make_topic, produce_avro, converter, bad, words
):
    topic = make_topic(2)
    for partition in (0, 1):
        if converter == "avro":
            produce_avro(topic, SCHEMA, [{"f1": "x"}] * 4, partition)
        else:
            produce(stack, topic, [b'{"a":1}'] * 4, partition)
        if partition == 0:
            produce(stack, topic, [bad, b'{"a":1}'])
    kind = {"format_class": converter, "value_converter": converter}
    if converter == "json":
        kind["value_converter_schemas_enable"] = "false"
    done = run(worker, connector(topic, **kind), "--until-done")
    assert done.returncode == 1
    assert f"{topic}-0@4: " in done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    starts = sorted(key.rsplit("/", 1)[1].split(".")[0] for key in bodies(s3, bucket))
    assert starts == [f"{topic}+0+0000000000", f"{topic}+1+0000000000"]


WRONG = [
    ({"flush_size": "ten"}, "flush.size must be an integer, got `ten`"),
    ({"flush_sizes": "1"}, "unknown property `flush.sizes`; did you mean `flush.size`?"),
    ({"format_class": "bytes"}, "value.converter `avro` cannot be written with format.class `bytes`"),
    ({"s3_compression_type": "gzip"}, "s3.compression.type=`gzip` is for the formats json and bytes"),
    ({"s3_bucket_name": "no-such-bucket-here"}, "create the bucket, or correct s3.bucket.name"),
    ({"aws_secret_access_key": "wrong-secret"}, "correct aws.secret.access.key"),
    ({"store_url": "http://127.0.0.1:9"}, "the store does not answer"),
    (
        {"value_converter_schema_registry_url": "http://127.0.0.1:9"},
        "Schema Registry at http://127.0.0.1:9 does",
    ),
    ({"topics": "there-is-none"}, "there is no topic `there-is-none`"),
]


@pytest.mark.parametrize(("changes", "words"), WRONG)
def test_what_is_wrong_from_the_start_is_one_sentence_and_exit_code_1(worker, connector, make_topic, changes, words):
    topics = changes.pop("topics", None) or make_topic()
    done = run(worker, connector(topics, s3_part_retries="0", **changes), "--until-done")
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert "wrong-secret" not in done.stderr


def test_a_broker_that_is_away_is_one_sentence(tmp_path, connector):
    nobody = tmp_path / "nobody.properties"
    nobody.write_text("bootstrap.servers=127.0.0.1:9\ndefault.api.timeout.ms=3000\n")
    nobody.write_text("bootstrap.servers=127.0.0.1:9\n")
    done = run(nobody, connector("t"), "--until-done")
    assert done.returncode == 1
    assert "127.0.0.1:9" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_foreign_object_under_our_name_is_named_and_left_alone(stack, s3, bucket, worker, connector, make_topic):
    topic = make_topic()
    produce(stack, topic, [b"1", b"2", b"3"])
    key = f"topics/{topic}/partition=0/{topic}+0+0000000000.bin"
    s3.put_object(Bucket=bucket, Key=key, Body=b"foreign")
    done = run(worker, connector(topic, format_class="bytes", value_converter="bytes"), "--until-done")
    assert done.returncode == 1
    assert f"there is already an object `{key}`" in done.stderr
    assert bodies(s3, bucket) == {key: b"foreign"}


def test_a_topic_deleted_under_the_sink_is_named(stack, s3, bucket, worker, connector, make_topic, kafka_admin, start):
    topic = make_topic()
    file = connector(topic, format_class="bytes", value_converter="bytes", flush_size="1")
    produce(stack, topic, [b"a"])
    process = start(worker, file)
    wait_for(lambda: len(bodies(s3, bucket)) == 1, process)
    kafka_admin.delete_topics([topic])[topic].result(30)
    assert process.wait(120) == 1, process.said()
    assert f"{topic}" in process.said().splitlines()[-1]


def test_nothing_written_or_said_holds_a_secret(stack, s3, bucket, worker, connector, make_topic):
    topic = make_topic()
    produce(stack, topic, [b"1", b"2", b"3"])
    said = run(worker, connector(topic, format_class="bytes", value_converter="bytes"), "--until-done", "--verbose")
    assert said.returncode == 0, said.stderr
    everything = said.stdout + said.stderr + "".join(str(body) for body in bodies(s3, bucket, "").values())
    assert stack.secret_access_key not in everything


def test_usage_errors_have_exit_code_2(worker):
    assert run(worker).returncode == 2
    assert subprocess.run([PENSTOCK, "run"], capture_output=True, check=False).returncode == 2


def test_an_ended_terminal_session_loses_nothing(stack, s3, bucket, worker, connector, make_topic, start):
    topic = make_topic()
    file = connector(topic, format_class="bytes", value_converter="bytes", flush_size="1")
    produce(stack, topic, [b"a"])
    process = start(worker, file)
    wait_for(lambda: len(bodies(s3, bucket)) == 1, process)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(60) == 0, process.said()
    assert "stopping after the running cycle" in process.said()
