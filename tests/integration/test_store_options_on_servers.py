"""Every option of the store on a real server, seen by reading it back; what passes, by a proxy on the way."""

import base64
import json
import logging
import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import boto3
import pytest

from forward_proxy import forward_proxy
from penstock.errors import StoreUnavailable
from penstock.store.base import Create, OutcomeUnknownError
from penstock.store.options import Role, Sending, StoreOptions
from penstock.store.probe import refuses_overwrites
from penstock.store.s3 import store
from penstock.store.tags import Tagging
from penstock.store.upload import Owner, Uploads, abort_leftovers

pytestmark = pytest.mark.stack

PART = 5 * 1024 * 1024
BIG = os.urandom(PART + 17)
KEY = bytes(range(32))
EVERYTHING = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})


def options_of(info, **changes):
    options = StoreOptions(
        f"options-{uuid.uuid4().hex[:12]}",
        info.region,
        info.store_url,
        access_key_id=info.access_key_id,
        secret_access_key=info.secret_access_key,
        retries=1,
        backoff_ms=1,
    )
    with_bucket(options)
    return replace(options, **changes)


def with_bucket(options):
    place = {"LocationConstraint": options.region}
    store(options).client.create_bucket(Bucket=options.bucket, CreateBucketConfiguration=place)


@pytest.fixture(params=["stack", "moto_stack"])
def either(request):
    return request.getfixturevalue(request.param)


def write(opened, body, tagging=None, key="topics/t/k", owner=None):
    writer = Uploads(opened, owner or Owner("x", 5), PART, tagging).open(key, 10)
    writer.write(body)
    return writer.close({"records": "3"}, 14).result()


@pytest.mark.parametrize("body", [b"small", BIG], ids=["whole", "parts"])
def test_encryption_class_and_type_are_kept_by_the_server(moto_stack, body):
    sending = Sending(
        "aws:kms", "alias/mine", storage_class="STANDARD_IA", content_type="application/json", digest=True
    )
    opened = store(options_of(moto_stack, sending=sending))
    write(opened, body)
    head = opened.client.head_object(Bucket=opened.options.bucket, Key="topics/t/k")
    assert head["ServerSideEncryption"] == "aws:kms"
    assert head["SSEKMSKeyId"].endswith("alias/mine")
    assert (head["StorageClass"], head["ContentType"]) == ("STANDARD_IA", "application/json")
    assert opened.get("topics/t/k") == body


def test_amazon_s_own_encryption_is_kept_by_the_server(moto_stack):
    opened = store(options_of(moto_stack, sending=Sending("AES256")))
    write(opened, b"small")
    assert opened.client.head_object(Bucket=opened.options.bucket, Key="topics/t/k")["ServerSideEncryption"] == "AES256"


def everybody_reads(opened):
    grants = opened.client.get_object_acl(Bucket=opened.options.bucket, Key="topics/t/k")["Grants"]
    groups = {grant["Grantee"].get("URI", ""): grant["Permission"] for grant in grants}
    return groups.get("http://acs.amazonaws.com/groups/global/AllUsers") == "READ"


@pytest.mark.parametrize("body", [b"small", BIG], ids=["whole", "parts"])
def test_the_acl_is_kept_by_the_server(either, body):
    opened = store(options_of(either, sending=Sending(acl="public-read")))
    write(opened, body)
    assert everybody_reads(opened)


def test_without_an_acl_nobody_else_reads(either):
    private = store(options_of(either))
    write(private, b"small")
    assert not everybody_reads(private)


def tags_of(opened, key="topics/t/k"):
    found = opened.client.get_object_tagging(Bucket=opened.options.bucket, Key=key)["TagSet"]
    return {tag["Key"]: tag["Value"] for tag in found}


@pytest.mark.parametrize("body", [b"small", BIG], ids=["whole", "parts"])
def test_tags_are_there_even_if_a_crash_came_between_object_and_tags(moto_stack, body):
    opened = store(options_of(moto_stack))
    want = {"startOffset": "10", "endOffset": "13", "recordCount": "3", "team": "a b"}
    first = write(opened, body)
    assert tags_of(opened) == {}
    assert write(opened, body, Tagging((("team", "a b"),))) == first
    assert tags_of(opened) == want
    assert write(opened, body, Tagging((("team", "a b"),))) == first
    assert tags_of(opened) == want


def test_a_server_without_tags_keeps_the_object_or_stops_as_told(stack, caplog):
    opened = store(options_of(stack))
    with caplog.at_level(logging.WARNING, "penstock.store"):
        write(opened, b"small", Tagging())
    assert [each.getMessage() for each in caplog.records if each.getMessage().startswith("object.untagged key=")]
    with pytest.raises(StoreUnavailable, match=r"could not be tagged: .*NotImplemented") as caught:
        write(opened, b"small", Tagging(on_error="fail"))
    assert not caught.value.transient
    assert opened.get("topics/t/k") == b"small"


def test_a_server_that_cannot_encrypt_is_named_with_the_options_to_look_at(stack):
    opened = store(options_of(stack, sending=Sending("AES256")))
    with pytest.raises(StoreUnavailable, match=r"NotImplemented \(501\); it does not know one of the options set"):
        write(opened, b"small")


