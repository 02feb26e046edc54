"""An audit from the first entry to the last object: reads the log, then the bucket, then, if wanted, Kafka."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from penstock import stores
from penstock.audit import accounts, bucket, contents, replay
from penstock.audit.fetching import fetched, file_format, separator
from penstock.audit.findings import Finding, Note
from penstock.audit.logbook import read_log
from penstock.job import on_spark
from penstock.kafka.cluster import Cluster
from penstock.parts import layout
from penstock.statelog.history import entries
from penstock.store.s3 import store
from penstock.stores import state_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark import SparkContext

    from penstock.audit.history import History, Move
    from penstock.config import SinkConfig
    from penstock.kafka.settings import KafkaSettings
    from penstock.model import CommittedObject
    from penstock.store.base import Listed, Store

    Result = Finding | Note

T = TypeVar("T")
_THREADS = 8
_FEW_BYTES, _FEW_OBJECTS, _FEW_OFFSETS = 64 * 1024 * 1024, 200, 200_000


@dataclass(frozen=True, slots=True)
class Report:
    """What an audit found. `facts`: how much it looked at."""

    findings: tuple[Finding, ...]
    notes: tuple[Note, ...]
    facts: Mapping[str, int | str | None]


@dataclass(frozen=True, slots=True)
class Item:
    """An object whose contents are to be read. `config`: what it was written with."""

    object: CommittedObject
    config: SinkConfig


@dataclass(frozen=True, slots=True)
class Batch:
    """Moves of different topic-partitions under one configuration, to be made again at once."""

    config: SinkConfig
    moves: tuple[Move, ...]

    @property
    def offsets(self) -> int:
        """How many offsets they span."""
        return sum(each.end - each.start for each in self.moves)


def audit(
    config: SinkConfig,
    kafka: KafkaSettings,
    context: Callable[[], SparkContext],
    *,
    read_contents: bool = True,
    against_kafka: bool = False,
) -> Report:
    """Everything that is not as it must be; changes nothing, and a connector may run meanwhile.

    `context`: asked for Spark only where there is more to read than one process does in seconds.

    Raises:
        UnavailableError: the store, or with `against_kafka` Kafka or the Schema Registry, does not answer.
        ConfigError: a configuration was recorded that this version cannot do.
    """
    history, broken = read_log(store(stores.of_state(config)), state_names(config))
    opened, shaped = store(stores.of_sink(config)), _Shaped(config)
    objects = {key: each for key, (_, each) in history.objects.items()}
    listed = _listed(opened, shaped, history)
    stored = listed | _looked_up(opened, [key for key in objects if key not in listed])
    results: list[Result] = [*broken, *accounts.check(history), *bucket.differences(objects, stored), *history.notes]
    results += _strangers(config, opened, shaped, history, [key for key in listed if key not in objects])
    run = partial(_run, context, config.tasks_max)
    items = [Item(each, shaped.by(move)) for move, each in history.objects.values() if _is_whole(each, stored)]
    if read_contents:
        size = sum(each.object.size for each in items)
        few = len(items) <= _FEW_OBJECTS and size <= _FEW_BYTES
        results += run(partial(check_contents, config), items, few=few)
    else:
        results += bucket.changed_etags(objects, stored)
    batches = _repeatable(_batches(kafka, shaped, history, results), results) if against_kafka else []
    offsets = sum(each.offsets for each in batches)
    results += run(partial(replay_batches, config, kafka), batches, few=offsets <= _FEW_OFFSETS)
    facts: dict[str, int | str | None] = {
        "connector": config.name,
        "entries": history.head.seq,
        "topic_partitions": len(history.head.positions),
        "objects": len(objects),
        "records": sum(each.records for each in objects.values() if each.view == "value"),
        "bytes": sum(each.size for each in objects.values()),
        "objects_read": len(items) if read_contents else None,
        "offsets_compared_with_kafka": offsets if against_kafka else None,
    }
    findings = {each for each in results if isinstance(each, Finding)}
    notes = {each for each in results if isinstance(each, Note)}
    return Report(tuple(sorted(findings)), tuple(sorted(notes)), facts)


def _is_whole(committed: CommittedObject, stored: Mapping[str, Listed | None]) -> bool:
    """Whether the object is there with its size; otherwise that is the finding."""
    found = stored.get(committed.key)
    return found is not None and found.size == committed.size


class _Shaped:
    """Configurations as the log recorded them, each made once."""

    def __init__(self, config: SinkConfig) -> None:
        self.config = config
        self._made: dict[tuple[tuple[str, str], ...], SinkConfig] = {}

    def of(self, recorded: Mapping[str, str]) -> SinkConfig:
        """The configuration with files shaped as recorded; the current one where nothing is known."""
        names = tuple(sorted(recorded.items()))
        if names not in self._made:
            self._made[names] = self.config.with_shaping(recorded) if recorded else self.config
        return self._made[names]

    def by(self, move: Move) -> SinkConfig:
        """What a move was made with."""
        return self.of(move.config)

    def every(self, history: History) -> tuple[SinkConfig, ...]:
        """All that files were shaped by, and the current one."""
        return tuple({id(each): each for each in (self.config, *map(self.of, history.configs))}.values())


def _listed(opened: Store, shaped: _Shaped, history: History) -> dict[str, Listed | None]:
    """What lies under the topics of this connector, wherever its objects have been going.

    Prefixes that do not name the topic (`path.template`) are left out: other connectors may write there.
    """
    topics = {tp.topic for tp in history.head.positions}
    prefixes = {prefix for each in shaped.every(history) for t in topics if t in (prefix := layout(each).prefix(t))}
    if shaped.config.errors.directory:
        prefixes |= {f"{shaped.config.errors.directory}/{topic}/" for topic in topics}
    return {each.key: each for prefix in sorted(prefixes) for each in opened.list(prefix)}


def _looked_up(opened: Store, keys: Sequence[str]) -> dict[str, Listed | None]:
    """Objects one by one, where no listing covers them."""

    def look(key: str) -> Listed | None:
        head = opened.head(key)
        return None if head is None else bucket.listed(key, head)

    with ThreadPoolExecutor(_THREADS, "audit") as pool:
        return dict(zip(keys, pool.map(look, keys), strict=True))


def _strangers(
    config: SinkConfig, opened: Store, shaped: _Shaped, history: History, keys: Sequence[str]
) -> list[Finding]:
    """Objects that no entry names: what a plan that runs now writes is left out, and what is older than the log."""
    layouts = tuple(layout(each) for each in shaped.every(history))
    suspects = [key for key in keys if not bucket.is_earlier(key, layouts, history)]
    with ThreadPoolExecutor(_THREADS, "audit") as pool:
        heads = list(pool.map(opened.head, suspects))
    newer = list(entries(store(stores.of_state(config)), state_names(config), history.head.seq)) if suspects else []
    running = {entry.seq for entry in newer if entry.intent is not None}
    if history.head.open_intent is not None:
        running.add(history.head.open_intent[0])
    judged = (
        bucket.judge(bucket.Stranger(key, head), config.name, history, frozenset(running))
        for key, head in zip(suspects, heads, strict=True)
    )
    return [each for each in judged if each is not None]


def _batches(kafka: KafkaSettings, shaped: _Shaped, history: History, results: list[Result]) -> list[Batch]:
    """The moves whose records Kafka still has, the n-th of each topic-partition together; notes what it has not."""
    with Cluster(kafka) as cluster:
        existing = cluster.topics()
        tps = [tp for tp in history.moves if tp.partition in existing.get(tp.topic, ())]
        starts = cluster.log_starts(tps)
    rounds: dict[tuple[int, int], list[Move]] = defaultdict(list)
    configs: dict[int, SinkConfig] = {}
    for tp, moves in history.moves.items():
        numbers = count()
        gone = [each for each in moves if tp not in starts or each.start < starts[tp]]
        if gone:
            what = f"Kafka no longer has all of the offsets [{gone[0].start}, {gone[-1].end}); not compared"
            results.append(Note(f"{tp}@{gone[0].start}", what))
        for move in moves:
            if move.whole and tp in starts and move.start >= starts[tp]:
                made = shaped.by(move)
                configs[id(made)] = made
                rounds[next(numbers), id(made)].append(move)
    return [Batch(configs[which], tuple(moves)) for (_, which), moves in rounds.items()]


def _run(
    context: Callable[[], SparkContext],
    tasks: int,
    work: Callable[[Sequence[T]], Iterable[Result]],
    items: Sequence[T],
    *,
    few: bool,
) -> list[Result]:
    """`work` on all items: here if they are few, else over Spark tasks."""
    if few or not items:
        return list(work(items))
    shares = [items[start :: 4 * tasks] for start in range(min(4 * tasks, len(items)))]
    return on_spark(context(), shares, work)


def check_contents(config: SinkConfig, items: Sequence[Item]) -> list[Finding]:
    """What one task finds in the contents of its objects; one that vanished meanwhile is missing."""
    opened = store(stores.of_sink(config))

    def check(item: Item) -> list[Finding]:
        each = item.object
        with fetched(opened, each.key) as copy:
            if copy is None:
                return [Finding("object.missing", each.key, "was there a moment ago and is gone")]
            return contents.check(copy, each, file_format(item.config, each), separator(item.config))

    with ThreadPoolExecutor(_THREADS, "audit") as pool:
        return [finding for found in pool.map(check, items) for finding in found]


def _repeatable(batches: Sequence[Batch], results: list[Result]) -> list[Batch]:
    """Those without a transformation, whose tables and functions may be others by now; the rest becomes notes."""
    found = [each for each in batches if not each.config.transform.wanted]
    for each in batches:
        if each.config.transform.wanted:
            what = f"made with {each.config.transform.name}, so its {each.offsets} offsets are not compared with Kafka"
            results += [Note(str(move.tp), what) for move in each.moves[:1]]
    return found


def replay_batches(config: SinkConfig, kafka: KafkaSettings, batches: Sequence[Batch]) -> list[Result]:
    """What one task finds when it makes its moves again."""
    opened = store(stores.of_sink(config))
    return [found for batch in batches for found in replay.compare(batch.config, kafka, opened, batch.moves)]
