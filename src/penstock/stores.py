"""From a configuration to the stores: where they are, who asks, and what objects are stored with."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from penstock.statelog.names import Names
from penstock.store.options import Role, Sending, StoreOptions, with_login
from penstock.store.tags import Tagging

if TYPE_CHECKING:
    from penstock.config import SinkConfig
    from penstock.config.store import StoreConfig


def of_state(config: SinkConfig) -> StoreOptions:
    """The store of the state log."""
    bucket = config.bucket if config.state_url is None else config.state_url.removeprefix("s3://").partition("/")[0]
    return of_sink(config, bucket).for_state()


def state_names(config: SinkConfig) -> Names:
    """The keys of the state log."""
    if config.state_url is None:
        return Names(f"{config.state_dir}/{config.name}/")
    prefix = config.state_url.removeprefix("s3://").partition("/")[2]
    return Names(f"{prefix}/{config.name}/" if prefix else f"{config.name}/")


def of_sink(config: SinkConfig, bucket: str | None = None) -> StoreOptions:
    """The store of the objects, or another bucket that is reached in the same way."""
    given = config.store
    role = Role(given.role_arn, given.role_session, given.role_external_id, given.sts_region, given.sts_url)
    return StoreOptions(
        bucket or config.bucket,
        config.region,
        config.store_url,
        path_style=config.path_style,
        provider=config.credentials,
        access_key_id=config.access_key_id,
        secret_access_key=config.secret_access_key.reveal(),
        part_size=config.part_size,
        retries=config.part_retries,
        backoff_ms=config.retry_backoff_ms,
        role=role if config.credentials == "assume_role" else None,
        provider_options=tuple(sorted(config.provider_options.items())),
        proxy=_proxy(given),
        accelerate=given.wan_mode,
        expect_continue=given.expect_continue,
        sending=_sending(given),
    )


def _sending(given: StoreConfig) -> Sending:
    return Sending(
        given.encryption,
        given.kms_key_id,
        base64.b64decode(given.customer_key.reveal()) if given.customer_key else b"",
        given.acl,
        given.storage_class,
        given.content_type,
        given.send_digest,
    )


def _proxy(given: StoreConfig) -> str | None:
    if not given.proxy_url:
        return None
    password = given.proxy_password.reveal() if given.proxy_password else ""
    return with_login(given.proxy_url.reveal(), given.proxy_user, password)


def tagging(config: SinkConfig) -> Tagging | None:
    """What objects are tagged with, if they are."""
    given = config.store
    if not given.tagging:
        return None
    return Tagging(given.tags, "fail" if given.on_tagging_error == "fail" else "ignore")
