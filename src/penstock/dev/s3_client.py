"""A boto3 client for the stack's own S3 server: one try per request, path style, the stack's credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from penstock.dev.settings import REGION
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from penstock.dev.settings import Settings

_CONFIG = Config(
    retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}, connect_timeout=2, read_timeout=10, proxies={}
)


def s3_client(settings: Settings) -> S3Client:
    """A client that signs with the stack's credentials and looks at no profile of the user's."""
    return boto3.client(
        "s3",
        endpoint_url=settings.url("s3"),
        region_name=REGION,
        aws_access_key_id=settings.access_key_id,
        aws_secret_access_key=settings.secret_access_key,
        config=_CONFIG,
    )


def answers(settings: Settings) -> str | None:
    """None once the server lists its buckets for our credentials; else why not."""
    try:
        s3_client(settings).list_buckets()
    except (BotoCoreError, ClientError) as error:
        return str(error)
    return None


def make_bucket(settings: Settings) -> None:
    """See that the stack's bucket is there and that the server keeps user metadata, which recovery relies on.

    Raises:
        PenstockError: it does not.
    """
    client, bucket = s3_client(settings), settings.bucket
    try:
        if bucket not in {each.get("Name") for each in client.list_buckets()["Buckets"]}:
            client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        key = "_penstock_stack_probe"
        client.put_object(Bucket=bucket, Key=key, Body=b"", Metadata={"probe": "kept"})
        kept = client.head_object(Bucket=bucket, Key=key)["Metadata"]
        client.delete_object(Bucket=bucket, Key=key)
    except (BotoCoreError, ClientError) as error:
        msg = f"the S3 server of the stack cannot make the bucket `{bucket}`: {error}"
        raise PenstockError(msg) from error
    if kept.get("probe") != "kept":
        msg = "the disk of the stack's folder keeps no extended attributes, which s3proxy needs; use another --dir"
        raise PenstockError(msg)
