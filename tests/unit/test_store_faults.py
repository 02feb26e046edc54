import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    IncompleteReadError,
    NoCredentialsError,
    ReadTimeoutError,
    SSLError,
)

from penstock.errors import StoreUnavailable
from penstock.store.base import Anything, ConflictError, Create, NotFoundError, OutcomeUnknownError, RefusedError
from penstock.store.faults import is_passing, sentence
from penstock.store.retry import RetryPolicy
from penstock.store.s3 import S3Store, StoreOptions

OPTIONS = StoreOptions(
    "b", url="http://127.0.0.1:9", access_key_id="AKIA", secret_access_key="marker-secret", retries=1
)
URL = "http://127.0.0.1:9"


def answer(status, code):
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject")


PASSING = [
    answer(500, "InternalError"),
    answer(503, "SlowDown"),
    answer(502, "502"),
    answer(429, "TooManyRequests"),
    answer(400, "RequestTimeout"),
    EndpointConnectionError(endpoint_url=URL),
    ConnectTimeoutError(endpoint_url=URL),
    ReadTimeoutError(endpoint_url=URL),
    IncompleteReadError(actual_bytes=1, expected_bytes=2),
]
LASTING = [
    answer(501, "NotImplemented"),
    answer(403, "AccessDenied"),
    answer(403, "InvalidAccessKeyId"),
    answer(403, "SignatureDoesNotMatch"),
    answer(403, "RequestTimeTooSkewed"),
    answer(301, "PermanentRedirect"),
    answer(404, "NoSuchBucket"),
    answer(400, "InvalidArgument"),
    SSLError(endpoint_url=URL, error="certificate verify failed"),
    NoCredentialsError(),
]


class Raising:
    """A client whose requests end in these errors, one after the other."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.requests = 0

    def __getattr__(self, verb):
        def request(**_):
            self.requests += 1
            raise self.errors[min(self.requests, len(self.errors)) - 1]

        return request


def s3store(*errors):
    return S3Store(Raising(*errors), OPTIONS, RetryPolicy(1, 1, lambda _: None))


@pytest.mark.parametrize("error", PASSING, ids=repr)
def test_what_may_pass_is_asked_again_and_then_an_outage_or_for_a_write_unknown(error):
    opened = s3store(error)
    with pytest.raises(StoreUnavailable) as caught:
        opened.get("k")
    assert caught.value.transient
    assert opened.client.requests == 2
    with pytest.raises(OutcomeUnknownError) as caught:
        s3store(error).put("k", b"", Create())
    assert caught.value.transient


@pytest.mark.parametrize("error", LASTING, ids=repr)
def test_what_a_person_must_mend_is_asked_once_and_says_where_and_what_next(error):
    for ask in (lambda s: s.get("k"), lambda s: s.put("k", b"", Create()), lambda s: s.check()):
        opened = s3store(error)
        with pytest.raises(StoreUnavailable, match=r"bucket `b` at http://127\.0\.0\.1:9: .*; ") as caught:
            ask(opened)
        assert not caught.value.transient
        assert opened.client.requests == 1
        assert not isinstance(caught.value, OutcomeUnknownError)
        assert "marker-secret" not in str(caught.value) + repr(opened.options)


def test_an_expired_token_is_asked_again_and_says_to_renew_it():
    assert is_passing(answer(403, "ExpiredToken"))
    assert "renew the credentials" in sentence(answer(403, "ExpiredToken"), "bucket `b`")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (answer(412, "PreconditionFailed"), RefusedError),
        (answer(404, "NoSuchKey"), RefusedError),
        (answer(409, "ConditionalRequestConflict"), ConflictError),
        (answer(404, "NoSuchUpload"), ConflictError),
    ],
)
def test_a_write_is_refused_or_met_another_one(error, outcome):
    with pytest.raises(outcome):
        s3store(error).put("k", b"", Anything())


def test_a_refusal_after_an_unheard_try_is_a_refusal():
    with pytest.raises(RefusedError):
        s3store(answer(500, "InternalError"), answer(412, "PreconditionFailed")).put("k", b"", Create())


def test_a_missing_object_is_not_an_outage_but_a_missing_bucket_is():
    with pytest.raises(NotFoundError):
        s3store(answer(404, "NoSuchKey")).get("k")
    with pytest.raises(StoreUnavailable, match=r"s3\.bucket\.name"):
        s3store(answer(404, "NoSuchBucket")).get("k")
    assert s3store(answer(404, "404")).head("k") is None
