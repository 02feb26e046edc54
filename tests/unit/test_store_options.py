"""The store's options: every sentence about what cannot be, what is sent, and whose credentials sign it."""

import base64
import hashlib
import pickle
import sys
import types
from datetime import datetime, timedelta, timezone

import pytest
from botocore.awsrequest import AWSResponse
from botocore.credentials import Credentials

from penstock import pipeline
from penstock.config.load import load_sink
from penstock.config.properties import parse
from penstock.errors import ConfigError, StoreUnavailable
from penstock.store import credentials, faults
from penstock.store.base import Create, NotFoundError, Part, Upload
from penstock.store.options import Role, Sending, StoreOptions, with_login
from penstock.store.s3 import store
from penstock.store.tags import Tagging
from penstock.store.upload import Owner, Uploads, abort_leftovers

HEAD = (
    "name=s\nconnector.class=S3SinkConnector\ntopics=t\nflush.size=3\ns3.bucket.name=b\n"
    "format.class=bytes\nvalue.converter=bytes\n"
)
LINE = len(HEAD.splitlines()) + 1
WORKER = parse("bootstrap.servers=k:9092\n", "w")
KEY = base64.b64encode(bytes(range(32))).decode()
PROVIDER = "s3.credentials.provider"
RULE = "must be KEY:VALUE with commas (letters, digits, blanks and `+-=._/@`), not"


def load(text, head=HEAD):
    return load_sink(parse(head + text, "f"), WORKER)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "s3.sse.customer.key=cGxhbnRlZA==",
            "s3.sse.customer.key must be 32 bytes in base64, these are 7 bytes, got `****`",
        ),
        ("s3.sse.customer.key=planted!", "s3.sse.customer.key must be 32 bytes in base64, it is no base64, got `****`"),
        (
            f"s3.sse.customer.key={KEY}\ns3.ssea.name=aws:kms",
            "s3.sse.customer.key encrypts with AES256 only; set s3.ssea.name=AES256",
        ),
        (f"s3.sse.customer.key={KEY}", "s3.sse.customer.key encrypts with AES256 only; set s3.ssea.name=AES256"),
        ("s3.ssea.name=AES128", "s3.ssea.name must be AES256, aws:kms or aws:kms:dsse, got `AES128`"),
        (
            "s3.acl.canned=planted",
            (
                "s3.acl.canned must be private, public-read, public-read-write, authenticated-read, aws-exec-read, "
                "bucket-owner-read or bucket-owner-full-control, got `planted`"
            ),
        ),
        (
            "s3.wan.mode=true",
            (
                "s3.wan.mode needs the bucket in the host's name; set s3.path.style.access.enabled=false, "
                "which is true by default"
            ),
        ),
        ("s3.proxy.url=planted:3128", "s3.proxy.url must be http://HOST:PORT or https://HOST:PORT, got `****`"),
        (
            "s3.proxy.password=planted\ns3.proxy.url=http://p:1",
            "s3.proxy.password is of no use without s3.proxy.user; set that",
        ),
        (
            "s3.object.tagging.key.value.pairs=planted",
            f"s3.object.tagging.key.value.pairs {RULE} `planted`, got `planted`",
        ),
        (
            "s3.object.tagging.key.value.pairs=a:1,a:2",
            (
                "s3.object.tagging.key.value.pairs must name each tag once, beside startOffset, endOffset, "
                "recordCount: not `a`, got `a:1,a:2`"
            ),
        ),
        (f"{PROVIDER}.class=assume_role", f"{PROVIDER}.class assumes a role; set {PROVIDER}.sts.role.arn"),
        (
            f"{PROVIDER}.sts.rule.arn=x",
            f"unknown property `{PROVIDER}.sts.rule.arn`; did you mean `{PROVIDER}.sts.role.arn`?",
        ),
        ("s3.compression.level=10", "s3.compression.level must be an integer from -1 to 9, got `10`"),
        ("s3.part.size=5242879", "s3.part.size must be an integer >= 5242880, got `5242879`"),
        ("s3.part.size=2147483648", "s3.part.size must be an integer <= 2147483647, got `2147483648`"),
        ("s3.part.retries=-1", "s3.part.retries must be an integer >= 0, got `-1`"),
    ],
)
def test_what_cannot_be_is_one_sentence(text, sentence):
    with pytest.raises(ConfigError) as caught:
        load(text + "\n")
    assert list(caught.value.problems) == [f"f:{LINE}: {sentence}"]


