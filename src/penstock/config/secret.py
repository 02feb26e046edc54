"""Text that must never be shown."""

from __future__ import annotations

import re
from dataclasses import dataclass

HIDDEN = "****"
_LOGIN = re.compile(r"((?<=://)[^\s,]*|(?<![^\s,])[^\s,/:]*:(?!//)[^\s,]*)@")


def without_logins(text: str) -> str:
    """A text in which no address shows who logs in, or with what."""
    return _LOGIN.sub(f"{HIDDEN}@", text)


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A password, key or token: `str`, `repr` and format strings give `****`; `reveal` alone gives the text."""

    _text: str

    def reveal(self) -> str:
        """The text, for the one call that must send it."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __str__(self) -> str:
        return HIDDEN

    def __repr__(self) -> str:
        return HIDDEN