def test_a_digest_is_checked_by_the_server_and_large_bodies_wait_for_consent(either):
    opened = store(options_of(either, sending=Sending(digest=True)))
    write(opened, BIG)
    assert opened.get("topics/t/k") == BIG
    impatient = store(replace(opened.options, expect_continue=False))
    write(impatient, BIG, key="topics/t/k2")
    assert impatient.get("topics/t/k2") == BIG


def test_all_requests_go_through_the_proxy_with_its_login_and_a_customer_s_key_with_each(moto_stack):
    with forward_proxy("me:p w@") as proxy:
        sending = Sending("AES256", customer_key=KEY)
        direct = options_of(moto_stack)
        opened = store(replace(direct, proxy=f"http://me:p%20w%40@{proxy.address}", sending=sending))
        write(opened, BIG)
        opened.head("topics/t/k")
        opened.get("topics/t/k", 0, 5)
        assert proxy.refused == 0
        asked = {(method, query.partition("?")[2].partition("=")[0]) for method, query, _ in proxy.seen}
        assert {("POST", "uploads"), ("PUT", "uploadId"), ("HEAD", ""), ("GET", "")} <= asked
        want = base64.b64encode(KEY).decode()
        header = "x-amz-server-side-encryption-customer-key"
        assert all(headers.get(header) == want for _, _, headers in proxy.seen)
        assert any("expect" in headers for method, _, headers in proxy.seen if method == "PUT")
        store(direct).check()
        assert len(proxy.seen) < 20


def test_a_proxy_s_refusal_names_its_properties_and_no_password(moto_stack, caplog):
    with forward_proxy("me:right") as proxy:
        options = replace(options_of(moto_stack), proxy=f"http://me:planted@{proxy.address}")
        with pytest.raises(StoreUnavailable, match=r"407.*s3\.proxy\.user and s3\.proxy\.password") as caught:
            store(options).check()
        assert proxy.refused == 1
    with pytest.raises((StoreUnavailable, OutcomeUnknownError)) as silent:
        store(replace(options, bucket="other")).put("k", b"", Create())
    assert "s3.proxy.url" in str(silent.value)
    assert "planted" not in str(caught.value) + str(silent.value) + caplog.text


@pytest.fixture
def role(moto_stack):
    iam = boto3.client(
        "iam",
        endpoint_url=moto_stack.store_url,
        region_name=moto_stack.region,
        aws_access_key_id=moto_stack.access_key_id,
        aws_secret_access_key=moto_stack.secret_access_key,
    )
    name = f"role-{uuid.uuid4().hex[:8]}"
    made = iam.create_role(RoleName=name, AssumeRolePolicyDocument=EVERYTHING)["Role"]
    iam.put_role_policy(RoleName=name, PolicyName="everything", PolicyDocument=EVERYTHING)
    return Role(made["Arn"], "a-session", "an-id")


def test_a_role_is_assumed_at_the_token_service_and_its_keys_sign(moto_stack, role, monkeypatch):
    options = options_of(moto_stack, provider="assume_role")
    by_option = store(replace(options, role=replace(role, url=moto_stack.store_url)))
    write(by_option, b"by option")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", moto_stack.store_url)
    with forward_proxy() as proxy:
        opened = store(replace(options, role=role, proxy=f"http://{proxy.address}"))
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(opened.get, ["topics/t/k"] * 8)) == [b"by option"] * 8
        signed = {headers["authorization"].partition("Credential=")[2].partition("/")[0] for *_, headers in proxy.seen}
        assert len(signed) == 1
        assert moto_stack.access_key_id not in signed
        assert all("x-amz-security-token" in headers for *_, headers in proxy.seen)


def test_a_role_that_is_refused_names_who_which_role_what_was_said_and_what_next(moto_stack, role):
    options = options_of(moto_stack, provider="assume_role", role=replace(role, url=moto_stack.store_url))
    wrong = replace(options, secret_access_key="planted")
    with pytest.raises(StoreUnavailable) as caught:
        store(wrong).check()
    assert str(caught.value).startswith(
        f"the role `{role.arn}` cannot be assumed with aws.access.key.id (session `a-session`): the token service "
        "answers SignatureDoesNotMatch (403): "
    )
    assert str(caught.value).endswith("; correct the secret key")
    assert not caught.value.transient
    assert "planted" not in str(caught.value)
    with pytest.raises(StoreUnavailable, match="does not answer") as caught:
        store(replace(options, role=replace(role, url="http://127.0.0.1:9"))).check()
    assert caught.value.transient


def test_more_than_a_thousand_left_uploads_are_swept(either):
    opened = store(options_of(either))
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: opened.begin(f"topics/t/k{n}", {}), range(1050)))
    other = opened.begin("topics/other/k", {})
    assert abort_leftovers(opened, "topics/t/") == 1050
    assert list(opened.uploads("")) == [other]


def test_the_probe_holds_with_every_option_that_the_server_knows(moto_stack):
    sending = Sending("aws:kms", acl="bucket-owner-full-control", storage_class="STANDARD_IA", digest=True)
    assert refuses_overwrites(store(options_of(moto_stack, sending=sending)), "probe/w")
