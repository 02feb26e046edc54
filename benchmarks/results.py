"""`benchmarks/results/`: a file per stage, `latest.json` in the form that issue 7 gives; older ones with their date."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.arena import Run

_HERE = Path(__file__).parent / "results"
_BEGAN = time.time()
_QUICK = Path(__file__).resolve().parents[1] / "build" / "bench" / "results"


@dataclass(frozen=True, slots=True)
class Results:
    """Where a run of the benchmarks keeps what it found; that of a quick one, which is for trying, is apart."""

    folder: Path

    @classmethod
    def of(cls, *, quick: bool) -> Results:
        """The folder, made if it is not there."""
        folder = _QUICK if quick else _HERE
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder)

    def save(self, stage: str, found: Any) -> None:  # noqa: ANN401 - what a stage found
        """Keep it as STAGE.json; that of an earlier process gets its date and is kept beside it."""
        path = self.folder / f"{stage}.json"
        if path.exists() and path.stat().st_mtime < _BEGAN:
            older = self.folder / "older"
            older.mkdir(exist_ok=True)
            when = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc).strftime("%Y-%m-%dT%H%M%S")
            path.replace(older / f"{when}-{stage}.json")
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")

    def load(self, stage: str) -> Any:  # noqa: ANN401
        """What a stage found the last time, or None."""
        path = self.folder / f"{stage}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def save_row(self, stage: str, rows: Sequence[dict[str, Any]]) -> None:
        """Put rows of some cases into STAGE.json, in the place of older ones of the same cases."""
        names = {row["case"] for row in rows}
        kept = [row for row in self.load(stage) or () if row["case"] not in names]
        self.save(stage, [*kept, *rows])


def row(case: str, contender: str, runs: Sequence[Run]) -> dict[str, Any]:
    """One row of `latest.json`."""
    rates = [run.records / run.cpu_s for run in runs]
    return {
        "case": case,
        "contender": contender,
        "records": runs[-1].records,
        "wall_s": [round(run.wall_s, 3) for run in runs],
        "cpu_s": [round(run.cpu_s, 3) for run in runs],
        "records_per_cpu_s": round(statistics.median(rates)),
        "peak_rss_mb": round(max(run.peak_bytes for run in runs) / 1e6),
        "objects": runs[-1].objects,
        "s3_requests": sum(runs[-1].requests.values()),
    }


def requests_row(case: str, contender: str, runs: Sequence[Run]) -> dict[str, Any]:
    """What the last run asked S3 for, by kind, and what else its cost depends on."""
    last = runs[-1]
    return {
        "case": case,
        "contender": contender,
        "records": last.records,
        "objects": last.objects,
        "cpu_s": round(statistics.median(run.cpu_s for run in runs), 3),
        "requests": dict(last.requests),
    }


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if line.startswith("model name")
    ]
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": os.cpu_count(),
        "cpu": models[0] if models else platform.machine(),
        "memory_gib": round(memory / 2**30),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load": [round(value, 1) for value in os.getloadavg()],
    }
