"""The loop around a contender's jobs. Nothing else is imported here: one of the contenders runs in another venv."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def answer(run: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Do each job of stdin with `run` until stdin ends. stdout is kept for the answers alone."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    print(json.dumps({"ready": os.getpid()}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), file=answers, flush=True)
