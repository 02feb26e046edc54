"""A secret planted in every property that holds one, and then looked for in everything that is written or shown."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import stat
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import requests
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from certificates import issue
from penstock.config.properties import read
from penstock.dev import stack as dev_stack
from registry_front import Front, basic, front

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.dev.settings import StackInfo
    from secured_broker import SecuredBroker

pytestmark = [pytest.mark.stack, pytest.mark.spark]

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
SCHEMA = '{"type":"record","name":"r","fields":[{"name":"f","type":"string"}]}'
REGISTRY = "sesame-registry"
OPTION = "value.converter."
SPARK = {
    "spark.hadoop.fs.s3a.secret.key": "sesame-hadoop",
    "spark.ssl.keyPassword": "sesame-spark",
}
_numbers = itertools.count()


@dataclass
class Processes:
    """What `ps e` would have shown at any moment: all command lines and environments."""

    seen: set[bytes] = field(default_factory=set)
    _stop: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        while not self._stop.wait(0.1):
            self.look()

    def look(self) -> None:
        for process in Path("/proc").iterdir():
            for file in ("cmdline", "environ"):
                with contextlib.suppress(OSError):  # it has ended meanwhile, or is none
                    self.seen.add((process / file).read_bytes())

    def of_penstock(self) -> list[bytes]:
        """All but what gives a test's broker its users, which another run on this machine may do meanwhile."""
        return [shown for shown in self.seen if b"kafka.tools.StorageTool" not in shown]

    @contextmanager
    def watched(self) -> Iterator[None]:
        thread = threading.Thread(target=self.watch)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()


@dataclass(frozen=True)
class Secrets:
    """All that must not be seen, with who would have shown it."""

    texts: tuple[str, ...]

    def check(self, place: str, *shown: str | bytes) -> None:
        for data in shown:
            raw = data.encode() if isinstance(data, str) else data
            for text in self.texts:
                assert text.encode() not in raw, f"{text} is shown by {place}"


@dataclass(frozen=True)
class Scene:
    """Where the connectors of these tests find everything, each behind a login."""

    stack: StackInfo
    broker: SecuredBroker
    registry: Front
    trusted: Path
    topic: str
    bucket: str
    folder: Path

    @property
    def secrets(self) -> Secrets:
        key = "".join(self.broker.client.key_pem().splitlines()[1:-1])
        passwords = ("bob-secret", "albert-secret", "sesame-kafka", "sesame-oauth")
        others = (self.stack.secret_access_key, REGISTRY, "sesame-store", "sesame-wrong", "sesame-token")
        return Secrets((*passwords, *others, *SPARK.values(), key[20:60]))

    def connector(self, name: str, kafka: Mapping[str, str], **changes: str | None) -> Path:
        """Write its file; `kafka`: how it logs in at the broker; `__` stands for a dot."""
        info = self.stack.as_json()
        properties = {
            "name": f"{name}-{self.bucket}",
            "connector.class": "io.confluent.connect.s3.S3SinkConnector",
            "topics": self.topic,
            "flush.size": "3",
            "topics.dir": name,
            "s3.bucket.name": self.bucket,
            "storage.class": "io.confluent.connect.s3.storage.S3Storage",
            "format.class": "avro",
            "value.converter": "avro",
            f"{OPTION}schema.registry.url": self.registry.url,
            f"{OPTION}schema.registry.ssl.ca.location": str(self.trusted),
            f"{OPTION}basic.auth.credentials.source": "USER_INFO",
            f"{OPTION}basic.auth.user.info": f"ann:{REGISTRY}",
            **{key: info[key] for key in ("s3.region", "store.url", "aws.access.key.id", "aws.secret.access.key")},
            **{f"consumer.override.{key}": text.replace("\n", "\\n") for key, text in kafka.items()},
            **{key.replace("__", "."): text for key, text in changes.items()},
        }
        file = self.folder / f"{name}.properties"
        file.write_text("".join(f"{key}={text}\n" for key, text in properties.items() if text is not None))
        return file


