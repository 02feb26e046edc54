from __future__ import annotations

import pickle
from dataclasses import fields

import pytest

from penstock.errors import ConfigError
from penstock.kafka.oauth import OAuth
from penstock.kafka.properties import HARMLESS, PLAIN_PROPERTIES, REFUSED, SECURITY_PROPERTIES
from penstock.kafka.sasl import Login
from penstock.kafka.settings import KafkaSettings
from penstock.kafka.tls import Tls

SECURITY = "org.apache.kafka.common.security"
PLAIN_MODULE = f"{SECURITY}.plain.PlainLoginModule"
SCRAM_MODULE = f"{SECURITY}.scram.ScramLoginModule"
OAUTH_MODULE = f"{SECURITY}.oauthbearer.OAuthBearerLoginModule"
OAUTH_HANDLER = f"{SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler"
SERVERS = {"bootstrap.servers": "a:9092,b:9093"}
PLAIN = SERVERS | {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{PLAIN_MODULE} required username="ann" password="hush";',
}
OAUTH = SERVERS | {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.login.callback.handler.class": OAUTH_HANDLER,
    "sasl.oauthbearer.token.endpoint.url": "https://id.example.org/token?tenant=7",
    "sasl.jaas.config": (
        f'{OAUTH_MODULE} required clientId="ann" clientSecret="hush" scope="kafka" '
        'extension_logicalCluster="lkc-1" extension_identityPoolId="pool-2";'
    ),
}


def problems(properties: dict[str, str], places: dict[str, str] | None = None) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        KafkaSettings.parse(properties, None if places is None else lambda name: places.get(name, ""))
    return caught.value.problems


def test_bootstrap_servers_alone_are_enough() -> None:
    settings = KafkaSettings.parse({"bootstrap.servers": " a:9092 , [::1]:9093,SASL_SSL://c.example.org:9094"})
    assert settings == KafkaSettings("a:9092,[::1]:9093,c.example.org:9094")


def test_every_plain_property_has_a_field_with_the_same_default() -> None:
    defaults = {each.name: each.default for each in fields(KafkaSettings)}
    for each in PLAIN_PROPERTIES:
        assert defaults[each.field] == each.default, each.name
    settings = KafkaSettings.parse(SERVERS | {each.name: str(each.default) for each in PLAIN_PROPERTIES})
    assert settings == KafkaSettings.parse(SERVERS)


def test_no_property_is_declared_twice() -> None:
    tables = ({each.name for each in PLAIN_PROPERTIES}, set(SECURITY_PROPERTIES), set(HARMLESS), set(REFUSED))
    assert sum(map(len, tables)) == len(set().union(*tables))


def test_plain_properties_are_read_as_their_kind() -> None:
    settings = KafkaSettings.parse(
        SERVERS | {"check.crcs": "FALSE", "fetch.max.bytes": " 2048 ", "isolation.level": "read_uncommitted"}
    )
    assert settings.check_crcs is False
    assert settings.fetch_max_bytes == 2048
    assert settings.isolation_level == "read_uncommitted"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_takes_user_and_password_from_the_login_module(mechanism: str) -> None:
    settings = KafkaSettings.parse(
        SERVERS
        | {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{SCRAM_MODULE} required username="ann" password="hu;s\\"h=";',
        }
    )
    assert settings.security_protocol == "SASL_PLAINTEXT"
    assert settings.sasl == Login(mechanism, "ann", 'hu;s"h=')
    assert settings.tls is None


def test_plain_over_tls_trusts_the_system_where_no_trust_store_is_named() -> None:
    settings = KafkaSettings.parse(PLAIN)
    assert settings.sasl == Login("PLAIN", "ann", "hush")
    assert settings.tls == Tls()
    assert settings.tls.check_hostname


def test_oauth_is_read_from_the_login_module() -> None:
    assert KafkaSettings.parse(OAUTH | {"sasl.login.read.timeout.ms": "500"}).sasl == OAuth(
        endpoint="https://id.example.org/token?tenant=7",
        client_id="ann",
        client_secret="hush",
        scope="kafka",
        extensions=(("identityPoolId", "pool-2"), ("logicalCluster", "lkc-1")),
        read_timeout_ms=500,
    )