@pytest.mark.parametrize("text", ["store.url=https://other", "s3.bucket.name=a.b"])
def test_acceleration_is_for_amazon_s_buckets_without_a_dot(text):
    accelerated = "s3.wan.mode=true\ns3.path.style.access.enabled=false\n"
    assert load(accelerated).store.wan_mode
    with pytest.raises(ConfigError, match=r"s3\.wan\.mode is "):
        load(f"{accelerated}{text}\n")


@pytest.mark.parametrize("name", ["avro", "parquet", "block_gzip"])
def test_only_json_and_bytes_are_compressed_whole(name):
    with pytest.raises(ConfigError) as caught:
        load("s3.compression.type=gzip\n", HEAD.replace("format.class=bytes", f"format.class={name}"))
    assert any("for the formats json and bytes" in each for each in caught.value.problems) or name != "avro"


@pytest.mark.parametrize(("given", "codec"), [("zstd", "zstandard"), ("zstandard", "zstandard"), ("xz", "xz")])
def test_both_names_of_zstandard_are_known(given, codec):
    assert load(f"avro.codec={given}\n").avro_codec == codec


def test_what_has_no_effect_is_warned_about_and_a_key_in_clear_text_too():
    text = f"{PROVIDER}.sts.role.arn=x\ns3.proxy.user=u\ns3.sse.kms.key.id=k\ns3.object.tagging.key.value.pairs=a:1\n"
    assert load(text).warnings == (
        f"f:{LINE}: {PROVIDER}.sts.role.arn has no effect without {PROVIDER}.class=`assume_role`",
        f"f:{LINE + 1}: s3.proxy.user has no effect without s3.proxy.url",
        f"f:{LINE + 2}: s3.sse.kms.key.id has no effect without s3.ssea.name=`aws:kms` or `aws:kms:dsse`",
        f"f:{LINE + 3}: s3.object.tagging.key.value.pairs has no effect without s3.object.tagging=`true`",
    )
    clear = load(f"s3.sse.customer.key={KEY}\ns3.ssea.name=AES256\nstore.url=http://x\n")
    assert clear.warnings == (f"f:{LINE}: s3.sse.customer.key goes to store.url in clear text; use https there",)


def test_no_secret_is_in_any_repr():
    config = load(
        f"s3.sse.customer.key={KEY}\ns3.ssea.name=AES256\ns3.proxy.url=socks://me:planted1@proxy\n"
        f"s3.proxy.password=planted2\naws.access.key.id=k\naws.secret.access.key=planted3\n"
        f"{PROVIDER}.class=mine:Provider\n{PROVIDER}.token=planted4\n"
    )
    options = pipeline._store_options(config)
    assert options.proxy == "https://me:planted2@proxy"
    assert options.sending.customer_key == bytes(range(32))
    assert options.provider_options == (("token", "planted4"),)
    assert pickle.loads(pickle.dumps(options)) == options
    shown = repr(config) + repr(options) + str(config.shaping())
    assert not [each for each in ("planted", KEY, repr(bytes(range(32)))) if each in shown]


@pytest.mark.parametrize(
    ("url", "user", "password", "address"),
    [
        ("http://p:3128", "", "", "http://p:3128"),
        ("http://p:3128", "me", "a b@c", "http://me:a%20b%40c@p:3128"),
        ("http://u:v@p:3128", "me", "pw", "http://me:pw@p:3128"),
        ("http://u:v@p:3128", "", "", "http://u:v@p:3128"),
        ("http://u@p", "", "pw", "http://u:pw@p"),
    ],
)
def test_a_proxy_s_login_is_the_properties_before_the_address_s(url, user, password, address):
    assert with_login(url, user, password) == address


