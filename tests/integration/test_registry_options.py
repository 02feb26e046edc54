"""How the registry is reached: logins, certificates, several addresses, outages; and what is said when it is not."""

import functools
import uuid

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from certificates import authority, issue
from penstock import registry as registry_module
from penstock.errors import ConfigError, RegistryUnavailable
from penstock.loading import load
from penstock.registry import Registry
from registry_front import Front, basic, front

pytestmark = pytest.mark.stack

TEXT = '{"type":"record","name":"r","fields":[{"name":"f1","type":"string"}]}'
PASSWORD = "hush-hush"
ANN = basic("ann", PASSWORD)
GONE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """The client's pauses between attempts, made short; no client outlives its test."""
    pauses = "confluent_kafka.schema_registry._sync.schema_registry_client.full_jitter"
    monkeypatch.setattr(pauses, lambda *_: 1.0)
    made = []

    @functools.cache
    def client(config):
        made.append(registry_module.SchemaRegistryClient(dict(config)))
        return made[-1]

    monkeypatch.setattr(registry_module, "_client", client)
    yield
    for each in made:
        each.__exit__()


@pytest.fixture
def known(stack):
    """A subject and the id of its schema."""
    subject = f"{uuid.uuid4().hex}-value"
    with SchemaRegistryClient({"url": stack.schema_registry_url}) as client:
        return client.register_schema(subject, Schema(TEXT, "AVRO")), subject


@pytest.fixture
def behind(stack):
    return stack.schema_registry_url


def from_properties(**options):
    """The registry as a connector's file gives it; `__` stands for a dot."""
    named = {f"value.converter.{name.replace('__', '.')}": text for name, text in options.items()}
    connector = {
        "name": "x",
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": "t",
        "flush.size": "3",
        "s3.bucket.name": "b",
        "s3.region": "us-east-1",
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "format.class": "avro",
        "value.converter": "avro",
        **named,
    }
    config, _ = load(connector, {"bootstrap.servers": "127.0.0.1:9"})
    return Registry.of(config.converter_options, "value.converter")


def refusal(registry):
    with pytest.raises(RegistryUnavailable) as caught:
        registry.check()
    assert PASSWORD not in str(caught.value)
    assert PASSWORD not in repr(registry)
    assert "\n" not in str(caught.value)
    return str(caught.value), caught.value.transient


def test_without_a_login(behind, known):
    found = from_properties(schema__registry__url=behind).schema(*known)
    assert (found.text, found.kind, found.version) == (TEXT, "AVRO", 1)


def test_a_login_in_the_address(behind, known):
    with front(Front(behind, ANN)) as given:
        url = given.url.replace("//", f"//ann:{PASSWORD}@")
        registry = from_properties(schema__registry__url=url)
        assert registry.schema(*known).text == TEXT
        assert PASSWORD not in registry.url
    assert set(given.seen) == {ANN}


@pytest.mark.parametrize("name", ["basic__auth__user__info", "schema__registry__basic__auth__user__info"])
def test_a_login_in_a_property_of_its_own(behind, known, name):
    with front(Front(behind, ANN)) as given:
        options = {"basic__auth__credentials__source": "USER_INFO", name: f"ann:{PASSWORD}"}
        assert from_properties(schema__registry__url=given.url, **options).schema(*known).text == TEXT


def test_a_password_may_hold_colons_and_signs(behind, known):
    with front(Front(behind, basic("ann", "a:b@c/d%"))) as given:
        source = {"basic__auth__credentials__source": "USER_INFO"}
        user = {"basic__auth__user__info": "ann:a:b@c/d%"}
        assert from_properties(schema__registry__url=given.url, **source, **user).schema(*known).text == TEXT
        url = given.url.replace("//", "//ann:a%3Ab%40c%2Fd%25@")
        assert from_properties(schema__registry__url=url).schema(*known).text == TEXT


@pytest.mark.parametrize("login", [f"ann:{PASSWORD}", ""])
def test_a_wrong_password_or_none_is_one_sentence_without_it(behind, login):
    with front(Front(behind, basic("ann", "right"))) as given:
        options = {"basic__auth__credentials__source": "USER_INFO", "basic__auth__user__info": login} if login else {}
        registry = from_properties(schema__registry__url=given.url, **options)
        assert refusal(registry) == (
            f"the Schema Registry at {given.url} refuses this client (HTTP 401); check basic.auth.user.info",
            False,
        )


