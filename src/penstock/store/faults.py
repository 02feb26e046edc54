"""What an S3 error means: whether it may pass, and the sentence for people. No secret is in any of them."""

from __future__ import annotations

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
    ProxyConnectionError,
    ResponseStreamingError,
    SSLError,
)
from botocore.exceptions import ConnectionError as BotoConnectionError

_SERVER_ERROR = 500
_NOT_IMPLEMENTED = 501
_TOO_MANY = 429
_PASSING = frozenset(
    {"SlowDown", "RequestTimeout", "InternalError", "ServiceUnavailable", "Throttling", "ExpiredToken"}
)
_SILENT = (BotoConnectionError, HTTPClientError, IncompleteReadError, ResponseStreamingError)
_ADVICE = {
    "NoSuchBucket": "create the bucket, or correct s3.bucket.name",
    "InvalidAccessKeyId": "correct aws.access.key.id, or the credentials that boto3's chain finds",
    "SignatureDoesNotMatch": "correct aws.secret.access.key",
    "AccessDenied": "give these credentials the rights of docs/deploy.md",
    "403": "give these credentials the rights of docs/deploy.md",
    "PermanentRedirect": "correct s3.region",
    "301": "correct s3.region",
    "AuthorizationHeaderMalformed": "correct s3.region",
    "RequestTimeTooSkewed": "set this machine's clock",
    "InvalidBucketName": "correct s3.bucket.name",
    "ExpiredToken": "renew the credentials",
    "NotImplemented": "it does not know one of the options set (encryption, ACL, tags, storage class); docs/s3.md",
    "AccessControlListNotSupported": "take out s3.acl.canned, or enable ACLs for the bucket",
    "InvalidStorageClass": "correct s3.storage.class, or take it out",
    "KMS.NotFoundException": "correct s3.sse.kms.key.id",
    "KMS.DisabledException": "enable the key of s3.sse.kms.key.id",
    "InvalidTag": "correct s3.object.tagging.key.value.pairs",
    "400": "an object may be encrypted with another s3.sse.customer.key than the one set, or with none",
    "407": "correct s3.proxy.user and s3.proxy.password",
}


def status_of(error: ClientError) -> int:
    """The HTTP status."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def code_of(error: ClientError) -> str:
    """S3's error code."""
    return str(error.response.get("Error", {}).get("Code", ""))


def is_passing(error: BaseException) -> bool:
    """Whether the same request may succeed a moment later."""
    if isinstance(error, ClientError):
        status = status_of(error)
        if status == _NOT_IMPLEMENTED:
            return False
        return status >= _SERVER_ERROR or status == _TOO_MANY or code_of(error) in _PASSING
    return isinstance(error, (*_SILENT, OSError)) and not isinstance(error, SSLError)


def sentence(error: Exception, place: str, login: str = "") -> str:
    """What happened, where, and what to do. `login`: what to do where no credentials were found."""
    if isinstance(error, ClientError):
        code = code_of(error)
        advice = _ADVICE.get(code, "see the store's documentation for this code")
        if is_passing(error) and code not in _ADVICE:
            advice = "it is asked again"
        return f"{place}: the store answers {code} ({status_of(error)}); {advice}"
    if isinstance(error, (NoCredentialsError, PartialCredentialsError)):
        return f"{place}: no credentials were found; {login or 'set aws.access.key.id and aws.secret.access.key'}"
    if isinstance(error, ProxyConnectionError):
        return f"{place}: the proxy refuses or does not answer; check s3.proxy.url, s3.proxy.user and s3.proxy.password"
    if isinstance(error, SSLError):
        return (
            f"{place}: no TLS connection ({error}); check store.url, and set AWS_CA_BUNDLE for an authority of your own"
        )
    if is_passing(error):
        return f"{place}: the store does not answer ({type(error).__name__}); check store.url and that it runs"
    reason = str(error) if isinstance(error, BotoCoreError) else type(error).__name__
    return f"{place}: {reason}"
