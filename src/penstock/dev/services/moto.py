"""moto as the S3 server: in memory, signatures checked. What it holds is gone once it stops."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import requests
from boto3.session import Session

from penstock.dev.services.service import Launch, Service, Site
from penstock.dev.settings import REGION
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.dev.settings import Settings

_EVERYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


def _fetch(_: Callable[[str], None]) -> object:
    if importlib.util.find_spec("moto") is None:
        msg = "moto is not installed: `pip install 'moto[server]'`, or start with --s3 s3proxy"
        raise PenstockError(msg)
    return None


def _prepare(site: Site) -> Launch:
    port = site.settings.ports["s3"]
    return Launch(command=(sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)))


def _answers(settings: Settings) -> str | None:
    try:
        requests.get(f"{settings.url('s3')}/moto-api/data.json", timeout=2).raise_for_status()
    except requests.RequestException as error:
        return str(error)
    return None


def _ready(site: Site) -> Settings:
    """Make a user that may do everything, and have signatures checked from then on."""
    url = site.settings.url("s3")
    anybody = Session("anybody", "anything", region_name=REGION)
    iam = anybody.client("iam", endpoint_url=url)
    iam.create_user(UserName="penstock")
    key = iam.create_access_key(UserName="penstock")["AccessKey"]
    iam.put_user_policy(UserName="penstock", PolicyName="everything", PolicyDocument=json.dumps(_EVERYTHING))
    headers = {"Content-Type": "text/plain"}
    requests.post(f"{url}/moto-api/reset-auth", data="0", headers=headers, timeout=10).raise_for_status()
    return replace(site.settings, access_key_id=key["AccessKeyId"], secret_access_key=key["SecretAccessKey"])


SERVICE = Service(name="s3", ports=("s3",), fetch=_fetch, prepare=_prepare, answers=_answers, ready=_ready)
