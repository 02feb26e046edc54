"""The store on S3 and what speaks its protocol, through boto3 with the SDK's own retries off."""

from __future__ import annotations

import base64
import functools
import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, IncompleteReadError
from botocore.exceptions import ConnectionError as BotoConnectionError
from botocore.utils import determine_content_length

from penstock.errors import StoreUnavailable
from penstock.store import credentials
from penstock.store.base import (
    ConflictError,
    Create,
    Head,
    Listed,
    NotFoundError,
    OutcomeUnknownError,
    Part,
    RefusedError,
    Replace,
    Upload,
)
from penstock.store.faults import code_of, is_passing, sentence, status_of
from penstock.store.options import StoreOptions
from penstock.store.retry import RetryPolicy
from penstock.store.sending import sendable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from penstock.store.base import Body, Precondition
    from penstock.store.options import Sending

__all__ = ["S3Store", "StoreOptions", "connect", "store"]

T = TypeVar("T")
_LARGE = 1024 * 1024
_MISSING, _CONFLICT, _REFUSED, _BEYOND_ITS_END = 404, 409, 412, 416
_WORDLESS = (400, 403)
_SILENT = (BotoConnectionError, HTTPClientError, OSError)


@functools.lru_cache(maxsize=16)
def connect(options: StoreOptions, process: int) -> S3Store:
    """The store of these options in this process: connections are kept, and never shared with a forked one."""
    del process
    config = Config(
        retries={"total_max_attempts": 1},
        s3={
            "addressing_style": "path" if options.path_style else "virtual",
            "use_accelerate_endpoint": options.accelerate,
            # A digest of every byte for the signature is a seventh of a worker's time; TLS guards them already.
            "payload_signing_enabled": (options.url or "").lower().startswith("http:"),
        },
        connect_timeout=10,
        read_timeout=options.timeout_seconds,
        max_pool_connections=32,
        proxies={"http": options.proxy, "https": options.proxy} if options.proxy else None,
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        user_agent_extra="penstock",
    )
    client = credentials.session(options).client("s3", endpoint_url=options.url, config=config)
    client.meta.events.register_last("before-call.s3", _waits if options.expect_continue else _never_waits)
    return S3Store(client, options, RetryPolicy(options.retries, options.backoff_ms))


def _waits(params: dict[str, Any], **_: object) -> None:
    """A large body waits until the store wants it, as botocore has them all; for a small one the wait is dearer."""
    if (determine_content_length(params.get("body")) or 0) < _LARGE:
        _never_waits(params)


def _never_waits(params: dict[str, Any], **_: object) -> None:
    """Send the body with its headers."""
    params["headers"].pop("Expect", None)


def store(options: StoreOptions) -> S3Store:
    """The store of these options."""
    return connect(options, os.getpid())


