"""Plots of what was found, as SVG; the same figures give the same bytes."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams.update({"svg.hashsalt": "penstock", "svg.fonttype": "none", "font.size": 8, "axes.grid": True})
mpl.rcParams.update({"grid.alpha": 0.3, "axes.spines.top": False, "axes.spines.right": False})

from matplotlib import pyplot as plt  # noqa: E402 - after the backend is chosen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Row = dict[str, Any]
_AXES = {
    "record-size": "bytes of a record",
    "topic-partitions": "topic-partitions",
    "encoded-partitions": "open encoded partitions",
    "state-log": "entries in the state log",
    "backlog": "records in the backlog",
}


def compared(rows: Sequence[Row], path: Path) -> None:
    """Records per CPU-second and peak memory, a group of bars for each case; whiskers: worst and best run."""
    cases = list(dict.fromkeys(row["case"] for row in rows))
    contenders = list(dict.fromkeys(row["contender"] for row in rows))
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 0.5 * len(cases) + 1.5), sharey=True)
    height = 0.8 / len(contenders)
    for number, contender in enumerate(contenders):
        mine = {row["case"]: row for row in rows if row["contender"] == contender}
        places = [cases.index(case) + number * height for case in mine]
        rates = [row["records_per_cpu_s"] / 1e6 for row in mine.values()]
        spread = [[row["records"] / cpu / 1e6 for cpu in row["cpu_s"]] for row in mine.values()]
        whiskers = [
            [max(0.0, rate - min(each)) for rate, each in zip(rates, spread, strict=True)],
            [max(0.0, max(each) - rate) for rate, each in zip(rates, spread, strict=True)],
        ]
        bars = left.barh(places, rates, height, xerr=whiskers, label=contender, error_kw={"elinewidth": 0.8})
        left.bar_label(bars, fmt="%.2f", padding=4, fontsize=6)
        right.barh(places, [row["peak_rss_mb"] for row in mine.values()], height)
    left.set(xlabel="million records per CPU-second")
    left.set_yticks([place + 0.4 - height / 2 for place in range(len(cases))], cases)
    left.invert_yaxis()
    left.legend(fontsize=7)
    right.set(xlabel="peak memory, MB (sum of PSS)")
    _save(figure, path)


def curve(name: str, rows: Sequence[Row], path: Path) -> None:
    """One scale curve: the rate, and beside it what else the rows have."""
    xs = [row["x"] for row in rows]
    if "read_s" in rows[0]:
        series = (("seconds until the positions are known", "read_s"),), (("requests to S3", "s3_requests"),)
    else:
        series = (
            (("per second", "records_per_s"), ("per CPU-second", "records_per_cpu_s")),
            (("peak memory, MB", "peak_mb"),),
        )
    figure, both = plt.subplots(1, 2, figsize=(9, 2.8))
    for axes, lines in zip(both, series, strict=True):
        for label, key in lines:
            axes.plot(xs, [row[key] for row in rows], marker="o", markersize=3, label=label)
        axes.set(xscale="log", xlabel=_AXES[name])
        axes.legend(fontsize=7)
        if name == "record-size" and axes is both[0]:  # four orders of magnitude
            axes.set(yscale="log")
        else:
            axes.set_ylim(0, 1.15 * max(row[key] for row in rows for _, key in lines))
    _save(figure, path)


def started(rows: Sequence[Row], path: Path) -> None:
    """The parts of a cold start, the median of each, side by side."""
    figure, axes = plt.subplots(figsize=(9, 1.4))
    left = 0.0
    for name in (name for name in rows[0] if name != "to first commit"):
        width = statistics.median(row[name] for row in rows)
        axes.barh(0, width, left=left, label=f"{name} ({width:.2f} s)")
        left += width
    axes.set(yticks=[], xlabel="seconds")
    axes.legend(fontsize=7, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:  # noqa: ANN401 - matplotlib has no types
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
