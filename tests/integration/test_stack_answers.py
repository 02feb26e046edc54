from __future__ import annotations

import time

import boto3
import pytest
from botocore.exceptions import ClientError
from confluent_kafka import Consumer, Producer


def test_the_broker_keeps_records_with_old_timestamps(stack, topic):
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers})
    producer.produce(topic, b"old", timestamp=1000)
    producer.produce(topic, b"future", timestamp=4_000_000_000_000)
    assert producer.flush(30) == 0
    consumer = Consumer(
        {"bootstrap.servers": stack.bootstrap_servers, "group.id": "old", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    got, deadline = [], time.monotonic() + 60
    while len(got) < 2 and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None:
            got.append((message.value(), message.timestamp()[1]))
    consumer.close()
    assert got == [(b"old", 1000), (b"future", 4_000_000_000_000)]


def test_an_unknown_topic_is_made_with_one_partition_when_somebody_produces_to_it(stack, kafka_admin):
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers})
    producer.produce("made-by-producing", b"x")
    assert producer.flush(30) == 0
    assert len(kafka_admin.list_topics("made-by-producing", timeout=10).topics["made-by-producing"].partitions) == 1


@pytest.mark.parametrize("name", ["stack", "moto_stack"])
def test_the_s3_server_checks_credentials_and_creates_only_once(name, request):
    info = request.getfixturevalue(name)

    def client(key, secret):
        return boto3.client(
            "s3",
            endpoint_url=info.store_url,
            region_name=info.region,
            aws_access_key_id=key,
            aws_secret_access_key=secret,
        )

    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        client(info.access_key_id, "wrong").list_objects_v2(Bucket=info.bucket)
    with pytest.raises(ClientError, match="InvalidAccessKeyId"):
        client("nobody", info.secret_access_key).list_objects_v2(Bucket=info.bucket)
    s3 = client(info.access_key_id, info.secret_access_key)
    s3.put_object(Bucket=info.bucket, Key="once", Body=b"first", IfNoneMatch="*", Metadata={"seq": "7"})
    with pytest.raises(ClientError, match="PreconditionFailed"):
        s3.put_object(Bucket=info.bucket, Key="once", Body=b"second", IfNoneMatch="*")
    kept = s3.get_object(Bucket=info.bucket, Key="once")
    assert (kept["Body"].read(), kept["Metadata"]) == (b"first", {"seq": "7"})
    s3.delete_object(Bucket=info.bucket, Key="once")
