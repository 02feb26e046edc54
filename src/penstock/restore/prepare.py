"""What a restore does, before it does anything: which records go where, and what of them cannot come back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import PenstockError, UsageError
from penstock.model import TopicPartition
from penstock.restore.offsets import Position
from penstock.restore.plan import segments
from penstock.restore.run import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from penstock.restore.history import History
    from penstock.restore.plan import Leniency, Segment
    from penstock.restore.selection import Selection
    from penstock.restore.target import Target

_NOTHING_DONE = -1


@dataclass(frozen=True, slots=True)
class Planned:
    """What of a topic-partition is restored, and where to."""

    tp: TopicPartition
    to: TopicPartition
    segments: tuple[Segment, ...]

    @property
    def records(self) -> int:
        """How many records the objects hold; edges may leave some of them out."""
        return sum(each.records for each in self.segments)


def planned(
    history: History, selection: Selection, to_topic: str | None, lenient: Leniency, connector: str
) -> list[Planned]:
    """Everything that is wanted, by topic-partition.

    Raises:
        UsageError: a topic or topic-partition that was named is not there, or several topics would become one.
        PenstockError: as `segments`.
    """
    topics = sorted({tp.topic for tp in history.bundles})
    wrong = [topic for topic in selection.topics if topic not in history.topics]
    unknown = [tp for tp in (*selection.starts, *selection.ends) if tp is not None and tp not in history.bundles]
    if wrong or unknown or not topics:
        there = ", ".join(f"`{topic}`" for topic in sorted(history.topics)) or "none"
        named = wrong[0] if wrong else str(unknown[0]) if unknown else "any topic"
        msg = f"connector `{connector}` has committed nothing of `{named}`; topics with objects: {there}"
        raise UsageError(msg)
    if to_topic is not None and len(topics) > 1:
        named = ", ".join(f"`{topic}`" for topic in topics)
        msg = f"--to-topic is for one topic, but there are {named}; choose one with --topic"
        raise UsageError(msg)
    return [
        Planned(
            tp,
            TopicPartition(to_topic or tp.topic, tp.partition),
            segments(found, selection.span(tp), lenient),
        )
        for tp, found in history.bundles.items()
    ]


def check_partitions(plan: Iterable[Planned], target: Target, *, create: bool) -> None:
    """The topics are there with partitions enough; with `create` those that are not there are made.

    Raises:
        PenstockError: one is not; says how many partitions it needs.
    """
    needed: dict[str, int] = {}
    for each in plan:
        needed[each.to.topic] = max(needed.get(each.to.topic, 0), each.to.partition + 1)
    for topic, count in needed.items():
        found = target.partitions(topic)
        if not found and create:
            target.create(topic, count)
        elif found < count:
            what = f"has {found} partitions" if found else "does not exist"
            then = "add partitions to it" if found else "create it, or use --create-topic"
            msg = f"topic `{topic}` {what}, but records of partition {count - 1} are restored to it; {then}"
            raise PenstockError(msg)


def works(plan: Sequence[Planned], target: Target, selection: str, *, append: bool) -> list[Work]:
    """The work that is left, going by the positions in Kafka.

    Raises:
        PenstockError: a topic holds records that are not this restore's, or the restore was begun with other limits.
    """
    found = target.positions([each.to for each in plan])
    made = []
    for each in plan:
        position = found.get(each.to)
        if position is None:
            if not append and not target.is_empty(each.to):
                msg = (
                    f"topic-partition {each.to} holds records already, and no restore `{target.name}` has written "
                    "them: restore to an empty topic, or use --append to write behind them"
                )
                raise PenstockError(msg)
            position = Position(selection, _NOTHING_DONE, None)
        elif position.selection != selection:
            msg = (
                f"the restore `{target.name}` was begun with the limits `{position.selection}`, got `{selection}`; "
                "give the same ones to go on with it, or another --name to begin another one"
            )
            raise PenstockError(msg)
        made.append(Work(each.tp, each.to, each.segments, position))
    return made


def new(made: Iterable[Work]) -> dict[TopicPartition, Position]:
    """The positions of those that no run has begun yet."""
    return {each.to: each.position for each in made if each.position.segment == _NOTHING_DONE}


def losses(plan: Iterable[Planned], rejected: int, changed: Callable[[int], str | None]) -> list[str]:
    """Sentences for what does not come back. `changed`: what values of a shape come back as, if not as they were."""
    bundles = [bundle for each in plan for segment in each.segments for bundle in segment.bundles]
    counts = {
        "keys": sum(b.any.records for b in bundles if b.keys is None and "key" not in b.carried),
        "headers": sum(b.any.records for b in bundles if b.headers is None and "headers" not in b.carried),
        "timestamps": sum(b.any.records for b in bundles if not b.knows_times),
    }
    why = {
        "keys": "no key: store.kafka.keys was not set",
        "headers": "no headers: store.kafka.headers was not set",
        "timestamps": "the time of the restore: their format stores none",
    }
    said = [f"{count} records come back with {why[what]}" for what, count in counts.items() if count]
    values = [bundle for bundle in bundles if bundle.value is not None]
    shapes = {shape: changed(shape) for shape in sorted({bundle.shape for bundle in values})}
    said += [
        f"{sum(b.any.records for b in values if b.shape == shape)} records come back as {what}"
        for shape, what in shapes.items()
        if what
    ]
    if rejected:
        said.append(f"{rejected} records in error objects (errors.dir) are not restored")
    return said