@pytest.fixture
def scene(stack, bucket, secured, secured_folder, tmp_path) -> Iterator[Scene]:
    topic = f"secrets-{next(_numbers)}"
    admin = AdminClient({"bootstrap.servers": secured.servers("plain")})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    with SchemaRegistryClient({"url": stack.schema_registry_url}) as registry:
        serialize = AvroSerializer(registry, SCHEMA)
        producer = Producer({"bootstrap.servers": secured.servers("plain")})
        for n in range(3):
            producer.produce(topic, serialize({"f": f"v{n}"}, SerializationContext(topic, MessageField.VALUE)))
        assert producer.flush(60) == 0
    with ExitStack() as open_until_then:
        given = Front(stack.schema_registry_url, basic("ann", REGISTRY))
        open_until_then.enter_context(front(given, issue("registry", secured.root), tmp_path))
        yield Scene(stack, secured, given, secured_folder / "root.pem", topic, bucket, tmp_path)


def good(scene: Scene) -> list[Path]:
    """One connector for each way to log in."""
    scram = scene.broker.password_login("SCRAM-SHA-512", "albert", "albert-secret")
    plain = scene.broker.password_login("PLAIN", "bob", "bob-secret")
    in_address = scene.registry.url.replace("//", f"//ann:{REGISTRY}@")
    return [
        scene.connector("scram", scram),
        scene.connector(
            "plain",
            plain,
            **{
                f"{OPTION}schema.registry.url".replace(".", "__"): in_address,
                f"{OPTION}basic.auth.credentials.source".replace(".", "__"): None,
                f"{OPTION}basic.auth.user.info".replace(".", "__"): None,
            },
        ),
        scene.connector("mutual", scene.broker.certificate_login()),
    ]


def bad(scene: Scene) -> dict[str, tuple[Path, str]]:
    """Connectors that are refused somewhere, each with the sentence that says so."""
    broker, secure = scene.broker, scene.broker.servers("secure")
    scram = broker.password_login("SCRAM-SHA-512", "albert", "albert-secret")
    other_root = {"ssl.truststore.certificates": (scene.trusted.parent / "other.pem").read_text()}
    token = {"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "sesame-token"}
    no_login = {"basic.auth.credentials.source": None, "basic.auth.user.info": None}
    changes = {f"{OPTION}{name}".replace(".", "__"): text for name, text in (token | no_login).items()}
    by_password = broker.password_login("PLAIN", "bob", "sesame-kafka")
    by_token = broker.oauth_login(scene.trusted, secret="sesame-oauth")
    registry = f"the Schema Registry at {scene.registry.url} refuses this client (HTTP 401); check"
    sentences = {
        "password": f"Kafka at {secure} refuses the login of user `bob` with PLAIN: check username and password in "
        "sasl.jaas.config",
        "authority": f"the certificate of the Kafka broker {secure} is signed by an authority that is not trusted: put "
        "that authority's certificate into ssl.truststore.location or ssl.truststore.certificates",
        "expired": f"the certificate of the Kafka broker {broker.servers('expired')} has expired: renew it at the "
        "broker",
        "oauth": f"the token endpoint {broker.token_url} gives no token to client `carol`: 401 no such client; "
        "check clientId, clientSecret and scope in sasl.jaas.config",
        "store": f"bucket `{scene.bucket}` at {scene.stack.store_url}: the store answers SignatureDoesNotMatch (403); "
        "correct aws.secret.access.key",
        "registry": f"{registry} basic.auth.user.info",
        "token": f"{registry} bearer.auth.token",
    }
    files = {
        "password": scene.connector("password", by_password),
        "authority": scene.connector("authority", scram | other_root),
        "expired": scene.connector("expired", broker.certificate_login("expired")),
        "oauth": scene.connector("oauth", by_token),
        "store": scene.connector("store", scram, aws__secret__access__key="sesame-store"),
        "registry": scene.connector("registry", scram, value__converter__basic__auth__user__info="ann:sesame-wrong"),
        "token": scene.connector("token", scram, **changes),
    }
    return {name: (files[name], sentence) for name, sentence in sentences.items()}


def everything_stored(s3, bucket: str) -> Iterator[bytes]:
    """Every key, every object, all of its metadata."""
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for each in page.get("Contents", []):
            answer = s3.get_object(Bucket=bucket, Key=each["Key"])
            yield each["Key"].encode()
            yield answer["Body"].read()
            yield repr(answer["ResponseMetadata"]["HTTPHeaders"]).encode()


def test_the_command_shows_no_secret_whether_it_succeeds_or_fails(scene, s3, tmp_path):
    worker, temporary = tmp_path / "worker.properties", tmp_path / "temporary"
    spark = "".join(f"{name}={text}\n" for name, text in SPARK.items())
    worker.write_text(f"bootstrap.servers={scene.stack.bootstrap_servers}\n{spark}")
    temporary.mkdir()
    refused = bad(scene)
    files = [*good(scene), *(file for file, _ in refused.values())]
    processes = Processes()
    with processes.watched():
        done = subprocess.run(
            [PENSTOCK, "run", worker, *files, "--until-done", "--verbose"],
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
            env={**os.environ, "TMPDIR": str(temporary)},
        )
    assert done.returncode == 1
    for name, (_, sentence) in refused.items():
        assert f"connector.failed name={name}-{scene.bucket} reason={sentence}\n" in done.stderr
    for name in ("scram", "plain", "mutual"):
        assert f"{name}-{scene.bucket}: 3 records in 1 objects" in done.stderr
        assert list_keys(s3, scene.bucket, f"{name}/") == [
            f"{name}/{scene.topic}/partition=0/{scene.topic}+0+0000000000.avro"
        ]
    stored = list(everything_stored(s3, scene.bucket))
    assert any(b'"commits"' in each for each in stored)
    assert any(b"java" in each for each in processes.seen)
    secrets = scene.secrets
    secrets.check("stdout or stderr", done.stdout, done.stderr)
    secrets.check("the bucket", *stored)
    secrets.check("ps", *processes.of_penstock())
    secrets.check("temporary files", *(path.read_bytes() for path in temporary.rglob("*") if path.is_file()))


def list_keys(s3, bucket: str, prefix: str) -> list[str]:
    return [each["Key"] for each in s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])]


