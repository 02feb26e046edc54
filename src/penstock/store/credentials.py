"""Where S3 credentials come from: boto3's chain or one step of it, static keys, a role, or the user's own class.

Temporary ones are renewed before they expire, by botocore, or by the object that the user's class gave.
"""

from __future__ import annotations

import functools
import importlib
import os
from typing import TYPE_CHECKING, Any, Protocol

import boto3
import botocore.session
from botocore.config import Config
from botocore.credentials import (
    CredentialProvider,
    CredentialResolver,
    DeferredRefreshableCredentials,
    EnvProvider,
)
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError

from penstock.errors import ConfigError, StoreUnavailable
from penstock.store.faults import code_of, is_passing, status_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from botocore.loaders import Loader
    from botocore.session import Session

    from penstock.store.options import Role, StoreOptions

# Short name -> the method names of boto3's providers that it stands for.
_STEPS: dict[str, tuple[str, ...]] = {
    "profile": ("shared-credentials-file", "config-file", "custom-process", "sso", "login", "assume-role"),
    "container": ("container-role",),
    "instance_profile": ("iam-role",),
    "container_or_instance": ("container-role", "iam-role"),
    "web_identity": ("assume-role-with-web-identity",),
}
# The names that only the Java SDK knew come second.
_ENVIRONMENT = {"access_key": "AWS_ACCESS_KEY", "secret_key": "AWS_SECRET_KEY"}
_CLASS = "s3.credentials.provider.class"
_STS_TRIES = 3
_DEFAULT_PLACES = (
    "set aws.access.key.id and aws.secret.access.key, the environment variables AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials"
)
_PLACES = {
    "environment": "set the environment variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "profile": "write ~/.aws/credentials, or name a profile with the environment variable AWS_PROFILE",
    "container": "this runs in no container with a role (AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is not set)",
    "instance_profile": "this machine has no instance profile that can be asked",
    "container_or_instance": "neither a container's role nor an instance profile can be asked here",
    "web_identity": "set the environment variables AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN",
}


class Credentials(Protocol):
    """Keys that may change: botocore asks before every request."""

    def get_frozen_credentials(self) -> Any:  # noqa: ANN401 - botocore's ReadOnlyCredentials, or what looks like it
        """An object with `access_key`, `secret_key` and `token` (or None)."""
        ...


class Provider(Protocol):
    """What `module:Class` names: a class with `create`, or any callable that takes the same."""

    def create(self, options: Mapping[str, str], /) -> Credentials:
        """Credentials. `options`: the properties with the prefix `s3.credentials.provider.`, without it."""
        ...


def session(options: StoreOptions) -> boto3.Session:
    """A session whose credentials come from where the options say.

    Raises:
        ConfigError: the user's own class cannot be loaded, or gave no credentials.
    """
    inner = botocore.session.get_session()
    keys: dict[str, str] = {}
    if options.provider == "assume_role" and options.role is not None:
        _use(inner, _assumed(options, options.role))
    elif ":" in options.provider:
        _use(inner, _own(options.provider, dict(options.provider_options)))
    elif options.access_key_id and options.secret_access_key:
        keys = _keys(options)
    elif options.provider == "environment":
        inner.register_component("credential_provider", CredentialResolver(_environment()))
    elif options.provider in _STEPS:
        _keep_only(inner, _STEPS[options.provider])
    made = boto3.Session(botocore_session=inner, region_name=options.region, **keys)
    inner.register_component("data_loader", _descriptions())
    return made


def where_to_put(provider: str) -> str:
    """What to do where no credentials were found."""
    return _PLACES.get(provider, _DEFAULT_PLACES)


@functools.cache
def _descriptions() -> Loader:
    """What botocore knows of S3, read once in a process: it is most of what a client's making takes."""
    loader: Loader = botocore.session.get_session().get_component("data_loader")
    return loader


def _keys(options: StoreOptions) -> dict[str, str]:
    return {"aws_access_key_id": options.access_key_id, "aws_secret_access_key": options.secret_access_key}


def _environment() -> list[CredentialProvider]:
    return [EnvProvider(), EnvProvider(os.environ, _ENVIRONMENT)]


