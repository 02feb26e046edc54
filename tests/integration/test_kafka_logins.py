from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import pickle
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from certificates import YESTERDAY, authority, issue
from penstock.errors import KafkaUnavailable
from penstock.kafka.brokers import Brokers
from penstock.kafka.cluster import MARK, Cluster, GroupOffset
from penstock.kafka.settings import KafkaSettings
from penstock.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from secured_broker import SecuredBroker

pytestmark = pytest.mark.stack

Login = "Callable[[SecuredBroker, Path], Mapping[str, str]]"


@pytest.fixture(scope="module")
def folder(secured_folder: Path) -> Path:
    return secured_folder


@pytest.fixture(scope="module")
def broker(secured: SecuredBroker) -> SecuredBroker:
    return secured


@pytest.fixture(scope="module")
def anyone(broker: SecuredBroker) -> KafkaSettings:
    return KafkaSettings.parse({"bootstrap.servers": broker.servers("plain")})


@pytest.fixture(scope="module")
def admin(anyone: KafkaSettings) -> AdminClient:
    return AdminClient(anyone.librdkafka_config())


@pytest.fixture(scope="module")
def make_topic(admin: AdminClient) -> Callable[..., str]:
    numbers = itertools.count()

    def make(partitions: int = 1) -> str:
        name = f"topic-{next(numbers)}"
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result()
        return name

    return make


def produce(settings: KafkaSettings, topic: str, *values: str, partition: int = 0, timestamp: int = 0) -> None:
    producer = Producer(settings.librdkafka_config())
    for value in values:
        producer.produce(topic, value, partition=partition, timestamp=timestamp)
    assert producer.flush(30) == 0


async def leaders(settings: KafkaSettings, topic: str) -> Mapping[TopicPartition, int]:
    """Who leads the topic's partitions, by the sink's own connections."""
    brokers = Brokers(settings.aiokafka_kwargs())
    try:
        return (await brokers.topology([topic])).leaders
    finally:
        await brokers.close()


def eventually(ask: Callable[[], object]) -> object:
    """What `ask` gives once the broker has caught up with what was asked of it before."""
    patiently = Retrying(
        stop=stop_after_delay(120),
        wait=wait_fixed(0.05),
        retry=retry_if_exception_type(KafkaUnavailable),
        reraise=True,
    )
    return patiently(ask)


LOGINS = {
    "PLAIN": lambda broker, _: broker.password_login("PLAIN", "bob", "bob-secret"),
    "PLAIN without TLS": lambda broker, _: broker.password_login("PLAIN", "bob", "bob-secret", "clear"),
    "SCRAM-SHA-256": lambda broker, _: broker.password_login("SCRAM-SHA-256", "alice", "alice-secret"),
    "SCRAM-SHA-512": lambda broker, _: broker.password_login("SCRAM-SHA-512", "albert", "albert-secret"),
    "OAUTHBEARER": lambda broker, folder: broker.oauth_login(folder / "root.pem"),
    "client certificate below an intermediate authority": lambda broker, _: broker.certificate_login(),
}


@pytest.mark.parametrize("login", LOGINS.values(), ids=LOGINS)
def test_both_clients_log_in_after_a_trip_through_pickle(
    login: Login, broker: SecuredBroker, folder: Path, make_topic: Callable[..., str]
) -> None:
    topic = make_topic()
    settings = pickle.loads(pickle.dumps(KafkaSettings.parse(login(broker, folder))))
    produce(settings, topic, "a", "b")

    with Cluster(settings) as cluster:
        assert topic in cluster.topics()
        assert cluster.log_ends([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): 2}
    assert list(asyncio.run(leaders(settings, topic))) == [TopicPartition(topic, 0)]


def test_one_token_serves_all_clients_of_a_process(broker: SecuredBroker, folder: Path) -> None:
    settings = KafkaSettings.parse(broker.oauth_login(folder / "root.pem"))
    with Cluster(settings) as cluster:
        cluster.topics()
    before = len(broker.tokens_given)
    with Cluster(settings) as cluster:
        cluster.topics()
    assert len(broker.tokens_given) == before > 0


@pytest.mark.parametrize("password", ["bob-secret", "not-his"])
def test_no_socket_is_left_open_whether_the_login_succeeds_or_not(broker: SecuredBroker, password: str) -> None:
    settings = KafkaSettings.parse(broker.password_login("PLAIN", "bob", password))
    with contextlib.suppress(KafkaUnavailable):
        asyncio.run(leaders(settings, "none"))
    gc.collect()  # warns of an unclosed socket, which fails the test


WITHOUT_HOST_CHECK = {"ssl.endpoint.identification.algorithm": ""}


def test_an_empty_identification_algorithm_accepts_another_host_name(broker: SecuredBroker) -> None:
    settings = KafkaSettings.parse(broker.certificate_login("stranger") | WITHOUT_HOST_CHECK)
    with Cluster(settings) as cluster:
        cluster.topics()
    asyncio.run(leaders(settings, "none"))


