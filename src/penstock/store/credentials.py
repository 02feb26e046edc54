"""Where S3 credentials come from: boto3's chain, static keys, or one step of the chain (seed 001, "Credentials")."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import boto3
import botocore.session
from botocore.credentials import CredentialProvider, CredentialResolver, EnvProvider

if TYPE_CHECKING:
    from botocore.session import Session

# Short name -> the method names of boto3's providers that it stands for.
_STEPS: dict[str, tuple[str, ...]] = {
    "profile": ("shared-credentials-file", "config-file", "custom-process", "sso", "assume-role"),
    "container": ("container-role",),
    "instance_profile": ("iam-role",),
}
# The names that only the Java SDK knew come second.
_ENVIRONMENT = {"access_key": "AWS_ACCESS_KEY", "secret_key": "AWS_SECRET_KEY"}


def session(provider: str, region: str) -> boto3.Session:
    """A session whose credentials come from the provider of that short name; `default` and `static` change nothing."""
    inner = botocore.session.get_session()
    if provider == "environment":
        inner.register_component("credential_provider", CredentialResolver(_environment()))
    elif provider in _STEPS:
        _keep_only(inner, _STEPS[provider])
    return boto3.Session(botocore_session=inner, region_name=region)


def _environment() -> list[CredentialProvider]:
    return [EnvProvider(), EnvProvider(os.environ, _ENVIRONMENT)]


def _keep_only(inner: Session, methods: tuple[str, ...]) -> None:
    resolver = inner.get_component("credential_provider")
    resolver.providers = [each for each in resolver.providers if each.METHOD in methods]