def sent(options, *requests):
    """The requests that a store makes, as botocore would send them."""
    opened = store(options)
    seen = []

    def answer(request, **_):
        seen.append(request)
        body = b"<R><UploadId>u</UploadId><ETag>e</ETag></R>"
        raw = types.SimpleNamespace(stream=lambda *_, **__: iter([body]), read=lambda *_: b"")
        return AWSResponse(request.url, 200, {"ETag": '"e"', "Content-Length": "0"}, raw)

    opened.client.meta.events.register("before-send.s3", answer)
    for request in requests:
        request(opened)
    return seen


def text_of(request, name):
    value = request.headers[name]
    return value.decode() if isinstance(value, bytes) else value


def options_of(text, bucket="b"):
    return pipeline._store_options(load(f"aws.access.key.id=k\naws.secret.access.key=s\n{text}"), bucket)


def put(opened):
    opened.put("k", b"x", Create())


EVERY = (
    put,
    lambda opened: opened.begin("k", {}),
    lambda opened: opened.part(Upload("k", "u"), 1, b"x"),
    lambda opened: opened.head("k"),
    lambda opened: opened.get("k"),
    lambda opened: opened.complete(Upload("k", "u"), [Part(1, '"e"')], Create()),
)


def test_a_customer_s_key_goes_with_every_request_about_bytes():
    name = "x-amz-server-side-encryption-customer-"
    for request in sent(options_of(f"s3.ssea.name=AES256\ns3.sse.customer.key={KEY}\n"), *EVERY):
        assert text_of(request, f"{name}algorithm") == "AES256"
        assert name + "key-MD5" in request.headers
        assert "x-amz-server-side-encryption" not in request.headers


def test_the_other_options_go_with_what_begins_an_object():
    text = (
        "s3.ssea.name=aws:kms\ns3.sse.kms.key.id=key\ns3.acl.canned=bucket-owner-full-control\n"
        "s3.storage.class=STANDARD_IA\ns3.content.type=application/json\n"
    )
    want = {
        "x-amz-server-side-encryption": "aws:kms",
        "x-amz-server-side-encryption-aws-kms-key-id": "key",
        "x-amz-acl": "bucket-owner-full-control",
        "x-amz-storage-class": "STANDARD_IA",
        "Content-Type": "application/json",
    }
    whole, begun, part, *_ = sent(options_of(text), *EVERY)
    for request in (whole, begun):
        assert {name: text_of(request, name) for name in want} == want
    assert not [name for name in want if name in part.headers]


def test_without_options_nothing_is_sent_that_a_store_may_not_know():
    for request in sent(options_of(""), *EVERY):
        assert not [name for name in request.headers if name.startswith("x-amz-server") or name == "x-amz-acl"]
        assert "Content-MD5" not in request.headers


def test_kms_without_a_key_is_the_account_s_own_key():
    (request,) = sent(options_of("s3.ssea.name=aws:kms\n"), put)
    assert text_of(request, "x-amz-server-side-encryption") == "aws:kms"
    assert "x-amz-server-side-encryption-aws-kms-key-id" not in request.headers


def test_digests_go_with_objects_and_parts():
    whole, part = sent(
        options_of("s3.send.digest=true\n"), put, lambda opened: opened.part(Upload("k", "u"), 1, b"part")
    )
    for request, body in ((whole, b"x"), (part, b"part")):
        assert (
            text_of(request, "Content-MD5")
            == base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
        )


@pytest.mark.parametrize(
    ("given", "size", "waits"), [("true", 1 << 20, True), ("true", 100, False), ("false", 1 << 20, False)]
)
def test_only_large_bodies_wait_for_consent(given, size, waits):
    (request,) = sent(
        options_of(f"s3.http.send.expect.continue={given}\n"), lambda opened: opened.put("k", bytes(size), Create())
    )
    assert ("Expect" in request.headers) == waits


