"""The store's options: every sentence about what cannot be, what is sent, and what is tagged."""

import base64
import hashlib
import pickle

import pytest

from penstock import stores
from penstock.errors import ConfigError, StoreUnavailable
from penstock.store import faults
from penstock.store.base import Create, NotFoundError, Part, Upload
from penstock.store.options import Sending, StoreOptions, with_login
from penstock.store.tags import Tagging
from penstock.store.upload import Owner, Uploads, abort_leftovers
from store_requests import HEAD, PROVIDER, load, options_of, put, sent, text_of

LINE = len(HEAD.splitlines()) + 1
KEY = base64.b64encode(bytes(range(32))).decode()
RULE = "must be KEY:VALUE with commas (letters, digits, blanks and `+-=._/@`), not"


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
    options = stores.of_sink(config)
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


@pytest.mark.parametrize(
    ("url", "digest"),
    [
        ("", "UNSIGNED-PAYLOAD"),
        ("store.url=https://s3.example", "UNSIGNED-PAYLOAD"),
        ("store.url=http://s3.example", hashlib.sha256(b"x").hexdigest()),
    ],
)
def test_bodies_are_hashed_for_the_signature_where_no_tls_guards_them(url, digest):
    (request,) = sent(options_of(f"s3.region=us-west-2\n{url}\n"), put)
    assert text_of(request, "X-Amz-Content-SHA256") == digest
