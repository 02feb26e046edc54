"""Properties files: Java's `.properties` syntax, and the JSON form in which Kafka Connect's REST API takes them.

Every value keeps the place it was read from, so that a mistake is named by file and line. `.properties` files are read
as UTF-8, or as Latin-1 (what Java assumes) where they are not valid UTF-8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from javaproperties import InvalidUEscapeError, KeyValue
from javaproperties import parse as parse_elements

from penstock.config.secret import without_logins
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

_NEWLINE = re.compile(r"\r\n|\r|\n")
_SHOWN_CHARACTERS = 120
_CONNECT_REPLY = frozenset({"name", "config", "tasks", "type"})


@dataclass(frozen=True, slots=True)
class Value:
    """One property's text and where it stands (`file:line`, or `file: config.NAME` in JSON).

    `written`: the text before variables were put in, where that differs. No repr shows a text: it may be a secret.
    """

    text: str = field(repr=False)
    where: str
    written: str | None = field(default=None, repr=False)

    @property
    def shown(self) -> str:
        """What an error message may show: a variable by its name, no login in an address, long text cut."""
        text = without_logins(self.text if self.written is None else self.written)
        return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


@dataclass(frozen=True, slots=True)
class Properties(Mapping[str, Value]):
    """What one file gives, in file order. `warnings`: a sentence per name that is given more than once."""

    file: str
    entries: Mapping[str, Value]
    warnings: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Value:
        return self.entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


def read(path: str | Path) -> Properties:
    """The properties of a file; JSON where its text begins with a brace. Raises ConfigError, all mistakes at once."""
    text = _decode(_bytes(path), str(path))
    return parse_json(text, str(path)) if text.lstrip().startswith("{") else parse(text, str(path))


def parse(text: str, file: str) -> Properties:
    """The properties of `.properties` text. The last of several equal names wins. Raises ConfigError."""
    problems: list[str] = []
    entries: dict[str, Value] = {}
    warnings: list[str] = []
    for line, name, value in _key_values(text, file, problems):
        if not name:
            problems.append(f"{file}:{line}: no property name before the separator; write NAME=VALUE")
        _put(entries, warnings, name, Value(value, f"{file}:{line}"))
    if problems:
        raise ConfigError(problems)
    return Properties(file, entries, tuple(warnings))


def parse_json(text: str, file: str) -> Properties:
    """The properties of `{"name": ..., "config": {...}}` or of a flat object. Raises ConfigError."""
    try:
        document = json.loads(text, object_pairs_hook=_Pairs, parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as error:
        raise ConfigError([f"{file}:{error.lineno}: not valid JSON: {error.msg} at column {error.colno}"]) from None
    except RecursionError:
        raise ConfigError([f"{file}: not valid JSON: nested too deeply"]) from None
    problems: list[str] = []
    entries: dict[str, Value] = {}
    warnings: list[str] = []
    for place, name, item in _json_items(document, file, problems):
        if isinstance(item, (str, bool)):
            known = entries.get(name)
            value = Value(str(item).lower() if isinstance(item, bool) else item, f"{file}: {place}")
            if place == "name" and known is not None and known.text != value.text:
                problems.append(f"{file}: name is `{value.shown}` beside config but `{known.shown}` in it; keep one")
            elif place != "name" or known is None:
                _put(entries, warnings, name, value)
        else:
            got = "null" if item is None else "an object" if isinstance(item, _Pairs) else "a list"
            problems.append(f"{file}: {place} must be a text, a number, true or false, got {got}")
    if problems:
        raise ConfigError(problems)
    return Properties(file, entries, tuple(warnings))


def of_mapping(texts: Mapping[str, str], file: str) -> Properties:
    """The properties of a mapping that no file holds; `file` is how messages name it, for instance `arguments`."""
    return Properties(file, {name: Value(text, f"{file}: {name}") for name, text in texts.items()})


class _Pairs(tuple[tuple[str, Any], ...]):
    """A JSON object with duplicate names kept."""

    __slots__ = ()


def _bytes(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        msg = f"{path}: no such file; check the path"
    except IsADirectoryError:
        msg = f"{path}: is a folder; name a properties file in it"
    except (OSError, ValueError) as error:
        msg = f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}"
    raise ConfigError([msg])


def _decode(data: bytes, file: str) -> str:
    if b"\0" in data:
        raise ConfigError([f"{file}: not a text file (it holds zero bytes); save it as UTF-8"])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("iso-8859-1")


def _key_values(text: str, file: str, problems: list[str]) -> Iterator[tuple[int, str, str]]:
    """(line of its beginning, name, value) per property; a malformed one becomes a problem and is passed over."""
    stream, line, seen = StringIO(text, newline=""), 1, 0
    while True:
        try:
            element = next(parse_elements(stream), None)
        except InvalidUEscapeError as error:
            problems.append(
                f"{file}:{line}: malformed escape `{error.escape}`; write \\uXXXX with 4 hex digits, or \\\\"
            )
        else:
            if element is None:
                return
            if isinstance(element, KeyValue):
                yield line, element.key, element.value
        end = stream.tell()
        line, seen = line + len(_NEWLINE.findall(text[seen:end])), end


def _json_items(document: object, file: str, problems: list[str]) -> Iterator[tuple[str, str, object]]:
    """(place, property name, value) of both JSON forms; `config` first, so that its own `name` is known."""
    if not isinstance(document, _Pairs):
        problems.append(f"{file}: must hold one JSON object, got a list or a bare value")
        return
    config = dict(document).get("config")
    if config is None:
        yield from ((name, name, item) for name, item in document)
        return
    if not isinstance(config, _Pairs):
        problems.append(f"{file}: config must be a JSON object of properties")
        return
    yield from ((f"config.{name}", name, item) for name, item in config)
    for name, item in document:
        if name == "name":
            yield name, name, item
        elif name not in _CONNECT_REPLY:
            problems.append(f"{file}: unknown member `{name}` beside config; put properties into config")


def _put(entries: dict[str, Value], warnings: list[str], name: str, value: Value) -> None:
    """Adds a property at the end of the order; says so where it replaces an earlier one."""
    earlier = entries.pop(name, None)
    if earlier is not None:
        warnings.append(f"{value.where}: {name} is given again; its value at {earlier.where} is not used")
    entries[name] = value
