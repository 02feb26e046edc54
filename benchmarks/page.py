"""The generated blocks of docs/performance.md: what stands between `<!-- begin NAME -->` and `<!-- end NAME -->`."""

from __future__ import annotations

import re
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import plots
from benchmarks.arena import OURS
from benchmarks.cases import CASES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.results import Results

Row = dict[str, Any]
_ROOT = Path(__file__).resolve().parents[1]
PAGE = _ROOT / "docs" / "performance.md"
QUICK_PAGE = _ROOT / "build" / "bench" / "performance.md"
# Warm records per CPU-second of Confluent's connector, measured apart from this project on another day.
_CONNECTOR = {
    "avro-avro": 0.34,
    "avro-avro-snappy": 0.34,
    "json-json": 0.45,
    "bytes-bytes": 1.1,
    "avro-avro-hourly": 0.32,
    "avro-parquet": 0.31,
}
_GOALS = {
    "avro-avro": 3.0,
    "avro-avro-snappy": 3.0,
    "json-json": 2.0,
    "bytes-bytes": 3.5,
    "avro-avro-hourly": 2.5,
    "avro-parquet": 1.2,
}
# List prices of Amazon's us-west-2 in dollars: 1,000 writing requests, 1,000 reading ones, an hour of one vCPU.
_WRITE, _READ, _VCPU_HOUR = 0.005, 0.0004, 0.04
_READING = ("get", "head")
_FREE = ("delete", "abort")
_FEW = 100_000


def write(results: Results, page: Path) -> None:
    """Render every block whose stage has results into `page`, plots into the folder beside it."""
    text = (page if page.exists() else PAGE).read_text(encoding="utf-8")
    pictures = page.with_suffix("")
    for name, render in _BLOCKS.items():
        found = results.load(_STAGE.get(name, name))
        if found:
            block = f"<!-- begin {name} -->\n{render(found, pictures).strip()}\n<!-- end {name} -->"
            text = re.sub(rf"<!-- begin {name} -->.*?<!-- end {name} -->", lambda _, b=block: b, text, flags=re.DOTALL)
    page.write_text(text, encoding="utf-8")


def _machine(found: Row, _: Path) -> str:
    text = (
        f"{found['date']}, {found['cores']} cores ({found['cpu']}), {found['memory_gib']} GiB, Linux "
        f"{found['kernel']}, Python {found['python']}; load at the end: {', '.join(map(str, found['load']))}."
    )
    return "\n\n".join([text, *(f"Left out: {reason}" for reason in found["left_out"])])


def _latest(rows: list[Row], pictures: Path) -> str:
    rows = sorted(rows, key=lambda row: list(CASES).index(row["case"]))
    plots.compared(rows, pictures / "compared.svg")
    out = []
    for row in rows:
        rates = [row["records"] / cpu for cpu in row["cpu_s"]]
        ours = row["contender"] == OURS
        goal, connector = _GOALS.get(row["case"], 0), _CONNECTOR.get(row["case"], 0)
        out.append(
            (
                f"`{row['case']}`" if ours else "",
                row["contender"],
                f"{row['records'] / 1e6:.1f} M",
                f"{_million(row['records_per_cpu_s'])} ({_million(min(rates))} to {_million(max(rates))})",
                _range(row["wall_s"]),
                _range(row["cpu_s"]),
                row["peak_rss_mb"],
                row["objects"],
                row["s3_requests"],
                f"{goal} / {connector}" if ours and goal else "",
            )
        )
    head = ("case", "contender", "records", "records per CPU-s (spread)", "wall s", "CPU s", "peak MB", "objects")
    return _picture("compared", pictures, "side by side") + _table((*head, "S3 requests", "goal / connector, M"), out)


def _cost(rows: list[Row], _: Path) -> str:
    out = []
    for row in sorted(rows, key=lambda each: list(CASES).index(each["case"])):
        plain = {name: count for name, count in row["requests"].items() if not name.startswith("state ")}
        dollars = sum(_price(name) * count for name, count in row["requests"].items())
        billion = 1e9 / row["records"]
        compute = row["cpu_s"] / 3600 * _VCPU_HOUR
        out.append(
            (
                f"`{row['case']}`",
                row["contender"],
                row["objects"],
                f"{sum(plain.values()) / max(row['objects'], 1):.2f}",
                sum(row["requests"].values()) - sum(plain.values()),
                f"{dollars * billion:.3f}",
                f"{compute * billion:.2f}",
            )
        )
    head = ("case", "contender", "objects", "S3 requests per object", "for the state log, per run")
    return _table((*head, "$ of requests per 10⁹ records", "$ of CPU per 10⁹ records"), out)


def _price(request: str) -> float:
    kind = request.removeprefix("state ")
    return 0.0 if kind in _FREE else (_READ if kind in _READING else _WRITE) / 1000


def _distance(rows: list[Row], _: Path) -> str:
    out, near = [], {}
    for row in rows:
        wall = statistics.median(row["wall_s"])
        near.setdefault((row["case"], row["contender"]), wall)
        times = f"{wall / near[row['case'], row['contender']]:.2f}x" if row["delay_ms"] else ""
        spread = _range(row["wall_s"])
        rate = round(row["records"] / wall / 1000)
        out.append((f"`{row['case']}`", row["contender"], f"{row['delay_ms']} ms", spread, times, f"{rate}k"))
    return _table(("case", "contender", "delay of a request", "wall s", "of the undelayed", "records/s"), out)


