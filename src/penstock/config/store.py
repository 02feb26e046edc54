"""How objects are stored and how the store is reached: login, encryption, access, tags, proxies."""
# ruff: noqa: RUF009 - `prop` makes a field

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.config.declare import prop
from penstock.config.kinds import Bool, Choice, Hidden, HttpUrl, Matching, Text
from penstock.config.store_kinds import CustomerKey, ProxyUrl, Tags

if TYPE_CHECKING:
    from penstock.config.secret import Secret

PROVIDER_OPTIONS = "s3.credentials.provider."
_KMS = ("aws:kms", "aws:kms:dsse")
_ACLS = (
    "private",
    "public-read",
    "public-read-write",
    "authenticated-read",
    "aws-exec-read",
    "bucket-owner-read",
    "bucket-owner-full-control",
)
_CLASSES = ("STANDARD", "REDUCED_REDUNDANCY", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """What `SinkConfig` says of the store beyond its address and static keys."""

    role_arn: str = prop(
        "s3.credentials.provider.sts.role.arn", Text(blank=True), default="", doc="Role to assume, with `assume_role`."
    )
    role_session: str = prop(
        "s3.credentials.provider.sts.role.session.name",
        Matching(r"[\w+=,.@-]{2,64}", "2 to 64 letters, digits or `+=,.@_-`"),
        default="penstock",
        doc="Name of the session under the assumed role; S3's logs show it.",
    )
    role_external_id: str = prop(
        "s3.credentials.provider.sts.role.external.id",
        Text(blank=True),
        default="",
        doc="External id that the role's trust policy asks for.",
    )
    sts_region: str = prop(
        "s3.credentials.provider.sts.region",
        Text(blank=True),
        default="",
        doc="Region of the security token service; the bucket's if empty.",
    )
    sts_url: str | None = prop(
        "s3.credentials.provider.sts.url",
        HttpUrl(),
        default=None,
        origin="Penstock",
        doc="Another security token service than AWS's; `AWS_ENDPOINT_URL_STS` counts as well.",
    )
    encryption: str = prop(
        "s3.ssea.name",
        Choice(("", "AES256", *_KMS)),
        default="",
        doc="Server-side encryption of the objects; `AES256` with `s3.sse.customer.key` is that with a customer key.",
    )
    customer_key: Secret | None = prop(
        "s3.sse.customer.key",
        CustomerKey(),
        default=None,
        doc="Key of server-side encryption with a customer key: 32 bytes in base64.",
    )
    kms_key_id: str = prop(
        "s3.sse.kms.key.id",
        Text(blank=True),
        default="",
        only_with=("s3.ssea.name", _KMS),
        doc="Key of the key management service; S3's own (`aws/s3`) if empty.",
    )
    acl: str | None = prop("s3.acl.canned", Choice(_ACLS), default=None, doc="Canned ACL of the objects.")
    wan_mode: bool = prop("s3.wan.mode", Bool(), default="false", doc="Whether S3 Transfer Acceleration is used.")
    proxy_url: Secret | None = prop(
        "s3.proxy.url",
        ProxyUrl(),
        default=None,
        doc="Proxy on the way to the store; a scheme other than http means https. Without it the environment's.",
    )
    proxy_user: str = prop(
        "s3.proxy.user", Text(blank=True), default="", doc="User name at the proxy, before one in its URL."
    )
    proxy_password: Secret | None = prop(
        "s3.proxy.password", Hidden(), default=None, doc="Password at the proxy, before one in its URL."
    )
    tagging: bool = prop(
        "s3.object.tagging",
        Bool(),
        default="false",
        doc="Whether objects get the tags startOffset, endOffset (of the last record) and recordCount.",
    )
    tags: tuple[tuple[str, str], ...] = prop(
        "s3.object.tagging.key.value.pairs",
        Tags(),
        default="",
        only_with=("s3.object.tagging", (True,)),
        doc="Further tags, as KEY:VALUE with commas between.",
    )
    on_tagging_error: str = prop(
        "s3.object.behavior.on.tagging.error",
        Choice(("ignore", "fail")),
        default="ignore",
        only_with=("s3.object.tagging", (True,)),
        doc="What a failure to set tags does: a line in the log, or the topic-partition stops before the commit.",
    )
    send_digest: bool = prop(
        "s3.send.digest", Bool(), default="false", doc="Whether a Content-MD5 goes with every object and part."
    )
    storage_class: str | None = prop(
        "s3.storage.class",
        Choice(_CLASSES),
        default=None,
        origin="Penstock",
        doc="S3's storage class of the objects; the bucket's default (STANDARD) if not set.",
    )
    content_type: str | None = prop(
        "s3.content.type",
        Matching(r"[\w.+-]+/[\w.+-]+( *;[\x20-\x7e]*)?", "a media type such as `application/json`"),
        default=None,
        origin="Penstock",
        doc="Content-Type of the objects; S3's default (binary/octet-stream) if not set, as with the connector.",
    )
    expect_continue: bool = prop(
        "s3.http.send.expect.continue",
        Bool(),
        default="true",
        doc="Whether bodies of 1 MiB and more wait for the store's consent (`Expect: 100-continue`).",
    )
