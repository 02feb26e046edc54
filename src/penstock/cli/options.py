"""What several commands share: their options, and how a command with its example is declared."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from penstock.cli.output import OUTPUTS, Output

if TYPE_CHECKING:
    from collections.abc import Callable

Function = TypeVar("Function", bound="Callable[..., None]")


@dataclass(slots=True)
class Session:
    """What the edge must know about the command that ran."""

    verbose: bool = False


def command(name: str, *, example: str) -> Callable[[Callable[..., None]], click.Command]:
    """Declare a command. `example`: lines that a user can copy; they end its help."""

    def declare(function: Callable[..., None]) -> click.Command:
        lines = "\n".join(f"  {line}" for line in example.splitlines())
        return click.command(name, epilog=f"\b\nExample:\n{lines}")(_verbose(function))

    return declare


def subcommand(group: click.Group, name: str, *, example: str) -> Callable[[Callable[..., None]], click.Command]:
    """Declare a command of a group, as `command` does."""

    def declare(function: Callable[..., None]) -> click.Command:
        made = command(name, example=example)(function)
        group.add_command(made)
        return made

    return declare


def _remember_verbose(context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(Session).verbose = True


_verbose = click.option(
    "--verbose",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_remember_verbose,
    help="Log more, and show the traceback of an error.",
)


def _output(_context: click.Context, _option: click.Parameter, value: str) -> Output:
    return OUTPUTS[value]()


def output_option(function: Function) -> Function:
    """`--output text|json`, handed on as an `Output`."""
    return click.option(
        "--output",
        type=click.Choice(list(OUTPUTS)),
        default="text",
        show_default=True,
        callback=_output,
        help="How to print the result.",
    )(function)


def _directory(_context: click.Context, _option: click.Parameter, value: Path) -> Path:
    return value.expanduser().absolute()


def dir_option(function: Function) -> Function:
    """`--dir`, handed on as `directory`: the folder of the embedded stack."""
    return click.option(
        "--dir",
        "directory",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("~/.penstock"),
        envvar="PENSTOCK_DIR",
        show_default=True,
        show_envvar=True,
        callback=_directory,
        help="Folder of the embedded stack.",
    )(function)


def worker_option(function: Function) -> Function:
    """`--worker FILE`: where Kafka and the registry are, in place of the embedded stack."""
    return click.option(
        "--worker",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Worker properties that say where Kafka and the registry are; default: the embedded stack.",
    )(function)