def test_a_token_is_sent_in_place_of_a_login(behind, known):
    with front(Front(behind, f"Bearer {PASSWORD}")) as given:
        options = {"schema.registry.url": given.url, "bearer.auth.credentials.source": "STATIC_TOKEN"}
        registry = Registry.of({**options, "bearer.auth.token": PASSWORD}, "value.converter")
        assert registry.schema(*known).text == TEXT
        given.wanted = "Bearer another"
        assert refusal(registry)[0].endswith("refuses this client (HTTP 401); check bearer.auth.token")


@pytest.fixture(scope="module")
def issuer():
    return authority("root")


def test_tls_with_an_authority_of_ones_own(behind, known, issuer, tmp_path):
    (tmp_path / "ca.pem").write_text(issuer.certificate_pem)
    with front(Front(behind, ANN), issue("front", issuer), tmp_path) as given:
        url = given.url.replace("//", f"//ann:{PASSWORD}@")
        options = {"schema__registry__ssl__ca__location": str(tmp_path / "ca.pem")}
        assert from_properties(schema__registry__url=url, **options).schema(*known).text == TEXT


def test_an_authority_that_is_not_trusted_is_named_at_once(behind, issuer, tmp_path):
    (tmp_path / "ca.pem").write_text(authority("another").certificate_pem)
    with front(Front(behind), issue("front", issuer), tmp_path) as given:
        options = {"schema__registry__ssl__ca__location": str(tmp_path / "ca.pem")}
        sentence, transient = refusal(from_properties(schema__registry__url=given.url, **options))
        assert sentence == (
            f"the certificate of the Schema Registry at {given.url} is not accepted (unable to get local issuer "
            "certificate); put its authority's certificate (PEM) into schema.registry.ssl.ca.location"
        )
        assert not transient


def test_a_certificate_of_another_host_is_named(behind, issuer, tmp_path):
    (tmp_path / "ca.pem").write_text(issuer.certificate_pem)
    with front(Front(behind), issue("front", issuer, hosts=("registry.example.org",)), tmp_path) as given:
        options = {"schema__registry__ssl__ca__location": str(tmp_path / "ca.pem")}
        sentence, transient = refusal(from_properties(schema__registry__url=given.url, **options))
        assert "is not accepted (IP address mismatch" in sentence
        assert not transient


@pytest.mark.parametrize(("content", "reason"), [(None, "No such file or directory"), ("nonsense", "no certificate")])
def test_certificates_that_cannot_be_read_are_named(tmp_path, content, reason):
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    options = {"schema__registry__ssl__ca__location": str(file)}
    sentence, transient = refusal(from_properties(schema__registry__url="https://127.0.0.1:9", **options))
    assert sentence.startswith(f"the certificates for the Schema Registry cannot be used ({reason}")
    assert sentence.endswith(f"); correct schema.registry.ssl.ca.location `{file}`")
    assert not transient


def test_the_next_address_is_asked_where_one_is_away(behind, known):
    with front(Front(behind)) as given:
        assert from_properties(schema__registry__url=f"{GONE}, {given.url}").schema(*known).text == TEXT
        assert given.seen


def test_addresses_that_are_all_away_are_waited_for(behind):
    with front(Front(behind)) as given:
        pass
    assert refusal(from_properties(schema__registry__url=f"{GONE},{given.url}")) == (
        f"the Schema Registry at {GONE},{given.url} does not answer (Connection refused); check that it runs",
        True,
    )


def test_an_outage_of_a_moment_is_passed_over(behind, known):
    with front(Front(behind, failures=[503, 500])) as given:
        assert from_properties(schema__registry__url=given.url).schema(*known).text == TEXT


def test_an_outage_that_stays_is_waited_for(behind):
    with front(Front(behind, failures=[503] * 9)) as given:
        assert refusal(from_properties(schema__registry__url=given.url)) == (
            f"the Schema Registry at {given.url} does not answer (store away, HTTP 503); check that it runs",
            True,
        )


def test_an_id_that_is_not_there_is_asked_for_again(behind, known):
    schema_id, subject = known
    registry = from_properties(schema__registry__url=behind)
    assert registry.schema(schema_id + 100_000, subject) is None
    assert registry.schema(schema_id, subject).version == 1


@pytest.mark.parametrize(("page", "behind_path"), [(b"<html>Welcome</html>", ""), (None, "/no/such/place")])
def test_what_is_no_registry_is_told(behind, page, behind_path):
    with front(Front(behind, page=page)) as given:
        sentence, transient = refusal(from_properties(schema__registry__url=given.url + behind_path))
        assert sentence.startswith(f"what answers at {given.url}{behind_path} is no Schema Registry")
        assert sentence.endswith("correct schema.registry.url")
        assert not transient


def test_no_address_is_a_mistake_of_the_configuration():
    with pytest.raises(ConfigError, match=r"value\.converter\.schema\.registry\.url must be set"):
        Registry.of({}, "value.converter")
