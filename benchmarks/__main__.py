"""`make bench`: all stages, or some (`STAGES="compare startup"`, `CASES="avro-avro"`); `QUICK=1` to try them out."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import curves, micro, odd_loads, page, profiles, sources
from benchmarks.arena import Arena, contenders
from benchmarks.cases import CASES
from benchmarks.compare import QUICK, Effort, case_runs
from benchmarks.results import Results, machine, requests_row, row

if TYPE_CHECKING:
    from collections.abc import Callable


def compare(arena: Arena, results: Results, given: argparse.Namespace) -> None:
    """Ours beside the contenders, each case by itself so that one that fails costs no other."""
    found, missing = contenders()
    failed = []
    for name in given.cases or CASES:
        try:
            runs = case_runs(arena, CASES[name], found, QUICK if given.quick else Effort())
        except RuntimeError as error:
            failed.append(f"{name}: {error}")
            say(failed[-1])
            arena.delete("")  # what it left
            continue
        rows = [row(name, contender, measured) for contender, measured in runs.items()]
        results.save_row("latest", rows)
        results.save_row("requests", [requests_row(name, who, measured) for who, measured in runs.items()])
        for each in rows:
            say(f"{name} {each['contender']}: {each['records_per_cpu_s']:,} records/CPU-s, {each['peak_rss_mb']} MB")
    results.save("machine", {**machine(), "left_out": [text for text in (missing, *failed) if text]})


def curve(arena: Arena, results: Results, given: argparse.Namespace) -> None:
    """Scale curves."""
    results.save("curves", curves.all_curves(arena, curves.QUICK if given.quick else curves.FULL, say))


def odd(arena: Arena, results: Results, given: argparse.Namespace) -> None:
    """Loads that could fall off a cliff."""
    results.save("odd", odd_loads.odd_loads(arena, _sizes(given)))


def distance(arena: Arena, results: Results, given: argparse.Namespace) -> None:
    """S3 30 ms away."""
    results.save("distance", odd_loads.distance(arena, _sizes(given), contenders()[0]))


def latency(arena: Arena, results: Results, given: argparse.Namespace) -> None:
    """From produce to commit; what idling costs."""
    results.save(
        "latency", {"waits": odd_loads.latency(arena, _sizes(given)), "idle": odd_loads.idle(arena, _sizes(given))}
    )


def startup(arena: Arena, results: Results, given: argparse.Namespace) -> None:
    """A cold start in its parts."""
    results.save("startup", odd_loads.cold_start(arena, _sizes(given), say))


def spark_sources(arena: Arena, results: Results, given: argparse.Namespace) -> None:
    """DataFrames of Kafka and of objects, and transformations."""
    sizes = sources.QUICK if given.quick else sources.FULL
    results.save("sources", sources.sources(arena, sizes, contenders()[0], say))


def profiled(arena: Arena, results: Results, given: argparse.Namespace) -> None:
    """Where the time goes, case by case."""
    rows = []
    for name in given.cases or CASES:
        records, flush = (400_000, 10_000) if given.quick else (16_000_000, 100_000)
        if name not in _FAST and not given.quick:
            records //= 4
        try:
            stacks = profiles.profile(arena, CASES[name], records=records, flush=flush)
        except RuntimeError as error:
            say(f"{name}: {error}")
            continue
        profiles.draw(stacks, name, _page(given).with_suffix("") / f"flame-{name}.svg")
        rows.append({"case": name, "top": profiles.top(stacks)})
    results.save("profiles", rows)


def microscopic(_: Arena, results: Results, given: argparse.Namespace) -> None:
    """What is done to every record, under pyperf."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "micro.json"
        command = [sys.executable, "-m", "benchmarks.micro", "--quiet", "-o", str(output)]
        command += ["--processes", "2", "--values", "2"] if given.quick else ["--processes", "6"]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(page.PAGE.parents[1])})
        results.save("micro", micro.read(output))


def say(text: str) -> None:
    """To whoever watches."""
    print(text, flush=True)


def _page(given: argparse.Namespace) -> Path:
    return page.QUICK_PAGE if given.quick else page.PAGE


def _sizes(given: argparse.Namespace) -> odd_loads.Sizes:
    return odd_loads.QUICK if given.quick else odd_loads.FULL


_FAST = ("avro-avro", "avro-avro-snappy", "json-json", "bytes-bytes", "avro-avro-hourly")
STAGES: dict[str, Callable[[Arena, Results, argparse.Namespace], None]] = {
    "compare": compare,
    "distance": distance,
    "curves": curve,
    "odd": odd,
    "latency": latency,
    "startup": startup,
    "sources": spark_sources,
    "profiles": profiled,
    "micro": microscopic,
}


def main() -> None:
    """Run stages one after another on servers of their own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"of {', '.join(STAGES)}; default: all")
    parser.add_argument("--cases", nargs="*", choices=list(CASES), help="of the stage compare; default: all")
    parser.add_argument("--quick", action="store_true", help="small sizes; results go to build/bench")
    given = parser.parse_args()
    if unknown := set(given.stages) - STAGES.keys():
        parser.error(f"no such stage: {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # servers are ended on the way out
    results = Results.of(quick=given.quick)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder, Arena.open(Path(folder) / "stack") as arena:
        for stage in given.stages or STAGES:
            say(f"== {stage}")
            STAGES[stage](arena, results, given)
            page.write(results, _page(given))
    say(f"written: {_page(given)} and {results.folder}")


if __name__ == "__main__":
    main()
