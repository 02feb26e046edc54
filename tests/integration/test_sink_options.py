"""A connector's file with the store's options, run as users run it: what comes out has all of them."""

import gzip
import json
import subprocess
import sys
import uuid
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

pytestmark = [pytest.mark.stack, pytest.mark.spark]

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
EVERYTHING = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})
FILE = """name={bucket}
connector.class=io.confluent.connect.s3.S3SinkConnector
topics={topic}
flush.size=3
s3.bucket.name={bucket}
s3.region={region}
store.url={url}
aws.access.key.id={key}
aws.secret.access.key={secret}
storage.class=io.confluent.connect.s3.storage.S3Storage
format.class=io.confluent.connect.s3.format.bytearray.ByteArrayFormat
value.converter=org.apache.kafka.connect.converters.ByteArrayConverter
s3.compression.type=gzip
s3.compression.level=9
s3.object.tagging=true
s3.object.tagging.key.value.pairs=team:a
s3.object.behavior.on.tagging.error=fail
s3.ssea.name=AES256
s3.acl.canned=bucket-owner-full-control
s3.storage.class=STANDARD_IA
s3.content.type=application/gzip
s3.send.digest=true
s3.credentials.provider.class=io.confluent.connect.s3.auth.AwsAssumeRoleCredentialsProvider
s3.credentials.provider.sts.role.arn={role}
s3.credentials.provider.sts.role.session.name=penstock
s3.credentials.provider.sts.role.external.id=id
s3.credentials.provider.sts.url={url}
"""


def client(info, service):
    return boto3.client(
        service,
        endpoint_url=info.store_url,
        region_name=info.region,
        aws_access_key_id=info.access_key_id,
        aws_secret_access_key=info.secret_access_key,
        config=Config(s3={"addressing_style": "path"}),
    )


def test_one_file_with_every_option_gives_objects_that_have_them(moto_stack, tmp_path):
    name, topic = f"options-{uuid.uuid4().hex[:10]}", f"topic-{uuid.uuid4().hex[:10]}"
    s3, iam = client(moto_stack, "s3"), client(moto_stack, "iam")
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": moto_stack.region})
    role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=EVERYTHING)["Role"]["Arn"]
    iam.put_role_policy(RoleName=name, PolicyName="everything", PolicyDocument=EVERYTHING)
    brokers = {"bootstrap.servers": moto_stack.bootstrap_servers}
    admin = AdminClient(brokers)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    producer = Producer(brokers)
    for n in range(7):
        producer.produce(topic, b"value %d" % n)
    assert producer.flush(60) == 0
    worker, file = tmp_path / "w.properties", tmp_path / "c.properties"
    worker.write_text(f"bootstrap.servers={moto_stack.bootstrap_servers}\n")
    file.write_text(
        FILE.format(
            bucket=name,
            topic=topic,
            region=moto_stack.region,
            url=moto_stack.store_url,
            key=moto_stack.access_key_id,
            secret=moto_stack.secret_access_key,
            role=role,
        )
    )
    command = [PENSTOCK, "run", str(worker), str(file), "--until-done"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert moto_stack.secret_access_key not in done.stdout + done.stderr
    for start in (0, 3):
        key = f"topics/{topic}/partition=0/{topic}+0+{start:010}.bin.gz"
        found = s3.get_object(Bucket=name, Key=key)
        assert gzip.decompress(found["Body"].read()) == b"".join(b"value %d\n" % n for n in range(start, start + 3))
        assert (found["StorageClass"], found["ContentType"]) == ("STANDARD_IA", "application/gzip")
        assert found["ServerSideEncryption"] == "AES256"
        tags = {tag["Key"]: tag["Value"] for tag in s3.get_object_tagging(Bucket=name, Key=key)["TagSet"]}
        assert tags == {"startOffset": str(start), "endOffset": str(start + 2), "recordCount": "3", "team": "a"}
    log = s3.list_objects_v2(Bucket=name, Prefix="_penstock/")["Contents"]
    assert {each["StorageClass"] for each in log} == {"STANDARD"}
