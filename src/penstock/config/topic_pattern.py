r"""`topics.regex`: a pattern in Java's syntax, made one of Python's with the same meaning.

Most of the two languages is the same. What differs and can be said in Python is translated (`\Q..\E`, `(?<name>..)`,
`\p{Alpha}`, `\h`, `\z`), what cannot is refused by name. Topic names are ASCII, so classes are ASCII's, as in Java.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

_CLASSES = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "XDigit": "0-9a-fA-F",
    "L": "a-zA-Z",
    "Ll": "a-z",
    "Lu": "A-Z",
    "N": "0-9",
    "Nd": "0-9",
    "IsAlphabetic": "a-zA-Z",
    "IsDigit": "0-9",
    "IsLowercase": "a-z",
    "IsUppercase": "A-Z",
}
_SAME_ESCAPES = frozenset("dDwWsSbBAtnrf")
_TOKEN = re.compile(
    r"""
      \\Q(?P<quoted>.*?)(?:\\E|$)
    | \\(?P<property_sign>[pP])(?:\{(?P<property>\w+)\}|(?P<letter>[A-Z]))
    | \\(?P<code>x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})
    | \\k<(?P<reference>[a-zA-Z][a-zA-Z0-9]*)>
    | \\(?P<escaped>.)
    | \(\?<(?P<name>[a-zA-Z][a-zA-Z0-9]*)>
    | (?P<flags>\(\?[ims]+\))
    | (?P<group>\(\?(?:[:=!]|<[=!]|[ims]*-?[ims]+:))
    | (?P<other_group>\(\?.{0,2})
    | (?P<possessive>(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\+)
    | (?P<open_count>\{,)
    | (?P<plain>.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """The kind of value of `topics.regex`."""

    label: str = "string"
    rule: str = "a Java regular expression"

    def parse(self, text: str) -> re.Pattern[str]:
        """The pattern to `fullmatch` topic names with. Raises ValueError."""
        if not text.strip():
            msg = "must not be empty"
            raise ValueError(msg)
        try:
            return re.compile(translate(text.strip()), re.ASCII)
        except (re.error, OverflowError, RecursionError) as error:
            msg = f"must be a valid regular expression ({error})"
            raise ValueError(msg) from None


def translate(java: str) -> str:
    """Python's form of a Java pattern. Raises ValueError naming what has none; leaves other mistakes to `re`."""
    parts: list[str] = []
    in_class = False
    position = 0
    while position < len(java):
        match = _TOKEN.match(java, position)
        if match is None or (in_class and match.lastgroup not in _CLASS_TOKENS):
            part, end = java[position], position + 1
        else:
            part, end = _part(match, in_class=in_class, first=position == 0), match.end()
        if part == "[" and not in_class:
            in_class = True
            end += java.startswith("^", end)
            part = java[position:end]
            if java.startswith("]", end):
                _refuse("`]` as the first member of a class")
        elif part == "]":
            in_class = False
        elif in_class:
            part = _member(part, java[end : end + 1])
        parts.append(part)
        position = end
    return "".join(parts)


_CLASS_TOKENS = frozenset({"quoted", "property", "letter", "property_sign", "code", "escaped"})


def _part(match: re.Match[str], *, in_class: bool, first: bool) -> str:
    """One token in Python's syntax."""
    found = match.groupdict()
    if found["quoted"] is not None:
        return re.escape(found["quoted"])
    if found["property_sign"]:
        return _property(found["property"] or found["letter"], found["property_sign"] == "P", in_class=in_class)
    if found["reference"]:
        return f"(?P={found['reference']})"
    if found["name"]:
        return f"(?P<{found['name']}>"
    if found["escaped"]:
        return _escaped(found["escaped"], in_class=in_class)
    if found["flags"] and not first:
        _refuse(f"the flag `{found['flags']}` within a pattern (write it first, or as `(?i:...)`)")
    if found["other_group"]:
        _refuse(f"the group `{found['other_group']}...`")
    if found["possessive"]:
        _refuse(f"the possessive quantifier `{found['possessive']}`")
    if found["open_count"]:
        _refuse("a count without its lower bound")
    return match[0]


def _escaped(character: str, *, in_class: bool) -> str:
    if not character.isascii() or not character.isalnum():
        return re.escape(character)
    if character in _SAME_ESCAPES - set("bBA" if in_class else ""):
        return f"\\{character}"
    if character in "123456789" and not in_class:
        return f"\\{character}"
    if character in "zZ" and not in_class:
        return r"\Z"
    if character == "h":
        return r" \t" if in_class else r"[ \t]"
    return _refuse(f"the escape `\\{character}`")


def _property(name: str, negated: bool, *, in_class: bool) -> str:
    if name not in _CLASSES or (negated and in_class):
        _refuse(f"the class `\\{'P' if negated else 'p'}{{{name}}}`{' within [...]' if in_class else ''}")
    members = _CLASSES[name]
    return members if in_class else f"[{'^' if negated else ''}{members}]"


def _member(part: str, following: str) -> str:
    """A member of a class; Java's unions and intersections are refused, Python's reserved doubles made plain."""
    if part == "[":
        _refuse("a class within a class")
    if part == "&" and following == "&":
        _refuse("the intersection `&&` of classes")
    if part == "-" and following == "-":
        _refuse("`--` within a class")
    return f"\\{part}" if part in ("&", "|", "~") else part


def _refuse(what: str) -> NoReturn:
    msg = f"must do without {what}, which Penstock cannot follow"
    raise ValueError(msg)
