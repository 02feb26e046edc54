"""Ours and the contenders, case by case: checked for equal content, warmed, then measured in turns."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks import contents
from benchmarks.arena import OURS, Arena, Contender, Run
from benchmarks.topics import Topic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.cases import Case
    from benchmarks.spark_peer import SparkPeer

_CHECKED, _CHECKED_FLUSH, _CHECKED_PER_HOUR = 40_000, 1000, 2500
_OBJECT_BYTES_SPARE = 3 << 30
_GROWTHS, _MOST_GROWTH = 4, 8.0


@dataclass(frozen=True, slots=True)
class Effort:
    """How long it may take.

    `seconds`: of a measured job at least. `first`: records of the warming one. `runs`: how many are measured.
    """

    seconds: float = 20.0
    first: int = 2_000_000
    runs: int = 3
    flush: int = 100_000


QUICK = Effort(seconds=0.0, first=400_000, runs=3, flush=10_000)


def case_runs(arena: Arena, case: Case, found: Mapping[str, SparkPeer | None], effort: Effort) -> dict[str, list[Run]]:
    """Each contender's measured runs.

    Raises:
        RuntimeError: a contender failed, or its objects hold something else.
    """
    with ExitStack() as processes:
        running = [processes.enter_context(Contender.running(name, arena, peer)) for name, peer in found.items()]
        _check(arena, case, running)
        topics = {each.name: _topic(arena, case, each, processes) for each in running}
        runs = {each.name: _warm(arena, case, each, topics[each.name], effort) for each in running}
        while behind := [each for each in running if len(runs[each.name]) < effort.runs]:
            for each in behind:
                run = each.run(case, topics[each.name], effort.flush)
                arena.delete(run.prefix)
                runs[each.name].append(run)
    return runs


def _check(arena: Arena, case: Case, running: list[Contender]) -> None:
    """Every contender's objects hold what the generator made, record by record."""
    small = replace(case, shape=replace(case.shape, per_hour=_CHECKED_PER_HOUR))
    topic = Topic.make(arena.info, f"check-{case.name}", small.shape)
    topic.fill(_CHECKED)
    wanted = contents.expected(small, topic)
    for each in running:
        run = each.run(small, topic, _CHECKED_FLUSH)
        if contents.records(arena, small, run.prefix) != wanted:
            msg = f"{case.name}: the objects of {each.name} under {run.prefix} hold something else than the topic"
            raise RuntimeError(msg)
        arena.delete(run.prefix)
    topic.delete()


def _topic(arena: Arena, case: Case, contender: Contender, resources: ExitStack) -> Topic:
    """A topic of this contender's own, deleted in the end: each needs another length for a job of the same time."""
    topic = Topic.make(arena.info, f"{contender.name}-{case.name}", case.shape)
    resources.callback(topic.delete)
    return topic


def _warm(arena: Arena, case: Case, contender: Contender, topic: Topic, effort: Effort) -> list[Run]:
    """Let it read, and make the topic long enough for a job of `effort.seconds`; the run that was, warm by then."""
    first = effort.first if contender.name == OURS else effort.first // 4
    topic.fill(_whole(first, case, effort))
    arena.delete(contender.run(case, topic, effort.flush).prefix)
    for _ in range(_GROWTHS):
        run = contender.run(case, topic, effort.flush)
        times = min(_MOST_GROWTH, 1.15 * effort.seconds / run.wall_s)
        more = min(int(topic.records * (times - 1)), _room(case))
        if enough := run.wall_s >= effort.seconds or more <= 0:
            _recount(arena, case, contender.name, run)
        arena.delete(run.prefix)
        if enough:
            return [run]
        topic.fill(_whole(more, case, effort))
    msg = f"{case.name}: {contender.name} is so fast that {_GROWTHS} longer topics were too short"
    raise RuntimeError(msg)


def _whole(records: int, case: Case, effort: Effort) -> int:
    """So many that every partition ends with a full file, so that all of them are written."""
    step = effort.flush * case.shape.partitions
    return -(-records // step) * step


def _room(case: Case) -> int:
    """How many more records fit on the disk, as a topic and as objects."""
    free = shutil.disk_usage("/tmp").free - _OBJECT_BYTES_SPARE  # noqa: S108 - where the stack's folder is
    return max(0, free // (2 * case.shape.size))


def _recount(arena: Arena, case: Case, name: str, run: Run) -> None:
    held = contents.count(arena, case, arena.keys(run.prefix))
    if held != run.records:
        msg = f"{case.name}: {name} says {run.records} records, its objects hold {held}"
        raise RuntimeError(msg)
