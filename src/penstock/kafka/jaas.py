"""Java's login configuration in one line, as `sasl.jaas.config` holds it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

FLAGS = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(
    r"""\s*(?:(?://[^\n]*|/\*.*?\*/)\s*)*
        (?: "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>(?:[^'\\]|\\.)*)' | (?P<mark>[=;]) | (?P<word>[^\s=;"']+) )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([0-3]?[0-7]{1,2})|(.))", re.DOTALL)
_CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class LoginModule:
    """One login module with its options. Options may hold secrets and stay out of repr()."""

    name: str
    options: dict[str, str] = field(repr=False)


def parse_jaas(text: str) -> LoginModule:
    """Read `module flag key=value ... ;`.

    Raises:
        ValueError: with what is wrong, in words that do not repeat the text: it holds passwords.
    """
    tokens = _tokens(text)
    if not tokens or tokens[-1] != ("mark", ";"):
        msg = "must end with a semicolon"
        raise ValueError(msg)
    head, body = tokens[:2], tokens[2:-1]
    if len(head) < 2 or any(kind != "text" for kind, _ in head) or head[1][1].lower() not in FLAGS:  # noqa: PLR2004 - module, flag
        msg = "must start with a login module and `required`"
        raise ValueError(msg)
    return LoginModule(head[0][1], _options(body))


def _tokens(text: str) -> list[tuple[str, str]]:
    text = text.strip()
    found: list[tuple[str, str]] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            msg = "has a quotation mark that is never closed"
            raise ValueError(msg)
        place = match.end()
        if match["mark"]:
            found.append(("mark", match["mark"]))
        elif match["word"]:
            found.append(("text", match["word"]))
        else:
            quoted = match["double"] if match["double"] is not None else match["single"]
            found.append(("text", _ESCAPE.sub(_unescape, quoted)))
    return found


def _unescape(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 8))
    return _CONTROL.get(match[2], match[2])


def _options(tokens: list[tuple[str, str]]) -> dict[str, str]:
    if ("mark", ";") in tokens:
        msg = "must name one login module, not several"
        raise ValueError(msg)
    options: dict[str, str] = {}
    for start in range(0, len(tokens), 3):
        kinds = [kind if kind == "text" else text for kind, text in tokens[start : start + 3]]
        if kinds != ["text", "=", "text"]:
            msg = f'must give its options as name="value"; number {start // 3 + 1} is not'
            raise ValueError(msg)
        options[tokens[start][1]] = tokens[start + 2][1]
    return options