@pytest.fixture
def directory(tmp_path_factory, stack) -> Path:
    """The folder of the shared stack."""
    (found,) = {
        each.resolve().parent
        for each in tmp_path_factory.getbasetemp().glob("stack-*/stack/stack.json")
        if stack.secret_access_key in each.read_text()
    }
    return found


def test_the_worker_shows_no_secret_whether_it_succeeds_or_fails(scene, s3, directory):
    url, refused = dev_stack.worker_url(directory), bad(scene)
    (scram, *_), failing = good(scene), [refused[name][0] for name in ("password", "store", "registry")]
    shown: list[str | bytes] = []
    processes = Processes()

    def ask(verb: str, path: str, body: object = None) -> str:
        answer = requests.request(verb, f"{url}{path}", json=body, timeout=120)
        shown.append(f"{answer.headers}{answer.text}")
        return answer.text

    def command(*arguments: str | Path) -> None:
        done = subprocess.run(
            [PENSTOCK, *arguments, "--dir", directory], capture_output=True, text=True, check=False, timeout=120
        )
        shown.extend((done.stdout, done.stderr))

    names = {file: f"{file.stem}-{scene.bucket}" for file in (scram, *failing)}
    try:
        with processes.watched():
            command("load", names[scram], "-d", scram)
            for file in failing:
                ask("POST", "/connectors", {"name": names[file], "config": texts(file)})
            for file, name in names.items():
                path, wanted = ("positions", '"last_object":"scram/') if file is scram else ("status", '"FAILED"')
                assert wanted in eventually(functools.partial(ask, "GET", f"/connectors/{name}/{path}"), wanted)
                for each in ("", "/status", "/positions"):
                    ask("GET", f"/connectors/{name}{each}")
            assert refused["password"][1] in ask("GET", f"/connectors/password-{scene.bucket}/status")
            command("status")
            command("log", f"store-{scene.bucket}")
        holding = {path for path in (directory / "worker").rglob("*.json") if "sesame" in path.read_text()}
        assert len(holding) == len(names)
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in holding)
    finally:
        for name in names.values():
            ask("DELETE", f"/connectors/{name}")
    secrets = scene.secrets
    secrets.check("the worker or a command", *shown)
    secrets.check("ps", *processes.of_penstock())
    secrets.check("the bucket", *everything_stored(s3, scene.bucket))
    secrets.check("a log", *(path.read_bytes() for path in (directory / "logs").iterdir()))


def texts(file: Path) -> dict[str, str]:
    return {name: value.text for name, value in read(file).items()}


def eventually(ask, wanted: str) -> str:
    """What `ask` gives once it holds `wanted`."""
    patiently = Retrying(
        retry=retry_if_result(lambda text: wanted not in text.replace(": ", ":")),
        stop=stop_after_delay(120),
        wait=wait_fixed(0.2),
        retry_error_callback=lambda state: state.outcome.result(),
    )
    return patiently(ask).replace(": ", ":")
