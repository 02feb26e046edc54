"""docs/cli.md, made from the commands' own help: `python -m penstock.cli.reference > docs/cli.md`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from penstock.cli.main import cli

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = """# Commands

Generated from the commands' help by `python -m penstock.cli.reference`; do not edit.

Data goes to stdout, words to stderr. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 another instance took over.
"""


def render() -> str:
    """The whole page."""
    return "\n".join((_HEAD, *_sections("penstock", cli)))


def _sections(parent: str, group: click.Group) -> Iterator[str]:
    """Every command of a group, and those of the groups in it behind them."""
    for name in sorted(group.commands):
        command, full = group.commands[name], f"{parent} {name}"
        context = click.Context(
            command,
            info_name=full,
            max_content_width=100,
            terminal_width=100,
            help_option_names=["-h", "--help"],
        )
        yield f"## {full}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"
        if isinstance(command, click.Group):
            yield from _sections(full, command)


if __name__ == "__main__":
    sys.stdout.write(render())
