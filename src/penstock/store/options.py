"""Where a bucket is, how it is reached and what goes with every request: frozen values that travel to the executors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from urllib.parse import quote, urlsplit

# Canned ACLs that let nobody in but the bucket's owner: a bucket policy may ask for them on every object.
_OWNERS_ACLS = ("bucket-owner-read", "bucket-owner-full-control")


@dataclass(frozen=True, slots=True)
class Role:
    """The role that `assume_role` takes on. `region`, `url`: the token service's, where not the bucket's and AWS's."""

    arn: str
    session: str = "penstock"
    external_id: str = ""
    region: str = ""
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Sending:
    """What objects are stored with. No key is in its repr.

    `encryption`: `s3.ssea.name`; `customer_key`: the 32 bytes themselves, `digest`: whether a Content-MD5 is sent.
    """

    encryption: str = ""
    kms_key_id: str = ""
    customer_key: bytes = field(default=b"", repr=False)
    acl: str | None = None
    storage_class: str | None = None
    content_type: str | None = None
    digest: bool = False

    def creating(self) -> dict[str, str | bytes]:
        """Arguments of the requests that begin an object: PutObject and CreateMultipartUpload."""
        given = {"ACL": self.acl, "StorageClass": self.storage_class, "ContentType": self.content_type}
        if self.encryption and not self.customer_key:
            given["ServerSideEncryption"] = self.encryption
            given["SSEKMSKeyId"] = (self.kms_key_id or None) if self.encryption.startswith("aws:kms") else None
        return {**{name: value for name, value in given.items() if value is not None}, **self.touching()}

    def touching(self) -> dict[str, str | bytes]:
        """Arguments of every request that writes or reads an object's bytes, or asks what it is."""
        if not self.customer_key:
            return {}
        return {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": self.customer_key}

    def for_state(self) -> Sending:
        """What the state log is stored with: it must stay readable for us, and for us alone.

        A customer key may be changed at any time, so the log has none; it holds nothing that a listing does not show.
        """
        acl = self.acl if self.acl in _OWNERS_ACLS else None
        encryption = "" if self.customer_key else self.encryption
        return Sending(encryption, self.kms_key_id if encryption else "", acl=acl, digest=self.digest)


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Where the bucket is and how to reach it; pickled to the executors. No secret is in its repr.

    `provider`: a short name, or `module:Class`, which gets `provider_options`. `proxy`: an address with its login.
    """

    bucket: str
    region: str = "us-west-2"
    url: str | None = None
    path_style: bool = True
    provider: str = "default"
    access_key_id: str = field(default="", repr=False)
    secret_access_key: str = field(default="", repr=False)
    part_size: int = 26_214_400
    retries: int = 3
    backoff_ms: int = 200
    timeout_seconds: int = 60
    role: Role | None = None
    provider_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    proxy: str | None = field(default=None, repr=False)
    accelerate: bool = False
    expect_continue: bool = True
    sending: Sending = field(default_factory=Sending)

    @property
    def place(self) -> str:
        """The bucket and where it is, for messages."""
        return f"bucket `{self.bucket}` at {self.url or f'S3 in {self.region}'}"

    def for_state(self) -> StoreOptions:
        """The same store, as the state log uses it."""
        return replace(self, sending=self.sending.for_state())


def with_login(url: str, user: str, password: str) -> str:
    """A proxy's address with its login; `user` and `password` go before those in the address."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    named = quote(user, safe="") if user else parts.username or ""
    secret = quote(password, safe="") if password else parts.password or ""
    login = f"{named}:{secret}@" if named else ""
    return f"{parts.scheme}://{login}{host}"