def test_oauth_is_read_from_the_properties_of_kafka_4_1_too() -> None:
    changed = {name: text for name, text in OAUTH.items() if name != "sasl.jaas.config"} | {
        "sasl.oauthbearer.client.credentials.client.id": "ann",
        "sasl.oauthbearer.client.credentials.client.secret": "hush",
        "sasl.oauthbearer.scope": "kafka",
        "sasl.oauthbearer.header.urlencode": "true",
    }
    sasl = KafkaSettings.parse(changed).sasl
    assert sasl == OAuth("https://id.example.org/token?tenant=7", "ann", "hush", scope="kafka", urlencode=True)


def test_harmless_properties_change_nothing() -> None:
    assert KafkaSettings.parse(SERVERS | dict.fromkeys(HARMLESS, "17")) == KafkaSettings.parse(SERVERS)


def test_refused_properties_may_be_there_without_a_value() -> None:
    assert KafkaSettings.parse(SERVERS | dict.fromkeys(REFUSED, "")) == KafkaSettings.parse(SERVERS)


MISTAKES = {
    "no servers": ({}, "bootstrap.servers must be set: brokers as host:port, separated by commas"),
    "no port": (
        {"bootstrap.servers": "a:1,b"},
        "bootstrap.servers must be host:port, separated by commas, got `b`",
    ),
    "no such port": (
        {"bootstrap.servers": "a:65536"},
        "bootstrap.servers must be host:port, separated by commas, got `a:65536`",
    ),
    "not a number": (
        SERVERS | {"fetch.min.bytes": "many"},
        "fetch.min.bytes must be a whole number from 0 to 2147483647, got `many`",
    ),
    "too small": (
        SERVERS | {"fetch.max.bytes": "1"},
        "fetch.max.bytes must be a whole number from 1024 to 2147483647, got `1`",
    ),
    "a wait that no answer survives": (
        SERVERS | {"fetch.max.wait.ms": "30000"},
        "fetch.max.wait.ms must be less than request.timeout.ms (`30000`), got `30000`",
    ),
    "not a word of the list": (
        SERVERS | {"auto.offset.reset": "newest"},
        "auto.offset.reset must be earliest, latest or none, got `newest`",
    ),
    "not a boolean": (SERVERS | {"check.crcs": "yes"}, "check.crcs must be true or false, got `yes`"),
    "lookup for Kerberos": (
        SERVERS | {"client.dns.lookup": "resolve_canonical_bootstrap_servers_only"},
        "client.dns.lookup must be use_all_dns_ips, got `resolve_canonical_bootstrap_servers_only`",
    ),
    "unknown, near": (
        SERVERS | {"fetch.min.byte": "1"},
        "fetch.min.byte is no property of Kafka's consumer; did you mean fetch.min.bytes?",
    ),
    "unknown, far": (SERVERS | {"colour": "blue"}, "colour is no property of Kafka's consumer"),
    "own group": (
        SERVERS | {"group.id": "mine"},
        "group.id cannot be set: positions are mirrored to the group `connect-<name of the connector>`; remove it",
    ),
    "Java code": (
        SERVERS | {"interceptor.classes": "com.example.Audit"},
        "interceptor.classes names Java code, which cannot run here; remove it",
    ),
    "cipher suites": (
        SERVERS | {"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"},
        "ssl.cipher.suites cannot be honoured for every connection; remove it and restrict suites at the brokers",
    ),
    "no such protocol": (
        SERVERS | {"security.protocol": "TLS"},
        "security.protocol must be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, got `TLS`",
    ),
    "login without SASL": (
        SERVERS | {"sasl.mechanism": "PLAIN"},
        (
            "sasl.mechanism has no effect with security.protocol=PLAINTEXT: "
            "set SASL_SSL or SASL_PLAINTEXT there, or remove it"
        ),
    ),
    "trust store without TLS": (
        SERVERS | {"ssl.truststore.location": "/no/such"},
        "ssl.truststore.location has no effect with security.protocol=PLAINTEXT: set SSL there, or remove it",
    ),
    "no mechanism": (
        SERVERS | {"security.protocol": "SASL_SSL"},
        (
            "sasl.mechanism must be PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER (Kerberos cannot be used here), "
            "it is not set, which means GSSAPI to Kafka"
        ),
    ),
    "Kerberos": (
        PLAIN | {"sasl.mechanism": "GSSAPI"},
        (
            "sasl.mechanism must be PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER (Kerberos cannot be used here), "
            "got `GSSAPI`"
        ),
    ),
    "IAM": (
        PLAIN | {"sasl.mechanism": "AWS_MSK_IAM"},
        (
            "sasl.mechanism must be PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER (IAM login to MSK cannot be "
            "used here; MSK also offers SCRAM-SHA-512), got `AWS_MSK_IAM`"
        ),
    ),
    "no login module": (
        {name: text for name, text in PLAIN.items() if name != "sasl.jaas.config"},
        f"sasl.jaas.config must be set: `{PLAIN_MODULE} required ...;`",
    ),
    "another login module": (
        PLAIN | {"sasl.jaas.config": f'{SCRAM_MODULE} required username="ann" password="hush";'},
        f"sasl.jaas.config must name {PLAIN_MODULE} for sasl.mechanism=PLAIN, got `{SCRAM_MODULE}`",
    ),
    "no semicolon": (
        PLAIN | {"sasl.jaas.config": f'{PLAIN_MODULE} required username="ann" password="hush"'},
        "sasl.jaas.config must end with a semicolon",
    ),
    "no password": (
        PLAIN | {"sasl.jaas.config": f'{PLAIN_MODULE} required username="ann";'},
        'sasl.jaas.config must hold the option password="..."',
    ),
    "delegation token": (
        PLAIN
        | {
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": f'{SCRAM_MODULE} required username="ann" password="hush" tokenauth=true;',
        },
        "sasl.jaas.config has the option tokenauth, which cannot be honoured; remove it",
    ),
    "own handler": (
        OAUTH | {"sasl.login.callback.handler.class": "com.example.Handler"},
        (
            "sasl.login.callback.handler.class names Java code, which cannot run here; only Kafka's own is known, "
            "got `com.example.Handler`"
        ),
    ),
    "handler of another mechanism": (
        PLAIN | {"sasl.login.callback.handler.class": OAUTH_HANDLER},
        "sasl.login.callback.handler.class fits sasl.mechanism=OAUTHBEARER only, which is PLAIN; remove it",
    ),
    "no token endpoint": (
        {name: text for name, text in OAUTH.items() if "endpoint" not in name},
        "sasl.oauthbearer.token.endpoint.url must be set: where tokens are fetched, https://...",
    ),
    "token endpoint that holds a password": (
        OAUTH | {"sasl.oauthbearer.token.endpoint.url": "https://ann:hush@id.example.org/token"},
        "sasl.oauthbearer.token.endpoint.url must be an address https://host/path without user or password in it",
    ),
    "token in a file": (
        OAUTH | {"sasl.oauthbearer.token.endpoint.url": "file:///token"},
        "sasl.oauthbearer.token.endpoint.url must be an address https://host/path without user or password in it",
    ),
    "no client secret": (
        OAUTH | {"sasl.jaas.config": f'{OAUTH_MODULE} required clientId="ann";'},
        'sasl.jaas.config must hold the option clientSecret="..."',
    ),
    "unsecured token": (
        OAUTH
        | {
            "sasl.jaas.config": f'{OAUTH_MODULE} required clientId="ann" clientSecret="hush" '
            'unsecuredLoginStringClaim_sub="ann";'
        },
        (
            "sasl.jaas.config has the option unsecuredLoginStringClaim_sub, which cannot be honoured "
            "(unsecured tokens are for trials of brokers only); remove it"
        ),
    ),
    "time that is none": (
        OAUTH | {"sasl.login.read.timeout.ms": "soon"},
        "sasl.login.read.timeout.ms must be a whole number from 1 to 2147483647, got `soon`",
    ),
    "host check of another kind": (
        PLAIN | {"ssl.endpoint.identification.algorithm": "ldaps"},
        "ssl.endpoint.identification.algorithm must be https or empty, got `ldaps`",
    ),
    "old TLS only": (
        PLAIN | {"ssl.enabled.protocols": "TLSv1.2,TLSv1.1"},
        (
            "ssl.enabled.protocols must hold TLSv1.2 and TLSv1.3, for both are offered "
            "(restrict versions at the brokers), got `TLSv1.2,TLSv1.1`"
        ),
    ),
    "TLS 1.2 only": (
        PLAIN | {"ssl.protocol": "TLSv1.2"},
        "ssl.protocol must be TLSv1.3 or TLS (restrict versions at the brokers), got `TLSv1.2`",
    ),
}


