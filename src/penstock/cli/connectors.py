"""`penstock load | unload | flush | status | log`: connectors in the background, hosted by the stack's worker."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.options import command, dir_option, output_option
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.cli.output import Output

_TIMEOUT_SECONDS = 120
_FAILED = 400


@command("load", example="penstock load s3-sink -d etc/quickstart-s3.properties")
@click.argument("name")
@click.option(
    "-d",
    "--data",
    "file",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The connector's configuration: properties, or Connect's JSON.",
)
@dir_option
def load(name: str, file: Path, directory: Path) -> None:
    """Run a connector in the background, under NAME, also over restarts of the stack."""
    from penstock.config.properties import read

    config = {key: value.text for key, value in read(file).items()}
    answer = _ask(directory, "POST", "/connectors", {"name": name, "config": {**config, "name": name}})
    click.echo(json.dumps(answer, indent=2))


@command("unload", example="penstock unload s3-sink")
@click.argument("name")
@dir_option
def unload(name: str, directory: Path) -> None:
    """Stop a connector after its running cycle and forget it; its objects and its state in S3 stay."""
    _ask(directory, "DELETE", f"/connectors/{name}")
    click.echo(f"{name} is unloaded", err=True)


@command("flush", example="penstock flush s3-sink")
@click.argument("name")
@dir_option
def flush(name: str, directory: Path) -> None:
    """Close and commit what a connector in the background has open, full or not."""
    done = _ask(directory, "POST", f"/connectors/{name}/flush", patient=True)
    click.echo(
        f"{name}: {done['records']} records in {done['objects']} objects ({done['bytes']} bytes) committed", err=True
    )


@command("status", example="penstock status\npenstock status s3-sink --output json")
@click.argument("name", required=False)
@output_option
@dir_option
def status(name: str | None, output: Output, directory: Path) -> None:
    """Show the services and connectors, or where a connector stands."""
    if name is not None:
        found = _ask(directory, "GET", f"/connectors/{name}/positions")
        output.tables({"partitions": found.pop("partitions")}, facts=found)
        return
    from penstock.dev import stack

    services = [
        {"service": each.name, "state": "UP" if each.up else "DOWN", "pid": each.pid, "address": each.address}
        for each in stack.status(directory)
    ]
    connectors: list[dict[str, Any]] = []
    if any(each["service"] == "worker" and each["state"] == "UP" for each in services):
        for each in _ask(directory, "GET", "/connectors"):
            state = _ask(directory, "GET", f"/connectors/{each}/status")["connector"]
            connectors.append({"connector": each, "state": state["state"], "error": state.get("trace")})
    output.tables({"services": services, "connectors": connectors}, facts={})


@command("log", example="penstock log s3-sink -f")
@click.argument("name")
@click.option("-f", "--follow", is_flag=True, help="Go on as lines come, until Ctrl-C.")
@click.option("-n", "--lines", type=click.IntRange(min=1), default=50, show_default=True, help="How many of the last.")
@dir_option
def log(name: str, follow: bool, lines: int, directory: Path) -> None:
    """Print the log of a connector, or of a service (kafka, s3, schema-registry, worker)."""
    path = directory / "logs" / f"{'worker' if name == 'connect' else name}.log"
    if path.parent != directory / "logs" or not path.is_file():
        logs = sorted(each.stem for each in (directory / "logs").glob("*.log"))
        msg = f"there is no log of `{name}`; there are: {', '.join(logs) or 'none'}"
        raise PenstockError(msg)
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file.readlines()[-lines:]:
            click.echo(line, nl=False)
        while follow:
            text = file.read()
            click.echo(text, nl=False) if text else time.sleep(0.2)


def _ask(directory: Path, verb: str, path: str, body: object = None, *, patient: bool = False) -> Any:  # noqa: ANN401 - JSON
    """One request to the worker; `patient`: however long it takes. Raises PenstockError with its sentence."""
    import requests

    from penstock.dev import stack

    url = stack.worker_url(directory)
    if url is None:
        msg = "no worker runs here; start it with `penstock start`"
        raise PenstockError(msg)
    try:
        answer = requests.request(verb, f"{url}{path}", json=body, timeout=None if patient else _TIMEOUT_SECONDS)
    except requests.RequestException as error:
        msg = f"the worker at {url} does not answer ({type(error).__name__}); see `penstock log worker`"
        raise PenstockError(msg) from error
    if answer.status_code >= _FAILED:
        raise PenstockError(answer.json()["message"])
    return answer.json() if answer.content else None