def _keep_only(inner: Session, methods: tuple[str, ...]) -> None:
    resolver = inner.get_component("credential_provider")
    resolver.providers = [each for each in resolver.providers if each.METHOD in methods]


def _use(inner: Session, credentials: Credentials) -> None:
    inner.register_component("credential_provider", CredentialResolver([_Given(credentials)]))


class _Given(CredentialProvider):
    """A provider that has its credentials already."""

    METHOD = "penstock"

    def __init__(self, credentials: Credentials) -> None:
        super().__init__()
        self._credentials = credentials

    def load(self) -> Any:  # noqa: ANN401 - as in botocore
        return self._credentials


def _assumed(options: StoreOptions, role: Role) -> Credentials:
    """The role's credentials, asked for at the first request and again before they expire."""
    given = bool(options.access_key_id and options.secret_access_key)
    base = boto3.Session(
        options.access_key_id if given else None,
        options.secret_access_key if given else None,
        region_name=role.region or options.region,
    )
    config = Config(connect_timeout=10, read_timeout=30, retries={"total_max_attempts": _STS_TRIES})
    client = base.client("sts", endpoint_url=role.url, config=config)
    arguments = {"RoleArn": role.arn, "RoleSessionName": role.session}
    if role.external_id:
        arguments["ExternalId"] = role.external_id
    who = "aws.access.key.id" if given else "the credentials of boto3's chain"
    return DeferredRefreshableCredentials(_asker(client, arguments, who), "assume-role")


def _asker(client: Any, arguments: dict[str, str], who: str) -> Callable[[], dict[str, str]]:  # noqa: ANN401 - boto3's
    def ask() -> dict[str, str]:
        try:
            found = client.assume_role(**arguments)["Credentials"]
        except (ClientError, BotoCoreError) as error:
            raise StoreUnavailable(
                _refused(error, arguments, who, client.meta.endpoint_url), transient=is_passing(error)
            ) from error
        return {
            "access_key": found["AccessKeyId"],
            "secret_key": found["SecretAccessKey"],
            "token": found["SessionToken"],
            "expiry_time": found["Expiration"].isoformat(),
        }

    return ask


def _refused(error: Exception, arguments: Mapping[str, str], who: str, url: str) -> str:
    """Who asked for which role, what the token service said, and what to do."""
    head = f"the role `{arguments['RoleArn']}` cannot be assumed with {who} (session `{arguments['RoleSessionName']}`)"
    if isinstance(error, ClientError):
        said = str(error.response.get("Error", {}).get("Message", "")).strip().rstrip(".") or "nothing more"
        advice = {
            "InvalidClientTokenId": "correct the access key",
            "SignatureDoesNotMatch": "correct the secret key",
            "ExpiredToken": "renew those credentials",
        }.get(code_of(error), "let the role's trust policy name who asks, and allow that one sts:AssumeRole")
        return f"{head}: the token service answers {code_of(error)} ({status_of(error)}): {said}; {advice}"
    if isinstance(error, (NoCredentialsError, PartialCredentialsError)):
        return f"{head}: there are none; {_DEFAULT_PLACES}"
    return (
        f"{head}: {url} does not answer ({type(error).__name__}); check s3.credentials.provider.sts.region and its url"
    )


def _own(name: str, options: dict[str, str]) -> Credentials:
    """The credentials that the user's class makes."""
    module, _, attribute = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        msg = f"{_CLASS}=`{name}` cannot be loaded: {error}; it must be importable here and on Spark's executors"
        raise ConfigError([msg]) from error
    try:
        made = getattr(found, "create", found)(options)
    except Exception as error:  # noqa: BLE001 - whatever the user's code raises
        said = _masked(f"{type(error).__name__}: {error}", options)
        msg = f"{_CLASS}=`{name}` made no credentials: {said}"
        raise ConfigError([msg]) from None
    if not callable(getattr(made, "get_frozen_credentials", None)):
        msg = f"{_CLASS}=`{name}` must give an object like botocore's Credentials, it gave a {type(made).__name__}"
        raise ConfigError([msg])
    credentials: Credentials = made
    return credentials


def _masked(text: str, options: Mapping[str, str]) -> str:
    """A text without the values of options, which may be secrets."""
    for value in filter(None, options.values()):
        text = text.replace(value, "****")
    return text
