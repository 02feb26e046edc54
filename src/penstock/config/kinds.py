"""Kinds of property values: each reads a text, or says in one phrase what it must be.

A kind is a frozen value with a `label` (its type in the reference), a `rule` (what is valid there) and `parse`, which
raises ValueError with a phrase that follows the property's name: "must be an integer >= 1".
"""
# ruff: noqa: D102 - the Protocol documents the members of all kinds, once

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from penstock.config.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Mapping

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INTEGER_DIGITS = 20
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_UNSENDABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_S3_URL = re.compile(r"s3://[A-Za-z0-9][A-Za-z0-9._-]*(/[^/\x00-\x1f\x7f]+)*/?")
_CUSTOM = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_SEPARATOR_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|u.{0,4}|.|$)", re.DOTALL)
_SEPARATOR_TEXT = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "\\": "\\"}


class Kind(Protocol):
    """One kind of value."""

    @property
    def label(self) -> str:
        """The type's name in the reference."""

    @property
    def rule(self) -> str:
        """What is valid, as a phrase for the reference; empty where anything is."""

    def parse(self, text: str) -> Any:  # noqa: ANN401 - each kind has its own type
        """The value of a text. Raises ValueError("must be ...")."""


def one_of(words: tuple[str, ...]) -> str:
    """The words as people list them: "a, b or c"."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


@dataclass(frozen=True, slots=True)
class Text:
    """Any text, trimmed. `blank`: whether it may be empty. Control characters are refused."""

    blank: bool = False
    label: str = "string"

    @property
    def rule(self) -> str:
        return "" if self.blank else "not empty"

    def parse(self, text: str) -> str:
        if not text.strip() and not self.blank:
            msg = "must not be empty"
            raise ValueError(msg)
        if _CONTROL.search(text.strip()):
            msg = "must not hold control characters"
            raise ValueError(msg)
        return text.strip()


@dataclass(frozen=True, slots=True)
class Matching:
    """A text that a pattern matches whole. `rule`: the pattern in words, "a name without `/`"."""

    pattern: str
    rule: str
    label: str = "string"

    def parse(self, text: str) -> str:
        if not re.fullmatch(self.pattern, text.strip()):
            msg = f"must be {self.rule}"
            raise ValueError(msg)
        return text.strip()


@dataclass(frozen=True, slots=True)
class Hidden:
    """A text that is never shown. Libraries that cannot send one would quote it: so it must be one that can be sent."""

    label: str = "password"
    rule: str = ""

    def parse(self, text: str) -> Secret:
        if _UNSENDABLE.search(text.strip()):
            msg = "must not hold control characters or halves of surrogate pairs"
            raise ValueError(msg)
        return Secret(text.strip())


@dataclass(frozen=True, slots=True)
class Int:
    """A whole number in `[minimum, maximum]`."""

    minimum: int = -INT_MAX - 1
    maximum: int = INT_MAX

    @property
    def label(self) -> str:
        return "long" if self.maximum > INT_MAX else "int"

    @property
    def rule(self) -> str:
        if self.maximum not in (INT_MAX, LONG_MAX):
            return f"an integer from {self.minimum} to {self.maximum}"
        return f"an integer >= {self.minimum}" if self.minimum >= -1 else "an integer"

    def parse(self, text: str) -> int:
        digits = text.strip()
        if not _INTEGER.fullmatch(digits) or len(digits) > _INTEGER_DIGITS:
            msg = f"must be {self.rule}"
            raise ValueError(msg)
        number = int(digits)
        if number > self.maximum in (INT_MAX, LONG_MAX):
            msg = f"must be an integer <= {self.maximum}"
            raise ValueError(msg)
        if not self.minimum <= number <= self.maximum:
            msg = f"must be {self.rule}"
            raise ValueError(msg)
        return number


@dataclass(frozen=True, slots=True)
class Bool:
    """`true` or `false`, in any case, as Kafka reads them."""

    label: str = "boolean"
    rule: str = "true or false"

    def parse(self, text: str) -> bool:
        word = text.strip().lower()
        if word not in ("true", "false"):
            msg = f"must be {self.rule}"
            raise ValueError(msg)
        return word == "true"


@dataclass(frozen=True, slots=True)
class Choice:
    """One word of a closed set. `any_case`: upper and lower case are the same; the word of the set is the value.

    `also`: other spellings, each with the word that it stands for.
    """

    words: tuple[str, ...]
    any_case: bool = False
    label: str = "string"
    also: tuple[tuple[str, str], ...] = ()

    @property
    def rule(self) -> str:
        return one_of(tuple(word for word in self.words if word))

    def parse(self, text: str) -> str:
        given = dict(self.also).get(text.strip(), text.strip())
        for word in self.words:
            if given == word or (self.any_case and given.lower() == word.lower()):
                return word
        msg = f"must be {self.rule}"
        raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class Words:
    """A list of texts with commas between, trimmed, empty ones left out."""

    label: str = "list"
    rule: str = "a list with commas"

    def parse(self, text: str) -> tuple[str, ...]:
        return tuple(word for item in text.split(",") if (word := item.strip()))


@dataclass(frozen=True, slots=True)
class Topics:
    """A list of topic names, each once."""

    label: str = "list"
    rule: str = "topic names with commas"

    def parse(self, text: str) -> tuple[str, ...]:
        names = Words().parse(text)
        if not names:
            msg = "must name at least one topic"
            raise ValueError(msg)
        for name in names:
            if not _TOPIC.fullmatch(name) or name in (".", ".."):
                msg = f"must be topic names (letters, digits, `.`, `_`, `-`), not `{name}`"
                raise ValueError(msg)
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class Named:
    """A Java class name or its short name. `names`: class name -> short name; the short name is the value.

    The class name without its package does as well, as in Kafka Connect, and short names in any case. `custom`: so does
    `module:Class`, a class of the user's own, which is its own value.
    """

    names: Mapping[str, str]
    custom: bool = False
    label: str = "class"

    @property
    def rule(self) -> str:
        words = tuple(dict.fromkeys(self.names.values()))
        return one_of((*words, "`module:Class` of your own") if self.custom else words)

    def parse(self, text: str) -> str:
        given = text.strip()
        if given in self.names:
            return self.names[given]
        for name, short in self.names.items():
            if given == name.rpartition(".")[2] or given.lower() == short:
                return short
        if self.custom and _CUSTOM.fullmatch(given):
            return given
        words = one_of(tuple(dict.fromkeys(self.names.values())))
        own = ", or `module:Class` of your own in Python" if self.custom else ""
        msg = f"must be {words}, or the Java class name of one of them{own}"
        raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class HttpUrl:
    """The address of an HTTP server; `https://` is put before one without a scheme. No credentials in it."""

    label: str = "string"
    rule: str = "a URL"

    def parse(self, text: str) -> str:
        url = text.strip().rstrip("/")
        url = url if "://" in url else f"https://{url}"
        try:
            parts = urlsplit(url)
            valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            valid = False
        if not valid or re.search(r"\s", url):
            msg = "must be a URL like https://s3.example.com:9000"
            raise ValueError(msg)
        if "@" in parts.netloc:
            msg = "must hold no user and password"
            raise ValueError(msg)
        return url


@dataclass(frozen=True, slots=True)
class S3Url:
    """`s3://BUCKET` or `s3://BUCKET/PREFIX`, without a slash at its end."""

    label: str = "string"
    rule: str = "s3://BUCKET or s3://BUCKET/PREFIX"

    def parse(self, text: str) -> str:
        if not _S3_URL.fullmatch(text.strip()):
            msg = f"must be {self.rule}"
            raise ValueError(msg)
        return text.strip().rstrip("/")


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket's bare name. Not only AWS's own rules: other stores, and old buckets, take more."""

    label: str = "string"
    rule: str = "the bucket's name"

    def parse(self, text: str) -> str:
        if not _BUCKET.fullmatch(text.strip()):
            msg = "must be the bucket's bare name (letters, digits, `.`, `-`, `_`), without s3:// and path"
            raise ValueError(msg)
        return text.strip()


@dataclass(frozen=True, slots=True)
class Separator:
    r"""A text as it stands, blanks included, with the escapes `\n`, `\r`, `\t`, `\f`, `\\` and `\uXXXX` interpreted."""

    label: str = "string"
    rule: str = r"any text; `\n`, `\t`, `\uXXXX` are interpreted"

    def parse(self, text: str) -> str:
        def interpreted(match: re.Match[str]) -> str:
            escape = match[1]
            if len(escape) == len("uXXXX"):
                return chr(int(escape[1:], 16))
            if escape not in _SEPARATOR_TEXT:
                msg = r"must only hold the escapes \n, \r, \t, \f, \\ and \uXXXX"
                raise ValueError(msg)
            return _SEPARATOR_TEXT[escape]

        separator = _SEPARATOR_ESCAPE.sub(interpreted, text)
        try:
            separator.encode()
        except UnicodeEncodeError:
            msg = "must not hold one half of a surrogate pair"
            raise ValueError(msg) from None
        return separator
