"""Memory that a process has taken from the system and does not use."""

from __future__ import annotations

import ctypes


def give_back() -> None:
    """Return what was freed to the system, where the C library can (glibc); imports leave a tenth of what they took."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
