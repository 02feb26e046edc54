"""What stands between Kafka and the files: a query, or a function, over the records (docs/spark.md)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.config.declare import prop
from penstock.config.kinds import Matching

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.config.properties import Value
    from penstock.config.reading import Findings

TABLES = "transform.tables."
"""What the properties begin with that name tables; NAME follows."""
VERSION = ".version"
"""What follows NAME where the state log records which files a table was."""
VIEW = "records"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ANY = Matching(r"(?s:[^\x00]*)", "a text")
_FUNCTION = Matching(r"([A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*)?", "`module:function`")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformConfig:
    """A transformation of the records; none where neither a query nor a function is given."""

    sql: str = prop(
        "transform.sql",
        _ANY,
        default="",
        shapes=True,
        origin="Penstock",
        doc="A query over the view `records` whose result is written in place of the values (docs/spark.md).",
    )
    function: str = prop(
        "transform.python",
        _FUNCTION,
        default="",
        shapes=True,
        origin="Penstock",
        doc="A function of yours, `module:function`: it is given the view as a DataFrame and gives the result as one.",
    )
    schema: str = prop(
        "transform.schema",
        _ANY,
        default="",
        shapes=True,
        origin="Penstock",
        doc="The type of the values, as the JSON of a Spark type (`schema.json()`). Where it is not given it is found "
        "out at the start, from the registry or the newest records, and recorded in the state log.",
    )

    @property
    def wanted(self) -> bool:
        """Whether records are transformed at all."""
        return bool(self.sql or self.function)

    @property
    def name(self) -> str:
        """The property that says how."""
        return "transform.sql" if self.sql else "transform.python"


def tables(given: Mapping[str, str]) -> dict[str, str]:
    """Name -> what is read under it, of the properties that shape files."""
    return {
        name.removeprefix(TABLES): text
        for name, text in given.items()
        if name.startswith(TABLES) and not is_version(name)
    }


def is_version(name: str) -> bool:
    """Whether a name of the state log says which files a table was."""
    return name.startswith(TABLES) and name.endswith(VERSION)


def check(given: Mapping[str, Value], findings: Findings) -> None:
    """Note what cannot be together."""
    chosen = [name for name in ("transform.sql", "transform.python") if name in given and given[name].text.strip()]
    if len(chosen) > 1:
        where = given[chosen[1]].where
        findings.problem(chosen[1], f"{where}: one of transform.sql and transform.python may be set, not both")
    named = [name for name in given if name.startswith(TABLES)]
    for name in named:
        table, where = name.removeprefix(TABLES), given[name].where
        if not _IDENTIFIER.fullmatch(table) or table.lower() == VIEW:
            findings.problem(
                name,
                f"{where}: {name}: a table is named with letters, digits and `_`, not beginning with a digit, and not "
                f"`{VIEW}`; got `{table}`",
            )
        elif not given[name].text.strip():
            findings.problem(name, f"{where}: {name} must be a path or the name of a table, got ``")
    for name in ("transform.schema", *named):
        if name in given and not chosen:
            findings.warnings.append(
                (name, f"{given[name].where}: {name} has no effect without transform.sql or transform.python")
            )