@pytest.mark.parametrize(("properties", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_sentence(properties: dict[str, str], sentence: str) -> None:
    assert problems(properties) == (sentence,)


def test_all_mistakes_are_told_at_once_each_with_its_place() -> None:
    wrong = {"bootstrap.servers": "a", "fetch.min.bytes": "x", "group.id": "g", "sasl.jaas.config": "hush"}
    places = {"fetch.min.bytes": "worker.properties:7", "group.id": "worker.properties:9"}
    assert problems(wrong, places) == (
        (
            "worker.properties:9: group.id cannot be set: positions are mirrored to the group "
            "`connect-<name of the connector>`; remove it"
        ),
        "bootstrap.servers must be host:port, separated by commas, got `a`",
        "worker.properties:7: fetch.min.bytes must be a whole number from 0 to 2147483647, got `x`",
        (
            "sasl.jaas.config has no effect with security.protocol=PLAINTEXT: "
            "set SASL_SSL or SASL_PLAINTEXT there, or remove it"
        ),
    )


@pytest.mark.parametrize("properties", [PLAIN, OAUTH], ids=["password", "client secret"])
def test_secrets_survive_pickle_and_are_never_shown(properties: dict[str, str]) -> None:
    settings = KafkaSettings.parse(properties)
    again = pickle.loads(pickle.dumps(settings))
    assert again == settings
    for text in (repr(again), str(again), f"{again}"):
        assert "ann" in text
        assert "hush" not in text


@pytest.mark.parametrize(
    "jaas",
    [
        f"{PLAIN_MODULE} required username=ann password=hush==;",
        f'{PLAIN_MODULE} required username="ann" password="hush;',
        f"hush {PLAIN_MODULE} required;",
        f'{PLAIN_MODULE} required username="ann" hush;',
        f'{PLAIN_MODULE} required username="ann" password="hush"; {PLAIN_MODULE} required;',
    ],
)
def test_a_login_module_that_cannot_be_read_is_not_repeated_in_the_message(jaas: str) -> None:
    (problem,) = problems(PLAIN | {"sasl.jaas.config": jaas})
    assert problem.startswith("sasl.jaas.config must") or problem == (
        "sasl.jaas.config has a quotation mark that is never closed"
    )
    assert "hush" not in problem


def test_librdkafka_is_told_all_that_it_can_honour() -> None:
    config = KafkaSettings.parse(
        PLAIN | {"client.id": "me", "client.rack": "r1", "request.timeout.ms": "1000", "retry.backoff.ms": "5000"}
    ).librdkafka_config()
    wanted = {
        "bootstrap.servers": "a:9092,b:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": "hush",
        "ssl.endpoint.identification.algorithm": "https",
        "client.id": "me",
        "client.rack": "r1",
        "socket.timeout.ms": 1000,
        "retry.backoff.ms": 5000,
        "retry.backoff.max.ms": 5000,
        "log_level": 0,
    }
    assert {name: config.get(name) for name in wanted} == wanted


def test_times_that_librdkafka_does_not_take_become_the_nearest_it_takes() -> None:
    config = KafkaSettings.parse(
        SERVERS | {"retry.backoff.ms": "0", "metadata.max.age.ms": str(2**62), "request.timeout.ms": "1"}
    ).librdkafka_config()
    assert (config["retry.backoff.ms"], config["metadata.max.age.ms"]) == (1, 86_400_000)
    assert config["socket.timeout.ms"] == 10


def test_aiokafka_is_told_all_that_it_can_honour() -> None:
    kwargs = KafkaSettings.parse(
        PLAIN | {"client.id": "me", "request.timeout.ms": "1000", "connections.max.idle.ms": "7000"}
    ).aiokafka_kwargs()
    wanted = {
        "bootstrap_servers": "a:9092,b:9093",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "ann",
        "sasl_plain_password": "hush",
        "client_id": "me",
        "request_timeout_ms": 1000,
        "connections_max_idle_ms": 7000,
    }
    assert {name: kwargs.get(name) for name in wanted} == wanted
    assert kwargs["ssl_context"].get_ca_certs()  # type: ignore[attr-defined] - those of the system


def test_a_short_request_timeout_leaves_room_for_the_broker_s_wait() -> None:
    assert KafkaSettings.parse(SERVERS | {"request.timeout.ms": "300"}).fetch_max_wait_ms == 150
    assert KafkaSettings.parse(SERVERS | {"request.timeout.ms": "5000"}).fetch_max_wait_ms == 500
