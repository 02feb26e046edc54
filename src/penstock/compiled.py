"""Compiled loops: numba and their code are loaded when one is first called, not when its module is imported.

Numba takes 0.8 CPU-seconds and 45 MB; the driver and most commands import the loops and never run one.
"""

from __future__ import annotations

import importlib
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")
_DOORS = "penstock.doors"
_loading = RLock()


def compiled(function: F) -> F:
    """Compile with numba at the first call, kept on disk for later processes; runs without the GIL."""
    return cast("F", _Loop(function, inline=False))


def inlined(function: F) -> F:
    """The same for a function that becomes part of its callers: passing an array costs seven words on the stack."""
    return cast("F", _Loop(function, inline=True))


class _Loop:
    """Stands for a compiled function until it is called."""

    def __init__(self, function: Callable[..., Any], *, inline: bool) -> None:
        self._function, self._inline, self._made = function, inline, None
        self.__doc__, self.__name__ = function.__doc__, function.__name__

    def __call__(self, *arguments: Any) -> Any:  # noqa: ANN401 - any loop's
        """Run it."""
        return self.real()(*arguments)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """What numba's functions have, such as `py_func`."""
        return getattr(self.real(), name)

    def real(self) -> Any:  # noqa: ANN401 - numba's dispatcher
        """Numba's function. From now on its module has that in its place, and so for all that it may call."""
        with _loading:
            if self._made is None:
                self._made = importlib.import_module(_DOORS).njit(self._function, inline=self._inline)
                known = self._function.__globals__
                known |= {name: value.real() for name, value in known.items() if isinstance(value, (_Loop, _Door))}
            return self._made


class _Door:
    """Stands for one of `penstock.doors` in the loops that use it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def real(self) -> Any:  # noqa: ANN401 - numba's intrinsic
        """What numba compiles."""
        return getattr(importlib.import_module(_DOORS), self._name)


memcpy = cast("Callable[[Any, int, Any, int, int], None]", _Door("memcpy"))
high_product = cast("Callable[[Any, Any], Any]", _Door("high_product"))
borrowed = cast("Callable[[Any], Any]", _Door("borrowed"))
load = cast("Callable[[Any, int], Any]", _Door("load"))
store = cast("Callable[[Any, int, Any], None]", _Door("store"))
