"""Kinds of values that only the store's properties have."""
# ruff: noqa: D102 - the Protocol documents the members of all kinds, once

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from penstock.config.kinds import Hidden, Named
from penstock.config.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY_BYTES = 32
MOST_TAGS = 7  # S3 takes ten, three are Penstock's
OUR_TAGS = ("startOffset", "endOffset", "recordCount")
_IMPORTED = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_TAG_KEY = re.compile(r"[\w +=./@-]{1,128}")
_TAG_VALUE = re.compile(r"[\w +=./@:-]{0,256}")


@dataclass(frozen=True, slots=True)
class Provider:
    """A class of `names`, or one of the user's own as `module:Class`; the short name, or that text, is the value.

    `unusable`: short names that are known only so that a sentence can say why they are refused.
    """

    names: Mapping[str, str]
    unusable: tuple[str, ...] = ()
    label: str = "class"

    @property
    def rule(self) -> str:
        usable = {name: short for name, short in self.names.items() if short not in self.unusable}
        return f"{Named(usable).rule}, or module:Class"

    def parse(self, text: str) -> str:
        if _IMPORTED.fullmatch(text.strip()):
            return text.strip()
        try:
            return Named(self.names).parse(text)
        except ValueError:
            msg = f"must be {self.rule}"
            raise ValueError(msg) from None


@dataclass(frozen=True, slots=True)
class CustomerKey(Hidden):
    """Base64 of 32 bytes, never shown."""

    rule: str = "32 bytes in base64"

    def parse(self, text: str) -> Secret:
        try:
            size = len(base64.b64decode(text.strip(), validate=True))
        except (binascii.Error, ValueError):
            msg = f"must be {self.rule}, it is no base64"
            raise ValueError(msg) from None
        if size != KEY_BYTES:
            msg = f"must be {self.rule}, these are {size} bytes"
            raise ValueError(msg)
        return Secret(text.strip())


@dataclass(frozen=True, slots=True)
class ProxyUrl(Hidden):
    """The address of a proxy, never shown, since a password may be in it. Any scheme but http means https."""

    label: str = "string"
    rule: str = "http://HOST:PORT or https://HOST:PORT"

    def parse(self, text: str) -> Secret:
        url = text.strip()
        try:
            parts = urlsplit(url)
            valid = bool(parts.scheme and parts.hostname) and parts.port != 0 and not re.search(r"\s", url)
        except ValueError:
            valid = False
        if not valid:
            msg = f"must be {self.rule}"
            raise ValueError(msg)
        return Secret(f"{'http' if parts.scheme == 'http' else 'https'}://{parts.netloc}")


@dataclass(frozen=True, slots=True)
class Tags:
    """Tags of objects: KEY:VALUE with commas between; a value may hold colons. The value is a tuple of pairs."""

    label: str = "list"
    rule: str = "KEY:VALUE with commas"

    def parse(self, text: str) -> tuple[tuple[str, str], ...]:
        pairs = tuple(_pair(item) for each in text.split(",") if (item := each.strip()))
        keys = [key for key, _ in pairs]
        twice = next((key for key in keys if keys.count(key) > 1 or key in OUR_TAGS), None)
        if twice is not None:
            msg = f"must name each tag once, beside {', '.join(OUR_TAGS)}: not `{twice}`"
            raise ValueError(msg)
        if len(pairs) > MOST_TAGS:
            msg = f"must be at most {MOST_TAGS} tags, since S3 takes ten and three are Penstock's"
            raise ValueError(msg)
        return pairs


def _pair(item: str) -> tuple[str, str]:
    key, colon, value = (part.strip() for part in item.partition(":"))
    if not colon or not _TAG_KEY.fullmatch(key) or not _TAG_VALUE.fullmatch(value):
        msg = f"must be KEY:VALUE with commas (letters, digits, blanks and `+-=._/@`), not `{item}`"
        raise ValueError(msg)
    return key, value
