"""Whose credentials sign: a role's, a class of the user's own; and what is said where there are none."""

import sys
import types
from datetime import datetime, timedelta, timezone

import pytest
from botocore.credentials import Credentials

from penstock.errors import ConfigError, StoreUnavailable
from penstock.store import credentials
from penstock.store.options import Role, StoreOptions
from penstock.store.s3 import store
from store_requests import PROVIDER, options_of, put, sent


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