@dataclass(frozen=True, slots=True)
class S3Store:
    """One bucket. `client`: boto3's; safe to use from several threads."""

    client: Any
    options: StoreOptions
    retry: RetryPolicy

    @property
    def _sending(self) -> Sending:
        return self.options.sending

    def _digest(self, body: Body) -> dict[str, str]:
        if not self._sending.digest:
            return {}
        digest = hashlib.md5(usedforsecurity=False)
        for piece in (body,) if isinstance(body, bytes) else body.pieces:
            digest.update(piece)
        return {"ContentMD5": base64.b64encode(digest.digest()).decode("ascii")}

    def put(self, key: str, body: Body, precondition: Precondition, metadata: Mapping[str, str] | None = None) -> str:
        """Write an object whole."""
        extra = {**_condition(precondition), **self._sending.creating(), **self._digest(body)}
        answer = self._write(
            key,
            lambda: self.client.put_object(
                Bucket=self.options.bucket, Key=key, Body=sendable(body), Metadata=dict(metadata or {}), **extra
            ),
        )
        return str(answer["ETag"])

    def get(self, key: str, start: int | None = None, end: int | None = None) -> bytes:
        """The object, or a range of it."""
        first = start or 0
        if end is not None and end <= first:
            return b""
        whole = start is None and end is None
        extra: dict[str, Any] = {} if whole else {"Range": f"bytes={first}-{'' if end is None else end - 1}"}
        extra |= self._sending.touching()

        def request() -> bytes:
            try:
                answer = self.client.get_object(Bucket=self.options.bucket, Key=key, **extra)
            except ClientError as error:
                if status_of(error) == _BEYOND_ITS_END:
                    return b""
                raise
            return bytes(answer["Body"].read())

        return self._read(key, request)

    def head(self, key: str) -> Head | None:
        """What is under the key."""
        ask = functools.partial(
            self.client.head_object, Bucket=self.options.bucket, Key=key, **self._sending.touching()
        )

        def request() -> Any:  # noqa: ANN401 - boto3's own dictionary
            try:
                return ask()
            except ClientError as error:
                if status_of(error) not in _WORDLESS:
                    raise
            # A HEAD's refusal has no body: a GET says whether it is for good or an expired token.
            self.client.get_object(**ask.keywords, Range="bytes=0-0")["Body"].close()
            return ask()

        try:
            answer = self._read(key, request)
        except NotFoundError:
            return None
        return Head(answer["ContentLength"], answer["ETag"], answer.get("Metadata", {}))

    def list(self, prefix: str, start_after: str = "") -> Iterator[Listed]:
        """Objects in the order of their keys, a page at a time."""
        extra: dict[str, str] = {"StartAfter": start_after} if start_after else {}
        while True:
            page = self._read(prefix, functools.partial(self._page, prefix, extra))
            for each in page.get("Contents", []):
                if "ETag" in each:  # a server that keeps files lists those it is still writing, which have none yet
                    yield Listed(each["Key"], each["Size"], each["ETag"])
            if not page.get("IsTruncated"):
                return
            extra = {"ContinuationToken": page["NextContinuationToken"]}

    def _page(self, prefix: str, extra: Mapping[str, str]) -> Any:  # noqa: ANN401 - boto3's own dictionaries
        return self.client.list_objects_v2(Bucket=self.options.bucket, Prefix=prefix, **extra)

    def tag(self, key: str, tags: Mapping[str, str]) -> None:
        """Put an object's tags in the place of those it has."""
        pairs = [{"Key": name, "Value": value} for name, value in tags.items()]
        self._read(
            key,
            lambda: self.client.put_object_tagging(Bucket=self.options.bucket, Key=key, Tagging={"TagSet": pairs}),
        )

    def delete(self, key: str) -> None:
        """Remove an object."""
        self._read(key, lambda: self.client.delete_object(Bucket=self.options.bucket, Key=key))

    def begin(self, key: str, metadata: Mapping[str, str]) -> Upload:
        """Begin a multipart upload."""
        answer = self._read(
            key,
            lambda: self.client.create_multipart_upload(
                Bucket=self.options.bucket, Key=key, Metadata=dict(metadata), **self._sending.creating()
            ),
        )
        return Upload(key, answer["UploadId"])

    def part(self, upload: Upload, number: int, body: Body) -> Part:
        """Upload one part; doing it twice is harmless."""
        extra = {**self._sending.touching(), **self._digest(body)}
        answer = self._read(
            upload.key,
            lambda: self.client.upload_part(
                Bucket=self.options.bucket,
                Key=upload.key,
                UploadId=upload.upload_id,
                PartNumber=number,
                Body=sendable(body),
                **extra,
            ),
        )
        return Part(number, answer["ETag"])

    def complete(self, upload: Upload, parts: Sequence[Part], precondition: Precondition) -> str:
        """Make the parts one object."""
        listed = [{"PartNumber": part.number, "ETag": part.etag} for part in parts]
        answer = self._write(
            upload.key,
            lambda: self.client.complete_multipart_upload(
                Bucket=self.options.bucket,
                Key=upload.key,
                UploadId=upload.upload_id,
                MultipartUpload={"Parts": listed},
                **_condition(precondition),
                **self._sending.touching(),
            ),
        )
        return str(answer["ETag"])

    def abort(self, upload: Upload) -> None:
        """Forget a multipart upload."""
        try:
            self._read(
                upload.key,
                lambda: self.client.abort_multipart_upload(
                    Bucket=self.options.bucket, Key=upload.key, UploadId=upload.upload_id
                ),
            )
        except NotFoundError:
            return

    def uploads(self, prefix: str) -> Iterator[Upload]:
        """Multipart uploads that were neither completed nor aborted, a page at a time."""
        extra: dict[str, str] = {}
        while True:
            page = self._read(prefix, functools.partial(self._uploads_page, prefix, extra))
            for each in page.get("Uploads", []):
                if each["Key"].startswith(prefix):
                    yield Upload(each["Key"], each["UploadId"])
            if not page.get("IsTruncated"):
                return
            extra = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page.get("NextUploadIdMarker", "")}

    def _uploads_page(self, prefix: str, extra: Mapping[str, str]) -> Any:  # noqa: ANN401 - boto3's own dictionaries
        return self.client.list_multipart_uploads(Bucket=self.options.bucket, Prefix=prefix, **extra)

    def check(self) -> None:
        """Ask for one object of the bucket, the cheapest request whose refusal says why."""
        self._read("", lambda: self.client.list_objects_v2(Bucket=self.options.bucket, MaxKeys=1))

    def _read(self, key: str, request: Callable[[], T]) -> T:
        """A request that may be repeated."""
        try:
            return self.retry.call(request, is_passing)
        except ClientError as error:
            if status_of(error) == _MISSING and code_of(error) != "NoSuchBucket":
                msg = f"there is no object `{key}` in {self.options.place}"
                raise NotFoundError(msg) from error
            raise self._unavailable(error) from error
        except (BotoCoreError, OSError) as error:
            raise self._unavailable(error) from error

    def _write(self, key: str, request: Callable[[], T]) -> T:
        """A request with a precondition, whose outcome may stay unknown."""
        try:
            return self.retry.call(request, is_passing)
        except ClientError as error:
            status, code = status_of(error), code_of(error)
            if status == _REFUSED or code in ("PreconditionFailed", "NoSuchKey"):
                msg = f"`{key}` in {self.options.place} is not what the write was made for"
                raise RefusedError(msg) from error
            if status == _CONFLICT or code == "NoSuchUpload":
                msg = f"another write to `{key}` in {self.options.place} was under way"
                raise ConflictError(msg) from error
            if is_passing(error):
                raise OutcomeUnknownError(self._sentence(error)) from error
            raise self._unavailable(error) from error
        except (*_SILENT, IncompleteReadError) as error:
            if not is_passing(error):
                raise self._unavailable(error) from error
            raise OutcomeUnknownError(self._sentence(error)) from error
        except BotoCoreError as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        return StoreUnavailable(self._sentence(error), transient=is_passing(error))

    def _sentence(self, error: Exception) -> str:
        return sentence(error, self.options.place, credentials.where_to_put(self.options.provider))


def _condition(precondition: Precondition) -> dict[str, str]:
    if isinstance(precondition, Create):
        return {"IfNoneMatch": "*"}
    if isinstance(precondition, Replace):
        return {"IfMatch": precondition.etag}
    return {}
