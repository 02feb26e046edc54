"""Properties of the connector that do nothing yet, each declared once, so that the reference is whole.

A value that would change something is refused by name. A property that comes to work moves into `SinkConfig`.
"""

from __future__ import annotations

from penstock.config.declare import Property
from penstock.config.kinds import Bool, Choice, Hidden, Int, Text, Words

_CANNED_ACLS = (
    "private",
    "public-read",
    "public-read-write",
    "authenticated-read",
    "log-delivery-write",
    "bucket-owner-read",
    "bucket-owner-full-control",
    "aws-exec-read",
)

CONTENTS = (
    Property(
        name="allow.optional.map.keys",
        kind=Bool(),
        default="false",
        shapes=True,
        supported=(False,),
        doc="Whether a map with optional text keys becomes an Avro map.",
    ),
    Property(
        name="s3.compression.type",
        kind=Choice(("none", "gzip")),
        default="none",
        shapes=True,
        supported=("none",),
        doc="Compression of JSON and bytes objects.",
    ),
    Property(
        name="s3.compression.level",
        kind=Int(-1, 9),
        default="-1",
        shapes=True,
        only_with=("s3.compression.type", ("gzip",)),
        doc="Level of that compression; -1 leaves it to zlib.",
    ),
    Property(
        name="json.decimal.format",
        kind=Choice(("BASE64", "NUMERIC"), any_case=True),
        default="BASE64",
        shapes=True,
        supported=("BASE64",),
        doc="How decimals are written in JSON.",
    ),
    Property(
        name="parquet.codec",
        kind=Choice(("none", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4_raw")),
        default="snappy",
        shapes=True,
        only_with=("format.class", ("parquet",)),
        doc="Compression of Parquet files.",
    ),
)

STORE = (
    Property(
        name="s3.credentials.provider.sts.role.arn",
        kind=Text(blank=True),
        default="",
        supported=("",),
        doc="Role to assume.",
    ),
    Property(
        name="s3.credentials.provider.sts.role.session.name",
        kind=Text(blank=True),
        default="",
        supported=("",),
        doc="Name of the session under the assumed role.",
    ),
    Property(
        name="s3.credentials.provider.sts.role.external.id",
        kind=Text(blank=True),
        default="",
        supported=("",),
        doc="External id that the role's trust policy asks for.",
    ),
    Property(
        name="s3.credentials.provider.sts.region",
        kind=Text(blank=True),
        default="",
        supported=("",),
        doc="Region of the security token service.",
    ),
    Property(
        name="s3.ssea.name",
        kind=Choice(("", "AES256", "aws:kms", "aws:kms:dsse")),
        default="",
        supported=("",),
        doc="Server-side encryption of the objects.",
    ),
    Property(
        name="s3.sse.customer.key",
        kind=Hidden(),
        supported=(None,),
        doc="Key of server-side encryption with a customer key.",
    ),
    Property(
        name="s3.sse.kms.key.id",
        kind=Text(blank=True),
        default="",
        supported=("",),
        doc="Key of the key management service, with `aws:kms`.",
    ),
    Property(name="s3.acl.canned", kind=Choice(_CANNED_ACLS), supported=(None,), doc="Canned ACL of the objects."),
    Property(
        name="s3.wan.mode",
        kind=Bool(),
        default="false",
        supported=(False,),
        doc="Whether S3 Transfer Acceleration is used.",
    ),
    Property(
        name="s3.proxy.url",
        kind=Text(blank=True),
        default="",
        supported=("",),
        doc="HTTP proxy on the way to the store.",
    ),
    Property(name="s3.proxy.user", kind=Text(), supported=(None,), doc="User name at the proxy."),
    Property(name="s3.proxy.password", kind=Hidden(), supported=(None,), doc="Password at the proxy."),
    Property(
        name="s3.object.tagging",
        kind=Bool(),
        default="false",
        supported=(False,),
        doc="Whether objects get the tags startOffset, endOffset and recordCount.",
    ),
    Property(
        name="s3.object.tagging.key.value.pairs",
        kind=Words(),
        default="",
        supported=((),),
        doc="Further tags, as KEY:VALUE with commas between.",
    ),
    Property(
        name="s3.object.behavior.on.tagging.error",
        kind=Choice(("ignore", "fail")),
        default="ignore",
        only_with=("s3.object.tagging", (True,)),
        doc="What a failure to set tags does.",
    ),
    Property(
        name="s3.send.digest",
        kind=Bool(),
        default="false",
        supported=(False,),
        doc="Whether a Content-MD5 goes with every part.",
    ),
)

PENDING = (*CONTENTS, *STORE)
