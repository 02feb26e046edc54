"""docs/cli.md, made from the commands' own help: `python -m penstock.cli.reference > docs/cli.md`."""

from __future__ import annotations

import sys

import click

from penstock.cli.main import cli

_HEAD = """# Commands

Generated from the commands' help by `python -m penstock.cli.reference`; do not edit.

Data goes to stdout, words to stderr. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 another instance took over.
"""


def render() -> str:
    """The whole page."""
    parts = [_HEAD]
    for name in sorted(cli.commands):
        command = cli.commands[name]
        context = click.Context(
            command,
            info_name=f"penstock {name}",
            max_content_width=100,
            terminal_width=100,
            help_option_names=["-h", "--help"],
        )
        parts.append(f"## penstock {name}\n\n```text\n{command.get_help(context).rstrip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(render())
