import pickle

import pytest

from penstock.config.classes import CREDENTIALS, FORMATS
from penstock.config.kinds import (
    LONG_MAX,
    Bool,
    Bucket,
    Choice,
    Hidden,
    HttpUrl,
    Int,
    Matching,
    Named,
    S3Url,
    Separator,
    Text,
    Topics,
    Words,
)
from penstock.config.secret import Secret

SEPARATOR_RULE = r"must only hold the escapes \n, \r, \t, \f, \\ and \uXXXX"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Int(1), " 3 ", 3),
        (Int(-1), "-1", -1),
        (Int(), "+7", 7),
        (Int(0, LONG_MAX), "9223372036854775807", LONG_MAX),
        (Bool(), "TRUE", True),
        (Bool(), "false", False),
        (Choice(("fail", "skip"), any_case=True), "FAIL", "fail"),
        (Text(), " a b ", "a b"),
        (Text(blank=True), "  ", ""),
        (Words(), " a,, b ", ("a", "b")),
        (Topics(), "a, b.c,a", ("a", "b.c")),
        (Named(FORMATS), "io.confluent.connect.s3.format.json.JsonFormat", "json"),
        (Named(FORMATS), "JsonFormat", "json"),
        (Named(FORMATS), "JSON", "json"),
        (Named(FORMATS), "block_gzip", "block_gzip"),
        (Named(CREDENTIALS), "com.amazon.auth.DefaultAWSCredentialsProviderChain", "default"),
        (HttpUrl(), "minio:9000/", "https://minio:9000"),
        (HttpUrl(), "http://[::1]:9000", "http://[::1]:9000"),
        (S3Url(), "s3://b/p/q/", "s3://b/p/q"),
        (Bucket(), "my-bucket.1", "my-bucket.1"),
        (Separator(), r"\n", "\n"),
        (Separator(), " | ", " | "),
        (Separator(), r"\t\u0001\\n", "\t\x01\\n"),
        (Separator(), "", ""),
    ],
)
def test_a_text_becomes_a_value(kind, text, value):
    assert kind.parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "rule"),
    [
        (Int(1), "ten", "must be an integer >= 1"),
        (Int(1), "0", "must be an integer >= 1"),
        (Int(1), "1.0", "must be an integer >= 1"),
        (Int(1), "1_000", "must be an integer >= 1"),
        (Int(1), "\u0663", "must be an integer >= 1"),
        (Int(1), "", "must be an integer >= 1"),
        (Int(1), "9" * 5000, "must be an integer >= 1"),
        (Int(1), "2147483648", "must be an integer <= 2147483647"),
        (Int(0, 100), "101", "must be an integer from 0 to 100"),
        (Bool(), "yes", "must be true or false"),
        (Choice(("a", "b", "c")), "d", "must be a, b or c"),
        (Choice(("NONE",)), "none", "must be NONE"),
        (Text(), " ", "must not be empty"),
        (Text(), "a\nb", "must not hold control characters"),
        (Matching("[a-z]+", "small letters"), "A", "must be small letters"),
        (Topics(), " , ", "must name at least one topic"),
        (Topics(), "a/b", "must be topic names (letters, digits, `.`, `_`, `-`), not `a/b`"),
        (Topics(), "..", "must be topic names (letters, digits, `.`, `_`, `-`), not `..`"),
        (Topics(), "x" * 250, "must be topic names (letters, digits, `.`, `_`, `-`), not `" + "x" * 250 + "`"),
        (Named({"a.B": "b", "a.C": "c"}), "a.D", "must be b or c, or the Java class name of one of them"),
        (HttpUrl(), "ftp://x", "must be a URL like https://s3.example.com:9000"),
        (HttpUrl(), "http://x:99999", "must be a URL like https://s3.example.com:9000"),
        (HttpUrl(), "http://[::1", "must be a URL like https://s3.example.com:9000"),
        (HttpUrl(), "a b", "must be a URL like https://s3.example.com:9000"),
        (S3Url(), "b/p", "must be s3://BUCKET or s3://BUCKET/PREFIX"),
        (S3Url(), "s3://b//p", "must be s3://BUCKET or s3://BUCKET/PREFIX"),
        (Bucket(), "a/b", "must be the bucket's bare name (letters, digits, `.`, `-`, `_`), without s3:// and path"),
        (Separator(), r"\x", SEPARATOR_RULE),
        (Separator(), r"\u12", SEPARATOR_RULE),
        (Separator(), "end\\", SEPARATOR_RULE),
        (Separator(), r"\ud800", "must not hold one half of a surrogate pair"),
    ],
)
def test_a_wrong_text_is_told_what_it_must_be(kind, text, rule):
    with pytest.raises(ValueError, match=r"^must") as caught:
        kind.parse(text)
    assert str(caught.value) == rule


def test_a_secret_is_shown_nowhere_but_given_where_it_is_sent():
    secret = Hidden().parse(" hidden-secret ")
    assert f"{secret} {secret!r} {[secret]}" == "**** **** [****]"
    assert secret.reveal() == "hidden-secret"
    assert pickle.loads(pickle.dumps(secret)) == secret == Secret("hidden-secret")
    assert not Secret("")
