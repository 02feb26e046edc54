"""Servers for every test: one embedded stack per session, started by the first test that asks for it."""

from __future__ import annotations

import gc
import itertools
import os
import uuid
from typing import TYPE_CHECKING, Protocol

import boto3
import pytest
from botocore.config import Config
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import HealthCheck, Phase, settings

from penstock.dev import stack as dev_stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mypy_boto3_s3 import S3Client

    from penstock.dev.settings import StackInfo

    class MakeTopic(Protocol):
        """Creates a topic with a name of its own, and returns the name once the broker serves it."""

        def __call__(self, partitions: int = 1, **config: str) -> str: ...


# How long an example takes, or takes to be made, says more of the machine than of the code.
settings.register_profile("penstock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("penstock")
# Where only it matters whether a test fails (tests/soak/broken.py).
settings.register_profile("unshrunk", settings.get_profile("penstock"), phases=[Phase.explicit, Phase.generate])
_numbers = itertools.count(1)
_PORTS = range(20000, 32000)


def pytest_configure(config: pytest.Config) -> None:
    """Each process of `pytest -n` has ports of its own, so that two stacks that start at once never choose the same."""
    parallel = getattr(config, "workerinput", None)
    if parallel is not None:
        share = len(_PORTS) // parallel["workercount"]
        first = _PORTS.start + share * int(parallel["workerid"].removeprefix("gw"))
        os.environ["PENSTOCK_PORTS"] = f"{first}-{first + share - 1}"


def pytest_collection_finish() -> None:
    """What the imports left is there to stay: looking it over again and again takes a seventh of the time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackInfo]:
    """Broker, s3proxy and Schema Registry; shared, so every test makes topics, buckets and subjects of its own."""
    yield from _running(tmp_path_factory, "s3proxy")


@pytest.fixture(scope="session")
def moto_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackInfo]:
    """The same with moto as the S3 server, for what has to hold on another one too."""
    yield from _running(tmp_path_factory, "moto")


@pytest.fixture(scope="session")
def s3(stack: StackInfo) -> Iterator[S3Client]:
    """A client with the stack's credentials."""
    client = s3_client(stack)
    yield client
    client.close()


@pytest.fixture
def bucket(s3: S3Client, stack: StackInfo) -> str:
    """A fresh bucket."""
    name = f"bucket-{next(_numbers)}-{uuid.uuid4().hex[:8]}"
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": stack.region})
    return name


@pytest.fixture(scope="session")
def kafka_admin(stack: StackInfo) -> AdminClient:
    """librdkafka's admin client on the stack's broker."""
    return AdminClient({"bootstrap.servers": stack.bootstrap_servers})


@pytest.fixture(scope="session")
def make_topic(kafka_admin: AdminClient) -> MakeTopic:
    """Make a fresh topic: `make_topic(partitions=2, **{"cleanup.policy": "compact"})`."""

    def make(partitions: int = 1, **config: str) -> str:
        name = f"topic-{next(_numbers)}-{uuid.uuid4().hex[:8]}"
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)
        kafka_admin.create_topics([new])[name].result(timeout=30)
        return name

    return make


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    """A fresh topic with one partition."""
    return make_topic()


@pytest.fixture(scope="session")
def produce_avro(stack: StackInfo) -> Iterator[Callable[..., None]]:
    """Write Avro values with Confluent's serializer: `produce_avro(topic, schema, values, partition=0)`."""
    registry = SchemaRegistryClient({"url": stack.schema_registry_url})
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers, "linger.ms": 5})

    def produce(topic: str, schema: str, values: Iterable[object], partition: int = 0) -> None:
        serialize = AvroSerializer(registry, schema, conf={"use.latest.version": False})
        context = SerializationContext(topic, MessageField.VALUE)
        for value in values:
            producer.produce(topic, serialize(value, context), partition=partition)
            producer.poll(0)
        producer.flush()

    yield produce
    registry.__exit__()


def s3_client(info: StackInfo) -> S3Client:
    return boto3.client(
        "s3",
        endpoint_url=info.store_url,
        region_name=info.region,
        aws_access_key_id=info.access_key_id,
        aws_secret_access_key=info.secret_access_key,
        config=Config(s3={"addressing_style": "path"}),
    )


def _running(factory: pytest.TempPathFactory, s3: dev_stack.S3Server) -> Iterator[StackInfo]:
    directory = factory.mktemp(f"stack-{s3}") / "stack"
    quiet: Callable[[str], None] = [].append
    try:
        yield dev_stack.start(directory, s3=s3, echo=quiet)
    finally:
        dev_stack.destroy(directory, quiet)
