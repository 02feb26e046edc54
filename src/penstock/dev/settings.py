"""What a stack keeps in its folder so that a restart has the same addresses and credentials."""

from __future__ import annotations

import json
import os
import secrets
import socket
import uuid
from base64 import urlsafe_b64encode
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from pathlib import Path

S3Server = Literal["s3proxy", "moto"]

# As in etc/quickstart-s3.properties.
DEFAULT_BUCKET = "confluent-kafka-connect-s3-testing"
REGION: Literal["us-west-2"] = "us-west-2"

_PORT_NAMES = ("kafka", "kafka-controller", "s3", "schema-registry", "worker")
# Below every system's ephemeral range, so that no outgoing connection takes a port between two starts.
_PORTS = range(20000, 32000)
# `FIRST-LAST`: other ports to choose from, so that stacks that start at the same time never choose the same one.
_PORTS_VARIABLE = "PENSTOCK_PORTS"
_FEWEST_PORTS, _LAST_PORT = 100, 65535


@dataclass(frozen=True, slots=True)
class StackInfo:
    """How to reach a stack. `as_json()` has the names that scripts rely on."""

    bootstrap_servers: str
    store_url: str
    region: str
    bucket: str
    access_key_id: str
    secret_access_key: str = field(repr=False)
    schema_registry_url: str

    def as_json(self) -> dict[str, str]:
        """Under the connector's property names."""
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "store.url": self.store_url,
            "s3.region": self.region,
            "s3.bucket.name": self.bucket,
            "aws.access.key.id": self.access_key_id,
            "aws.secret.access.key": self.secret_access_key,
            "schema.registry.url": self.schema_registry_url,
        }


@dataclass(frozen=True, slots=True)
class Settings:
    """Chosen once per folder. `ports`: loopback port per name."""

    s3: S3Server
    bucket: str
    cluster_id: str
    access_key_id: str
    secret_access_key: str = field(repr=False)
    ports: dict[str, int]

    def address(self, name: str) -> str:
        """Host and port of a service."""
        return f"127.0.0.1:{self.ports[name]}"

    def url(self, name: str) -> str:
        """The HTTP address of a service."""
        return f"http://{self.address(name)}"

    def info(self) -> StackInfo:
        """What users need of it."""
        return StackInfo(
            bootstrap_servers=self.address("kafka"),
            store_url=self.url("s3"),
            region=REGION,
            bucket=self.bucket,
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
            schema_registry_url=self.url("schema-registry"),
        )


def new(s3: S3Server, bucket: str) -> Settings:
    """Settings for a new stack: free ports, a secret of its own.

    Raises:
        PenstockError: PENSTOCK_PORTS is no range of ports.
    """
    return Settings(
        s3=s3,
        bucket=bucket,
        cluster_id=urlsafe_b64encode(uuid.uuid4().bytes).decode("ascii").rstrip("="),
        access_key_id=f"AKIA{secrets.token_hex(8).upper()}",
        secret_access_key=secrets.token_urlsafe(30),
        ports=free_ports(_PORT_NAMES),
    )


def load(directory: Path) -> Settings | None:
    """The settings of the stack in `directory`, or None if there is none.

    Raises:
        PenstockError: the file is there but not readable as what `save` writes.
    """
    path = _path(directory)
    try:
        return Settings(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError) as error:
        msg = f"{path}: not the settings of a stack ({error}); remove the folder `{directory}` and start anew"
        raise PenstockError(msg) from error


def save(directory: Path, settings: Settings) -> None:
    """Keep `settings` in `directory`, readable by its owner only: they hold a secret."""
    path = _path(directory)
    draft = path.with_suffix(".new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(asdict(settings), file, indent=2)
    draft.replace(path)


def with_free_ports(settings: Settings, names: tuple[str, ...]) -> Settings:
    """New ports for those of `names` whose port another program has taken meanwhile."""
    taken = tuple(name for name in names if not _is_free(settings.ports[name]))
    return replace(settings, ports={**settings.ports, **free_ports(taken)}) if taken else settings


def free_ports(names: tuple[str, ...]) -> dict[str, int]:
    """A port for each of `names` that is free now and that the system gives to no outgoing connection.

    Raises:
        PenstockError: PENSTOCK_PORTS is no range of ports.
    """
    ports: dict[str, int] = {}
    choices = _choices()
    while len(ports) < len(names):
        port = secrets.choice(choices)
        if port not in ports.values() and _is_free(port):
            ports[names[len(ports)]] = port
    return ports


def _path(directory: Path) -> Path:
    return directory / "stack.json"


def _choices() -> range:
    given = os.environ.get(_PORTS_VARIABLE)
    if given is None:
        return _PORTS
    first, dash, last = given.partition("-")
    if dash and first.isdecimal() and last.isdecimal():
        chosen = range(int(first), int(last) + 1)
        if len(chosen) >= _FEWEST_PORTS and chosen[0] > 0 and chosen[-1] <= _LAST_PORT:
            return chosen
    msg = f"{_PORTS_VARIABLE} must be a range of at least {_FEWEST_PORTS} ports as in `20000-20999`, got `{given}`"
    raise PenstockError(msg)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