def other_root() -> dict[str, str]:
    return {"ssl.truststore.certificates": authority("Some Other Root").certificate_pem}


def without_keystore(broker: SecuredBroker) -> dict[str, str]:
    return {name: text for name, text in broker.certificate_login().items() if "keystore" not in name}


REFUSALS = {
    "wrong password, SCRAM": (
        lambda broker, _: broker.password_login("SCRAM-SHA-256", "alice", "not-hers"),
        (
            "Kafka at {secure} refuses the login of user `alice` with SCRAM-SHA-256: "
            "check username and password in sasl.jaas.config"
        ),
    ),
    "wrong password, PLAIN": (
        lambda broker, _: broker.password_login("PLAIN", "bob", "not-his"),
        "Kafka at {secure} refuses the login of user `bob` with PLAIN: check username and password in sasl.jaas.config",
    ),
    "mechanism that the listener does not offer": (
        lambda broker, _: broker.password_login("SCRAM-SHA-512", "albert", "albert-secret", "clear"),
        (
            "Kafka at {clear} does not offer sasl.mechanism=SCRAM-SHA-512: "
            "set one of PLAIN, SCRAM-SHA-256, OAUTHBEARER, or ask for another listener"
        ),
    ),
    "login where none is wanted": (
        lambda broker, _: (
            broker.password_login("PLAIN", "bob", "bob-secret", "clear")
            | {"bootstrap.servers": broker.servers("plain")}
        ),
        (
            "Kafka at {plain} wants no login at this port: set security.protocol=PLAINTEXT, "
            "or name the port of its SASL listener in bootstrap.servers"
        ),
    ),
    "authority that is not trusted": (
        lambda broker, _: broker.password_login("PLAIN", "bob", "bob-secret") | other_root(),
        (
            "the certificate of the Kafka broker {secure} is signed by an authority that is not trusted: put that "
            "authority's certificate into ssl.truststore.location or ssl.truststore.certificates"
        ),
    ),
    "expired certificate of the broker": (
        lambda broker, _: broker.certificate_login("expired"),
        "the certificate of the Kafka broker {expired} has expired: renew it at the broker",
    ),
    "certificate for another host": (
        lambda broker, _: broker.certificate_login("stranger"),
        (
            "the certificate of the Kafka broker {stranger} names another host: use in bootstrap.servers a name that "
            "the certificate holds (or, if you can do without that check, set ssl.endpoint.identification.algorithm to "
            "nothing)"
        ),
    ),
    "no client certificate": (
        lambda broker, _: without_keystore(broker),
        (
            "Kafka at {mutual} asks for a client certificate: set ssl.keystore.location, "
            "or ssl.keystore.certificate.chain and ssl.keystore.key"
        ),
    ),
    "expired client certificate": (
        lambda broker, _: broker.certificate_login(own=issue("late", broker.root, last_day=YESTERDAY)),
        (
            "Kafka at {mutual} refuses the client certificate of `CN=late` (certificate unknown; valid until "
            "{yesterday}): renew it if that is over, else have its authority trusted by the brokers"
        ),
    ),
    "wrong client secret": (
        lambda broker, folder: broker.oauth_login(folder / "root.pem", secret="not-hers"),
        (
            "the token endpoint {token_url} gives no token to client `carol`: 401 no such client; "
            "check clientId, clientSecret and scope in sasl.jaas.config"
        ),
    ),
    "token endpoint that is not trusted": (
        lambda broker, folder: broker.oauth_login(folder / "other.pem"),
        (
            "the token endpoint {token_url} cannot be trusted: unable to get local issuer certificate; "
            "check its certificate and the trusted ones"
        ),
    ),
}