def test_acceleration_changes_the_host():
    (request,) = sent(options_of("s3.wan.mode=true\ns3.path.style.access.enabled=false\n", "bucket"), put)
    assert request.url.startswith("https://bucket.s3-accelerate.amazonaws.com/k")


def test_the_state_log_stays_readable_and_private():
    mine = Sending("AES256", customer_key=bytes(32), acl="public-read", storage_class="GLACIER_IR", content_type="a/b")
    assert mine.for_state() == Sending()
    kept = Sending("aws:kms", "key", acl="bucket-owner-full-control", digest=True)
    assert kept.for_state() == kept
    assert StoreOptions("b", sending=mine).for_state() == StoreOptions("b")


# Credentials


class Made:
    """A user's provider."""

    @staticmethod
    def create(options):
        if "planted" in options.get("token", ""):
            raise ValueError(options["token"])
        return Credentials(options["key"], "secret") if "key" in options else options


@pytest.fixture(autouse=True)
def _mine(monkeypatch):
    module = types.ModuleType("penstock_test_provider")
    module.Made = Made
    module.make = Made.create
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")


@pytest.mark.parametrize("name", ["Made", "make"])
def test_a_class_of_one_s_own_is_given_the_rest_of_the_properties(name):
    (request,) = sent(options_of(f"{PROVIDER}.class=penstock_test_provider:{name}\n{PROVIDER}.key=AKIAOWN\n"), put)
    assert b"AKIAOWN" in bytes(request.headers["Authorization"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{PROVIDER}.class=penstock_test_provider:None\n", "cannot be loaded: module 'penstock_test_provider' has no"),
        (f"{PROVIDER}.class=no_such_module:X\n", "cannot be loaded: No module named 'no_such_module'"),
        (f"{PROVIDER}.class=penstock_test_provider:Made\n", "must give an object like botocore's Credentials, it gave"),
        (f"{PROVIDER}.class=penstock_test_provider:Made\n{PROVIDER}.token=planted\n", "ValueError: ****"),
    ],
)
def test_a_class_that_gives_none_is_named_and_no_option_shown(text, words):
    with pytest.raises(ConfigError) as caught:
        store(options_of(text))
    assert words in str(caught.value)
    assert "planted" not in str(caught.value)


class Sts:
    """A token service that answers, or refuses."""

    meta = types.SimpleNamespace(endpoint_url="http://sts")

    def __init__(self, clock, error=None):
        self.clock, self.error, self.asked = clock, error, []

    def assume_role(self, **arguments):
        self.asked.append(arguments)
        if self.error is not None:
            raise self.error
        until = self.clock() + timedelta(hours=1)
        key = f"ASIA{len(self.asked)}"
        return {
            "Credentials": {"AccessKeyId": key, "SecretAccessKey": "s", "SessionToken": "t", "Expiration": until},
        }


def test_a_role_s_keys_are_asked_for_when_needed_and_again_before_they_expire():
    now = [datetime(2026, 1, 1, tzinfo=timezone.utc)]
    sts = Sts(lambda: now[0])
    ask = credentials._asker(sts, {"RoleArn": "arn", "RoleSessionName": "x"}, "keys")
    found = credentials.DeferredRefreshableCredentials(ask, "assume-role", time_fetcher=lambda: now[0])
    assert sts.asked == []
    assert found.get_frozen_credentials().access_key == "ASIA1"
    now[0] += timedelta(minutes=40)
    assert found.get_frozen_credentials().access_key == "ASIA1"
    now[0] += timedelta(minutes=10)
    assert found.get_frozen_credentials().access_key == "ASIA2"


