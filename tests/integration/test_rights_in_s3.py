"""The policy of docs/deploy.md on a server that enforces policies: it is enough, and nothing in it is superfluous."""

import json
import re
import threading
import uuid
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from connecting import InProcess
from penstock.errors import PenstockError
from penstock.loading import load
from penstock.loop import keep_running
from penstock.running import Running

pytestmark = pytest.mark.stack

PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"
PART = 5 << 20
LINES, SIZE = 7, 900_000  # more than a part


def documented():
    (policy,) = re.findall(r"```json\n(.*?)```", PAGE.read_text().partition("## Rights in S3")[2], re.DOTALL)[:1]
    return policy


ACTIONS = sorted(
    action
    for statement in json.loads(documented())["Statement"]
    for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
)


def without(policy, action):
    """The policy with one action less."""
    statements = []
    for each in json.loads(policy)["Statement"]:
        listed = [each["Action"]] if isinstance(each["Action"], str) else each["Action"]
        kept = [one for one in listed if one != action]
        if kept:
            statements.append({**each, "Action": kept})
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


@pytest.fixture(scope="module")
def topic(moto_stack):
    name = f"rights-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": moto_stack.bootstrap_servers})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
    producer = Producer({"bootstrap.servers": moto_stack.bootstrap_servers})
    for n in range(LINES):
        producer.produce(name, b"%d" % n * SIZE)
    assert producer.flush(30) == 0
    return name


@pytest.fixture(scope="module")
def clients(moto_stack):
    """Makers of clients for a service, as the user that may do everything."""
    session = boto3.Session(moto_stack.access_key_id, moto_stack.secret_access_key, region_name=moto_stack.region)
    made = {
        service: session.client(
            service, endpoint_url=moto_stack.store_url, config=Config(s3={"addressing_style": "path"})
        )
        for service in ("s3", "iam")
    }
    yield made
    for client in made.values():
        client.close()


@pytest.fixture
def connector(moto_stack, clients, topic):
    """Properties of a connector whose bucket has a left-over upload, and whose keys may do what a policy says."""
    bucket = f"rights-{uuid.uuid4().hex[:8]}"
    clients["s3"].create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": moto_stack.region})
    clients["s3"].create_multipart_upload(Bucket=bucket, Key=f"topics/{topic}/left")

    def allowed(policy):
        clients["iam"].create_user(UserName=bucket)
        clients["iam"].put_user_policy(UserName=bucket, PolicyName="p", PolicyDocument=policy.replace("BUCKET", bucket))
        key = clients["iam"].create_access_key(UserName=bucket)["AccessKey"]
        return {
            "name": bucket,
            "connector.class": "io.confluent.connect.s3.S3SinkConnector",
            "storage.class": "io.confluent.connect.s3.storage.S3Storage",
            "topics": topic,
            "flush.size": str(LINES),
            "format.class": "bytes",
            "value.converter": "bytes",
            "s3.part.size": str(PART),
            "s3.part.retries": "0",
            "s3.bucket.name": bucket,
            "s3.region": moto_stack.region,
            "store.url": moto_stack.store_url,
            "aws.access.key.id": key["AccessKeyId"],
            "aws.secret.access.key": key["SecretAccessKey"],
        }

    return allowed


def run(stack, properties):
    """A start, a cycle and an end. Raises what was refused; what is only told is in the log."""
    config, kafka = load(properties, {"bootstrap.servers": stack.bootstrap_servers}, None)
    with Running.open(config, kafka, InProcess(kafka)) as running:
        keep_running(running, threading.Event(), until_done=True)
        return [fault.message for fault in running.engine.faults.values()]


def test_the_documented_rights_are_enough(moto_stack, clients, connector):
    properties = connector(documented())
    assert run(moto_stack, properties) == []
    bucket = properties["s3.bucket.name"]
    (written,) = clients["s3"].list_objects_v2(Bucket=bucket, Prefix="topics/")["Contents"]
    assert written["Size"] == LINES * (SIZE + 1)
    assert "-2" in written["ETag"]  # of two parts
    assert clients["s3"].list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []
    assert run(moto_stack, properties) == []  # a start that finds a state log


@pytest.mark.parametrize("action", ACTIONS)
def test_none_of_them_is_superfluous(moto_stack, clients, connector, action, caplog):
    properties = connector(without(documented(), action))
    try:
        refused = run(moto_stack, properties)
    except PenstockError as error:
        refused = [str(error)]
    left = clients["s3"].list_multipart_uploads(Bucket=properties["s3.bucket.name"]).get("Uploads", [])
    assert refused or (left and "uploads.unswept" in caplog.text)
    assert "give these credentials the rights of docs/deploy.md" in " ".join([*refused, caplog.text])
