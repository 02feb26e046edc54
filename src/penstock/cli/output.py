"""How a command prints its result on stdout: as text for people or as JSON for scripts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Json = str | int | float | bool | None | Mapping[str, "Json"] | Sequence["Json"]


class Output(Protocol):
    """Prints the result of one command; called once per command."""

    def fields(self, values: Mapping[str, Json]) -> None:
        """Print one thing with named values."""

    def tables(self, tables: Mapping[str, Sequence[Mapping[str, Json]]], *, facts: Mapping[str, Json]) -> None:
        """Print named lists of rows of the same names, and `facts` that belong to all of them."""


class TextOutput:
    """Aligned columns that a terminal, grep and awk all read."""

    def fields(self, values: Mapping[str, Json]) -> None:
        """One line per value."""
        width = max(map(len, values), default=0)
        for name, value in values.items():
            click.echo(f"{name:<{width}}  {_text(value)}".rstrip())

    def tables(self, tables: Mapping[str, Sequence[Mapping[str, Json]]], *, facts: Mapping[str, Json]) -> None:
        """The facts, then each list as a table with a headline; lists without rows are left out."""
        shown = {name: value for name, value in facts.items() if value is not None}
        self.fields(shown)
        gap = bool(shown)
        for rows in tables.values():
            if rows:
                if gap:
                    click.echo()
                _table(rows)
                gap = True


class JsonOutput:
    """One JSON document."""

    def fields(self, values: Mapping[str, Json]) -> None:
        """One object."""
        click.echo(json.dumps(values, indent=2))

    def tables(self, tables: Mapping[str, Sequence[Mapping[str, Json]]], *, facts: Mapping[str, Json]) -> None:
        """One object: the facts, and each list under its name."""
        click.echo(json.dumps({**facts, **{name: list(rows) for name, rows in tables.items()}}, indent=2))


OUTPUTS: dict[str, type[Output]] = {"text": TextOutput, "json": JsonOutput}


def _text(value: Json) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return "-" if value is None or value == "" else str(value)


def _table(rows: Sequence[Mapping[str, Json]]) -> None:
    names = list(rows[0])
    lines = [[name.upper().replace("_", " ") for name in names]]
    lines += [[_text(row[name]) for name in names] for row in rows]
    numeric = [all(isinstance(row[name], int) or row[name] is None for row in rows) for name in names]
    widths = [max(len(line[column]) for line in lines) for column in range(len(names))]
    for line in lines:
        cells = [
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, numeric, strict=True)
        ]
        click.echo("  ".join(cells).rstrip())
