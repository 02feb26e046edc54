"""`make bench`: all stages, or some (`STAGES="compare startup"`, `CASES="avro-avro"`); `QUICK=1` to try them out."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.arena import Arena, contenders
from benchmarks.cases import CASES
from benchmarks.compare import QUICK, Effort, case_rows
from benchmarks.results import Results, machine

if TYPE_CHECKING:
    from collections.abc import Callable


def compare(arena: Arena, results: Results, given: argparse.Namespace) -> None:
    """Ours beside the contenders, each case by itself so that one that fails costs no other."""
    found, missing = contenders()
    failed = []
    for name in given.cases or CASES:
        try:
            rows = case_rows(arena, CASES[name], found, QUICK if given.quick else Effort())
        except RuntimeError as error:
            failed.append(f"{name}: {error}")
            print(failed[-1], flush=True)
            continue
        results.save_row("latest", rows)
        for each in rows:
            print(
                f"{name} {each['contender']}: {each['records_per_cpu_s']:,} records/CPU-s, {each['peak_rss_mb']} MB",
                flush=True,
            )
    results.save("machine", {**machine(), "left_out": [text for text in (missing, *failed) if text]})


STAGES: dict[str, Callable[[Arena, Results, argparse.Namespace], None]] = {"compare": compare}


def main() -> None:
    """Run stages one after another on servers of their own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"of {', '.join(STAGES)}; default: all")
    parser.add_argument("--cases", nargs="*", choices=list(CASES), help="of the stage compare; default: all")
    parser.add_argument("--quick", action="store_true", help="small sizes; results go to build/bench")
    given = parser.parse_args()
    if unknown := set(given.stages) - STAGES.keys():
        parser.error(f"no such stage: {', '.join(sorted(unknown))}")
    results = Results.of(quick=given.quick)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder, Arena.open(Path(folder) / "stack") as arena:
        for stage in given.stages or STAGES:
            print(f"== {stage}", flush=True)
            STAGES[stage](arena, results, given)


if __name__ == "__main__":
    main()