def _curves(found: dict[str, list[Row]], pictures: Path) -> str:
    parts = []
    for name, rows in found.items():
        plots.curve(name, rows, pictures / f"{name}.svg")
        heads = list(rows[0])
        parts.append(f"### {name}\n\n{_slope(name, rows)}\n\n" + _picture(name, pictures, name))
        parts.append(_table(heads, [[row.get(head, "") for head in heads] for row in rows]))
    return "\n".join(parts)


def _slope(name: str, rows: Sequence[Row]) -> str:
    """The curve in words."""
    first, last = rows[0], rows[-1]
    span = f"from {first['x']:,} to {last['x']:,}"
    if name == "state-log":
        return f"Knowing the positions takes {first['read_s']} s and {last['read_s']} s with entries {span}."
    rates = [row["records_per_cpu_s"] for row in rows]
    change = last["records_per_cpu_s"] / first["records_per_cpu_s"]
    text = (
        f"Records per CPU-second change {change:.3g}-fold {span} (best {_million(max(rates))}, worst "
        f"{_million(min(rates))}); peak memory goes from {first['peak_mb']} to {last['peak_mb']} MB."
    )
    if name == "record-size":
        text += f" In bytes: {first['mb_per_cpu_s']} to {last['mb_per_cpu_s']} MB per CPU-second."
    if name == "topic-partitions":
        text += (
            f" With {last['x']:,} of them a look at Kafka with nothing to do takes {last['idle_cycle_s']} s, and a "
            f"cycle with 3 records in each ({last['x']:,} objects) {last['three_records_s']} s."
        )
    return text


def _odd(rows: list[Row], _: Path) -> str:
    keys = ("load", "records", "wall_s", "cpu_s", "records_per_cpu_s", "mb_per_cpu_s", "peak_mb", "objects")
    return _table(keys, [[row[key] for key in keys] for row in rows])


def _latency(found: Row, _: Path) -> str:
    keys = ("cycle.interval.ms", "records", "p50_ms", "p99_ms", "max_ms")
    idle = found["idle"]
    s3 = ", ".join(f"{count} {name}" for name, count in idle["s3_requests_per_minute"].items()) or "none"
    return (
        _table([f"`{keys[0]}`", *keys[1:]], [[row[key] for key in keys] for row in found["waits"]])
        + f"\nAn idle minute (4 topic-partitions, defaults): {idle['cpu_s_per_minute']} CPU-seconds of all processes, "
        f"{idle['kafka_requests_per_minute']} requests to Kafka, to S3: {s3}."
    )


def _startup(rows: list[Row], pictures: Path) -> str:
    plots.started(rows, pictures / "startup.svg")
    out = [(name, *_spread([row[name] for row in rows])) for name in rows[0]]
    return _picture("startup", pictures, "parts of a cold start") + _table(("part", "median s", "from", "to"), out)


def _sources(rows: list[Row], _: Path) -> str:
    out = []
    for what in dict.fromkeys(row["what"] for row in rows):
        for row in (row for row in rows if row["what"] == what):
            rates = [row["records"] / cpu for cpu in row["cpu_s"]]
            spread = f"{_million(row['records_per_cpu_s'])} ({_million(min(rates))} to {_million(max(rates))})"
            out.append(
                (what, row["contender"], f"{row['records'] / 1e6:.1f} M", spread, _range(row["wall_s"]), row["peak_mb"])
            )
    return _table(("what", "by", "records", "records per CPU-s (spread)", "wall s", "peak MB"), out)


def _profiles(rows: list[Row], pictures: Path) -> str:
    parts = []
    for row in rows:
        parts.append(
            f"### {row['case']}\n\n" + _picture(f"flame-{row['case']}", pictures, f"flame graph {row['case']}")
        )
        shares = [(f"`{each['function']}`", f"{each['share']:.0%}") for each in row["top"][:6]]
        parts.append(_table(("in", "share of samples"), shares))
    return "\n".join(parts)


def _micro(rows: list[Row], _: Path) -> str:
    out = [(row["name"], f"{row['ns_per_record']:.1f}", f"± {row['spread_ns']:.1f}") for row in rows]
    return _table(("what", "ns per record", "standard deviation"), out)


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def _picture(name: str, pictures: Path, words: str) -> str:
    return f"![{words}]({pictures.name}/{name}.svg)\n\n"


def _million(rate: float) -> str:
    return f"{rate / 1e6:.2f} M" if rate >= _FEW else f"{rate:,.0f}"


def _range(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{statistics.median(values):.1f} ({low:.1f} to {high:.1f})"


def _spread(values: Sequence[float]) -> tuple[str, str, str]:
    return f"{statistics.median(values):.2f}", f"{min(values):.2f}", f"{max(values):.2f}"


_STAGE = {"cost": "requests"}
_BLOCKS: dict[str, Callable[[Any, Path], str]] = {
    "machine": _machine,
    "latest": _latest,
    "distance": _distance,
    "curves": _curves,
    "odd": _odd,
    "latency": _latency,
    "startup": _startup,
    "sources": _sources,
    "cost": _cost,
    "profiles": _profiles,
    "micro": _micro,
}