@pytest.mark.parametrize(("login", "sentence"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_is_told_at_once_in_one_sentence_without_secrets(
    login: Login, sentence: str, broker: SecuredBroker, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = KafkaSettings.parse(login(broker, folder))
    with pytest.raises(KafkaUnavailable) as caught, Cluster(settings, timeout_s=60) as cluster:
        cluster.topics()
    listeners = {name: broker.servers(name) for name in broker.ports}
    assert str(caught.value) == sentence.format(
        **listeners, token_url=broker.token_url, yesterday=f"{YESTERDAY:%Y-%m-%d}"
    )
    assert not caught.value.transient
    assert "not-h" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


SILENCES = {
    "nobody listens": (
        lambda _: {"bootstrap.servers": "localhost:1"},
        (
            "Kafka at localhost:1 does not answer within 1 s (Connect to ipv4#127.0.0.1:1 failed: Connection refused): "
            "check bootstrap.servers, and that the brokers run and can be reached from here"
        ),
    ),
    "unknown host": (
        lambda _: {"bootstrap.servers": "kafka.invalid:9092"},
        (
            "Kafka at kafka.invalid:9092 does not answer within 1 s (Failed to resolve 'kafka.invalid:9092': "
            "Name or service not known): check bootstrap.servers, and that the brokers run and can be reached from here"
        ),
    ),
    "port speaks TLS": (
        lambda broker: {"bootstrap.servers": broker.servers("expired")},
        (
            "Kafka at {expired} does not answer within 1 s: its port speaks TLS; "
            "security.protocol=PLAINTEXT should be SSL or SASL_SSL"
        ),
    ),
    "port wants a login": (
        lambda broker: {"bootstrap.servers": broker.servers("clear")},
        (
            "Kafka at {clear} does not answer within 1 s: its port is open; if it wants a login, "
            "security.protocol=PLAINTEXT should be SASL_PLAINTEXT"
        ),
    ),
    "port speaks no TLS": (
        lambda broker: {"bootstrap.servers": broker.servers("plain"), "security.protocol": "SSL"} | broker.tls(),
        (
            "Kafka at {plain} does not answer within 1 s: its port is open but speaks no TLS; "
            "security.protocol=SSL should perhaps be PLAINTEXT"
        ),
    ),
}


@pytest.mark.parametrize(("where", "sentence"), SILENCES.values(), ids=SILENCES)
def test_silence_is_told_when_the_time_is_over_and_may_pass(
    where: Callable[[SecuredBroker], Mapping[str, str]], sentence: str, broker: SecuredBroker
) -> None:
    settings = KafkaSettings.parse(where(broker))
    began = time.monotonic()
    with pytest.raises(KafkaUnavailable) as caught, Cluster(settings, timeout_s=1) as cluster:
        cluster.topics()
    assert str(caught.value) == sentence.format(**{name: broker.servers(name) for name in broker.ports})
    assert caught.value.transient
    assert time.monotonic() - began < 30


def test_two_thousand_partitions_are_asked_in_one_call(anyone: KafkaSettings, make_topic: Callable[..., str]) -> None:
    topic = make_topic(2000)
    tps = [TopicPartition(topic, partition) for partition in range(2000)]
    with Cluster(anyone, timeout_s=60) as cluster:
        # The broker is still making their files when it says that the topic is there.
        ends = eventually(lambda: cluster.log_ends(tps))
        assert ends == dict.fromkeys(tps, 0)


def grant(admin: AdminClient, kind: ResourceType, name: str, *operations: AclOperation) -> None:
    bindings = [
        AclBinding(kind, name, ResourcePatternType.LITERAL, "User:nobody", "*", operation, AclPermissionType.ALLOW)
        for operation in operations
    ]
    for future in admin.create_acls(bindings).values():
        future.result()


def test_what_acls_forbid_is_named_with_the_right_that_is_missing(
    broker: SecuredBroker, admin: AdminClient, make_topic: Callable[..., str]
) -> None:
    topic = make_topic()
    tp = TopicPartition(topic, 0)
    nobody = KafkaSettings.parse(broker.password_login("PLAIN", "nobody", "nobody-secret"))
    group_sentence = (
        "Kafka does not let user `nobody` use consumer group `connect-acl`: grant it DESCRIBE and READ on the group"
    )
    topic_sentence = f"Kafka does not let user `nobody` read topic `{topic}`: grant it DESCRIBE and READ on the topic"
    with Cluster(nobody) as cluster:
        assert topic not in cluster.topics()
        with pytest.raises(KafkaUnavailable) as caught:
            cluster.log_ends([tp])
        assert str(caught.value) == topic_sentence
        assert not caught.value.transient
        grant(admin, ResourceType.TOPIC, topic, AclOperation.DESCRIBE)
        assert eventually(lambda: cluster.log_ends([tp])) == {tp: 0}
        for forbidden in (
            lambda: cluster.committed("connect-acl", [tp]),
            lambda: cluster.mirror("connect-acl", {tp: 1}),
        ):
            with pytest.raises(KafkaUnavailable) as caught:
                forbidden()
            assert str(caught.value) == group_sentence
            assert not caught.value.transient
        grant(admin, ResourceType.GROUP, "connect-acl", AclOperation.DESCRIBE, AclOperation.READ)
        assert eventually(lambda: cluster.committed("connect-acl", [tp])) == {}
        with pytest.raises(KafkaUnavailable) as caught:
            cluster.mirror("connect-acl", {tp: 1})
        assert str(caught.value) == topic_sentence
        grant(admin, ResourceType.TOPIC, topic, AclOperation.READ)
        eventually(lambda: cluster.mirror("connect-acl", {tp: 1}))
        assert cluster.committed("connect-acl", [tp]) == {tp: GroupOffset(1, MARK)}


def test_no_file_with_a_key_is_left_behind(
    broker: SecuredBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    KafkaSettings.parse(broker.certificate_login()).aiokafka_kwargs()
    assert list(tmp_path.iterdir()) == []
