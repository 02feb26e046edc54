"""The state log as a restore reads it: bundles by topic-partition, and the configurations they have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.restore.plan import Bundle, bundles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from penstock.model import TopicPartition
    from penstock.restore.plan import Carried
    from penstock.statelog import Entry

    Texts = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class History:
    """What is committed. `shapes`: what `Bundle.shape` numbers; the properties that shape files, as recorded.

    `topics`: all that have objects, wanted or not. `rejected`: records in error objects, which are not restored.
    """

    bundles: Mapping[TopicPartition, tuple[Bundle, ...]]
    shapes: tuple[Texts, ...]
    topics: frozenset[str]
    rejected: int = 0


def read(entries: Iterable[Entry], covers: Callable[[str], bool], carried: Callable[[Texts], Carried]) -> History:
    """Fold entries, all of them in their order. `covers`: whether a topic is wanted.

    A commit belongs to the configuration that was recorded before it.
    """
    found: dict[TopicPartition, list[Bundle]] = {}
    shapes: list[Texts] = [{}]
    now = (0, carried({}))
    rejected, topics = 0, set()
    for entry in entries:
        for commit in entry.commits:
            if commit.objects:
                topics.add(commit.tp.topic)
            if covers(commit.tp.topic):
                found.setdefault(commit.tp, []).extend(bundles(commit.tp, commit.objects, *now))
                rejected += sum(each.records for each in commit.objects if each.view == "errors")
        if entry.config is not None:
            if entry.config not in shapes:
                shapes.append(entry.config)
            number = shapes.index(entry.config)
            now = (number, carried(entry.config))
    return History({tp: tuple(each) for tp, each in sorted(found.items())}, tuple(shapes), frozenset(topics), rejected)
