"""`${env:NAME}` and `${file:PATH:KEY}` in property values, as Kafka's own configuration providers read them.

`PATH` is itself a properties file; the path ends at the first colon. What a variable gives is taken as it is, counts as
given by the property, and is never shown in a message: those show the variable.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.config.properties import Properties, Value, read
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

_VARIABLE = re.compile(r"\$\{([^}:]*):([^}]*)\}")


def resolve(properties: Properties, environ: Mapping[str, str]) -> Properties:
    """The properties with every variable replaced by its text. Raises ConfigError, all that are missing at once."""
    files: dict[str, Properties] = {}
    problems: list[str] = []
    entries = {name: _resolved(value, environ, files, problems) for name, value in properties.items()}
    if problems:
        raise ConfigError(problems)
    return replace(properties, entries=entries)


def _resolved(value: Value, environ: Mapping[str, str], files: dict[str, Properties], problems: list[str]) -> Value:
    def text_of(match: re.Match[str]) -> str:
        try:
            return _lookup(match[1], match[2], environ, files)
        except LookupError as error:
            problems.append(f"{value.where}: {match[0]}: {error.args[0]}")
        except ConfigError as error:
            problems.extend(f"{value.where}: {match[0]}: {problem}" for problem in error.problems)
        return ""

    text = _VARIABLE.sub(text_of, value.text)
    return value if text == value.text else Value(text, value.where, value.text)


def _lookup(provider: str, argument: str, environ: Mapping[str, str], files: dict[str, Properties]) -> str:
    """The text of one variable. Raises LookupError with the reason, or the ConfigError of the file it names."""
    if provider == "env":
        if argument not in environ:
            msg = f"the environment variable {argument} is not set; export it"
            raise LookupError(msg)
        return environ[argument]
    if provider != "file":
        msg = f"unknown kind of variable `{provider}`; write ${{env:NAME}} or ${{file:PATH:KEY}}"
        raise LookupError(msg)
    path, colon, key = argument.partition(":")
    if not (path and colon and key):
        msg = "needs a path and a key; write ${file:PATH:KEY}"
        raise LookupError(msg)
    if path not in files:
        files[path] = read(path)
    if key not in files[path]:
        msg = f"{path} has no property {key}; add it there"
        raise LookupError(msg)
    return files[path][key].text