def test_static_keys_ask_for_the_role_and_do_not_sign_for_s3(monkeypatch):
    sts = Sts(lambda: datetime.now(timezone.utc))
    made = []

    def session(*keys, **options):
        made.append((keys, options))
        return types.SimpleNamespace(client=lambda *_, **given: made.append(given) or sts)

    real = credentials.boto3.Session
    monkeypatch.setattr(
        credentials.boto3, "Session", lambda *k, **o: real(**o) if "botocore_session" in o else session(*k, **o)
    )
    role = Role("arn:aws:iam::1:role/r", "me", "ext", "eu-west-1", "http://sts")
    options = StoreOptions("b", provider="assume_role", access_key_id="AKIABASE", secret_access_key="s", role=role)
    (request,) = sent(options, put)
    assert b"ASIA1" in bytes(request.headers["Authorization"])
    assert sts.asked == [{"RoleArn": role.arn, "RoleSessionName": "me", "ExternalId": "ext"}]
    assert made[0] == (("AKIABASE", "s"), {"region_name": "eu-west-1"})
    assert made[1]["endpoint_url"] == "http://sts"


@pytest.mark.parametrize(
    ("provider", "words"),
    [
        ("default", "no credentials were found; set aws.access.key.id"),
        ("web_identity", "set the environment variables AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN"),
        ("container", "this runs in no container with a role"),
        ("environment", "set the environment variables AWS_ACCESS_KEY_ID"),
    ],
)
def test_where_none_are_found_it_says_where_they_were_looked_for(provider, words):
    with pytest.raises(StoreUnavailable) as caught:
        store(StoreOptions("no-credentials", provider=provider, url="http://127.0.0.1:9", retries=0)).check()
    assert words in str(caught.value)
    assert not caught.value.transient


def test_a_role_without_anyone_to_ask_for_it_says_so():
    options = StoreOptions("b", provider="assume_role", role=Role("arn:aws:iam::1:role/r"), retries=0)
    with pytest.raises(StoreUnavailable) as caught:
        store(options).check()
    assert str(caught.value).startswith(
        "the role `arn:aws:iam::1:role/r` cannot be assumed with the credentials of boto3's chain (session "
        "`penstock`): there are none; set aws.access.key.id"
    )


# Tags and sweeping


class Memory:
    """A store of which only what these tests use is there."""

    def __init__(self, tag_error=None):
        self.tags, self.tag_error, self.left, self.page = {}, tag_error, [], 1000

    def put(self, *_):
        return '"e"'

    def tag(self, key, tags):
        if self.tag_error is not None:
            raise self.tag_error
        self.tags[key] = tags

    def uploads(self, _prefix):
        yield from self.left[: self.page]

    def abort(self, upload):
        self.left.remove(upload)


def write(memory, tagging):
    writer = Uploads(memory, Owner("x", 5), 5 << 20, tagging).open("k", 10)
    writer.write(b"data")
    return writer.close({"records": "3"}, 14).result()


def test_an_object_is_tagged_with_what_it_holds():
    memory = Memory()
    write(memory, Tagging((("team", "a:b"),)))
    assert memory.tags == {"k": {"startOffset": "10", "endOffset": "13", "recordCount": "3", "team": "a:b"}}
    write(plain := Memory(), None)
    assert plain.tags == {}


@pytest.mark.parametrize("error", [StoreUnavailable("no tags", transient=False), NotFoundError("gone")])
def test_a_failure_to_tag_is_a_line_in_the_log_or_stops(error, caplog):
    assert write(Memory(error), Tagging()).etag == '"e"'
    assert [record.getMessage() for record in caplog.records] == [f"object.untagged key=k reason={error}"]
    with pytest.raises(StoreUnavailable, match="the object `k` could not be tagged: "):
        write(Memory(error), Tagging(on_error="fail"))


def test_sweeping_goes_on_until_a_listing_that_is_cut_short_is_empty():
    memory = Memory()
    memory.left = [Upload(f"k{n}", str(n)) for n in range(2500)]
    assert abort_leftovers(memory, "k") == 2500
    assert memory.left == []


def test_what_a_store_does_not_know_says_which_options_to_look_at():
    assert "407" in faults._ADVICE
    assert "s3.sse.customer.key" in faults._ADVICE["400"]
