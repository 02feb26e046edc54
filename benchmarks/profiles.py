"""Where the time goes: py-spy looks at all Python processes of ours during a warm run of each case.

What is compiled (numba, Arrow, cramjam) shows as the Python line that calls it; the JVM is not looked at.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

from benchmarks.arena import OURS, Arena, Contender
from benchmarks.topics import Topic

if TYPE_CHECKING:
    from benchmarks.cases import Case

_RATE = 100
_TOP = 12
_FRAME = re.compile(r"^(?P<name>.+) \((?P<file>[^:)]+)(?::(?P<line>\d+))?\)$")
# Functions that wait; py-spy takes some of them for busy.
_WAITING = re.compile(
    r"(select|poll|do_poll|_?wait(_for)?|accept|readinto|read_int|thread\._worker|daemon\.manager|FinalizerWorker\.run)$"
)


@dataclass(slots=True)
class Node:
    """A frame with the samples below it."""

    samples: int = 0
    children: dict[str, Node] = field(default_factory=dict)


def profile(arena: Arena, case: Case, *, records: int, flush: int) -> list[tuple[list[str], int]]:
    """Stacks, outermost frame first, with how often each was seen in a warm run over `records`."""
    topic = Topic.make(arena.info, f"profile-{case.name}-{time.time_ns()}", case.shape)
    topic.fill(records)
    with Contender.running(OURS, arena, None) as ours, tempfile.TemporaryDirectory() as folder:
        arena.delete(ours.run(case, topic, flush).prefix)
        output = Path(folder) / "stacks"
        command = [Path(sys.executable).with_name("py-spy"), "record", "--subprocesses", "--format", "raw"]
        command += ["--rate", str(_RATE), "--output", output, "--pid", str(ours.pid)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as spy:
            time.sleep(2)  # until it has found all processes
            run = ours.run(case, topic, flush)
            spy.send_signal(2)
            spy.wait(60)
        arena.delete(run.prefix)
        stacks = _parse(output.read_text(encoding="utf-8"))
    topic.delete()
    return stacks


def top(stacks: list[tuple[list[str], int]]) -> list[dict[str, Any]]:
    """The functions in which samples ended, with their share."""
    leaves: Counter[str] = Counter()
    for stack, count in stacks:
        leaves[stack[-1]] += count
    total = sum(leaves.values()) or 1
    return [{"function": name, "share": round(count / total, 3)} for name, count in leaves.most_common(_TOP)]


def draw(stacks: list[tuple[list[str], int]], title: str, path: Path) -> None:
    """A flame graph: width is time, what is called stands above its caller."""
    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the backend is chosen

    root = Node()
    for stack, count in stacks:
        _add(root, stack, count)
    figure, axes = plt.subplots(figsize=(11, 4.2))
    depth = _draw(axes, root, 0.0, 0, root.samples or 1)
    axes.set(xlim=(0, 1), ylim=(0, depth + 1), yticks=[], xticks=[], title=title)
    axes.set_frame_on(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def _parse(text: str) -> list[tuple[list[str], int]]:
    """py-spy's raw lines; frames of the same function are one, whatever line they stood at."""
    stacks = []
    for line in text.splitlines():
        path, _, count = line.rpartition(" ")
        frames = [found for frame in path.split(";") if (found := _FRAME.match(frame))]
        names = [f"{Path(frame['file']).stem}.{frame['name']}" for frame in frames]
        if names and not _WAITING.search(names[-1]):
            stacks.append((names, int(count)))
    return stacks


def _add(node: Node, stack: list[str], count: int) -> None:
    node.samples += count
    for name in stack:
        node = node.children.setdefault(name, Node())
        node.samples += count


def _draw(axes: Any, node: Node, left: float, depth: int, total: int) -> int:  # noqa: ANN401 - matplotlib has no types
    deepest = depth
    for name, child in sorted(node.children.items()):
        width = child.samples / total
        if width >= 0.002:  # noqa: PLR2004 - less cannot be seen
            colour = f"C{sum(name.encode()) % 10}"
            axes.barh(depth, width, 0.9, left, align="edge", color=colour, alpha=0.55, edgecolor="white", linewidth=0.3)
            letters = int(width * 150)
            if letters > 4:  # noqa: PLR2004 - shorter ones say nothing
                axes.text(left + 0.002, depth + 0.45, name[:letters], fontsize=6, va="center", clip_on=True)
            deepest = max(deepest, _draw(axes, child, left, depth + 1, total))
        left += width
    return deepest
