"""Entries of the log, their JSON, and the pure fold of entries into a head."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from penstock.errors import StateError
from penstock.model import Commit, Plan, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")
FORMAT = 1
_EMPTY: Mapping[Any, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Takeover:
    """The first entry of an instance. `previous`: the writer it took over from, or ""."""

    previous: str = ""


@dataclass(frozen=True, slots=True)
class Reset:
    """A position that a person set. Objects that hold offsets from it on do not count any more."""

    tp: TopicPartition
    position: int


@dataclass(frozen=True, slots=True)
class Complete:
    """Every time partition of a topic that ends at `until_ms` or before has all its records."""

    topic: str
    until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry, created once under its sequence number. `closes`: the seq of the intent that is done with it.

    `previous`: the digest of the entry before it, so that one that is changed later is noticed. `digest`: its own; not
    part of what is stored. `topics`: Kafka's ids of topics whose positions begin, which tell a topic from one that is
    made anew under its name.
    """

    seq: int
    writer: str
    host: str
    time_ms: int
    time: str
    format: int = FORMAT
    takeover: Takeover | None = None
    config: dict[str, str] | None = None
    intent: Plan | None = None
    commits: tuple[Commit, ...] = ()
    closes: int | None = None
    resets: tuple[Reset, ...] = ()
    complete: tuple[Complete, ...] = ()
    previous: str = ""
    digest: str = field(default="", compare=False)
    topics: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """Everything up to entry `seq`, folded.

    `open_intent`: the newest plan with its seq, while no entry closed it. `config`: what shaped files when it was made.
    `last_objects`: the newest object of each topic-partition. `complete`: up to which time each topic's time partitions
    are. `resets`: the entry of each topic-partition's last reset. `digest`: of entry `seq`, or "" where it is unknown.
    `topics`: the ids of the topics that the objects were written from.
    """

    seq: int = 0
    writer: str = ""
    positions: Mapping[TopicPartition, int] = field(default_factory=lambda: _EMPTY)
    open_intent: tuple[int, Plan] | None = None
    config: Mapping[str, str] | None = None
    last_objects: Mapping[TopicPartition, str] = field(default_factory=lambda: _EMPTY)
    complete: Mapping[str, int] = field(default_factory=lambda: _EMPTY)
    resets: Mapping[TopicPartition, int] = field(default_factory=lambda: _EMPTY)
    digest: str = ""
    topics: Mapping[str, str] = field(default_factory=lambda: _EMPTY)


def apply(head: Head, entry: Entry) -> Head:
    """The head behind one more entry.

    Raises:
        StateError: the entry does not follow, or contradicts the head: the one before it was changed, it moves a
            position backwards, commits objects outside of what it moves, plans from elsewhere than the position, or
            closes an intent that is not open.
    """
    if entry.seq != head.seq + 1:
        msg = f"state log: entry {entry.seq} follows entry {head.seq}; entries are missing"
        raise StateError(msg)
    if entry.format > FORMAT:
        msg = f"state log: entry {entry.seq} was written by a newer Penstock (format {entry.format}); upgrade this one"
        raise StateError(msg)
    if entry.previous and head.digest and entry.previous != head.digest:
        msg = f"state log: entry {head.seq} was changed after entry {entry.seq} was written; restore it from a backup"
        raise StateError(msg)
    positions, objects = dict(head.positions), dict(head.last_objects)
    for commit in entry.commits:
        _check_commit(commit, positions.get(commit.tp, 0), entry.seq)
        positions[commit.tp] = commit.position
        if commit.objects:
            objects[commit.tp] = commit.objects[-1].key
    intent = head.open_intent
    if entry.closes is not None:
        if intent is None or entry.closes != intent[0]:
            msg = f"state log: entry {entry.seq} closes intent {entry.closes}, which is not open"
            raise StateError(msg)
        intent = None
    for reset in entry.resets:
        positions[reset.tp] = reset.position
        objects.pop(reset.tp, None)
    if entry.intent is not None:
        _check_intent(entry.intent, positions, entry.seq)
        intent = (entry.seq, entry.intent)
    config = head.config if entry.config is None else entry.config
    return replace(
        head,
        seq=entry.seq,
        writer=entry.writer,
        positions=positions,
        open_intent=intent,
        config=config,
        last_objects=objects,
        complete=_complete(head, entry),
        resets={**head.resets, **{each.tp: entry.seq for each in entry.resets}},
        digest=entry.digest,
        topics=_topics(head, entry),
    )


def _complete(head: Head, entry: Entry) -> dict[str, int]:
    """A topic that is written anew is not complete any more."""
    anew = {each.tp.topic for each in entry.resets}
    kept = {topic: until for topic, until in head.complete.items() if topic not in anew}
    return kept | {each.topic: each.until_ms for each in entry.complete}


def _topics(head: Head, entry: Entry) -> Mapping[str, str]:
    """The ids of topics behind an entry. One that is reset as a whole may be another one from then on."""
    if not entry.topics and not entry.resets:
        return head.topics
    kept = {tp.topic for tp in head.positions.keys() - {each.tp for each in entry.resets}}
    reset = {each.tp.topic for each in entry.resets} - kept
    known = {topic: topic_id for topic, topic_id in head.topics.items() if topic not in reset}
    return {**known, **(entry.topics or {})}


def _check_commit(commit: Commit, position: int, seq: int) -> None:
    """A commit goes on where its topic-partition stands, and what it names lies within what it moves."""
    if commit.position < position:
        msg = f"state log: entry {seq} moves {commit.tp} back from offset {position} to {commit.position}"
        raise StateError(msg)
    for each in commit.objects:
        if not position <= each.start < each.end <= commit.position:
            msg = (
                f"state log: entry {seq} commits object {each.key} with offsets [{each.start}, {each.end}) of "
                f"{commit.tp}, which are not within [{position}, {commit.position})"
            )
            raise StateError(msg)


def _check_intent(plan: Plan, positions: Mapping[TopicPartition, int], seq: int) -> None:
    for each in plan.ranges:
        if positions.get(each.tp) != each.start:
            at = positions.get(each.tp, "no position")
            msg = f"state log: entry {seq} plans {each.tp} from offset {each.start}, but it stands at {at}"
            raise StateError(msg)


class _TopicPartition(msgspec.Struct, omit_defaults=True):
    topic: str
    partition: int

    def value(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class _Position(_TopicPartition, omit_defaults=True, kw_only=True):
    """How a checkpoint holds a position."""

    position: int
    last_object: str | None = None
    reset: int | None = None


class Checkpoint(msgspec.Struct, kw_only=True):
    """A head as it is stored."""

    format: int = FORMAT
    seq: int
    writer: str
    positions: list[_Position]
    intent_seq: int | None
    intent: Plan | None
    config: dict[str, str] | None
    complete: dict[str, int] = {}
    digest: str = ""
    topics: dict[str, str] = {}

    @classmethod
    def of(cls, head: Head) -> Checkpoint:
        """The stored form of a head."""
        positions = [
            _Position(
                topic=tp.topic,
                partition=tp.partition,
                position=offset,
                last_object=head.last_objects.get(tp),
                reset=head.resets.get(tp),
            )
            for tp, offset in sorted(head.positions.items())
        ]
        seq, intent = head.open_intent or (None, None)
        return cls(
            seq=head.seq,
            writer=head.writer,
            positions=positions,
            intent_seq=seq,
            intent=intent,
            config=None if head.config is None else dict(head.config),
            complete=dict(head.complete),
            digest=head.digest,
            topics=dict(head.topics),
        )

    def head(self) -> Head:
        """The head that was stored."""
        intent = None if self.intent_seq is None or self.intent is None else (self.intent_seq, self.intent)
        return Head(
            self.seq,
            self.writer,
            {each.value(): each.position for each in self.positions},
            intent,
            self.config,
            {each.value(): each.last_object for each in self.positions if each.last_object is not None},
            self.complete,
            {each.value(): each.reset for each in self.positions if each.reset is not None},
            self.digest,
            self.topics,
        )


# Made here, by one thread: msgspec builds what it knows of a type when it is first used, and threads that meet a type
# which another one is still building crash the process.
_ENTRY = msgspec.json.Decoder(Entry)
_CHECKPOINT = msgspec.json.Decoder(Checkpoint)
_STORED = msgspec.json.Decoder(dict[str, msgspec.Raw])
_FORMAT = msgspec.json.Decoder(int)
_ENTRY_FIELDS = frozenset(each.name for each in fields(Entry)) - {"digest"}
_CHECKPOINT_FIELDS = frozenset(Checkpoint.__struct_fields__)


def encode(entry: Entry) -> bytes:
    """An entry as JSON; what is empty is left out."""
    document = msgspec.to_builtins(entry)
    kept = {
        name: value for name, value in document.items() if name in _ENTRY_FIELDS and value not in (None, [], (), "")
    }
    return msgspec.json.format(msgspec.json.encode(kept), indent=1)


def sealed(entry: Entry) -> Entry:
    """The entry with its digest: SHA-256 of its bytes."""
    return replace(entry, digest=hashlib.sha256(encode(entry)).hexdigest())


def decode(data: bytes, key: str) -> Entry:
    """Read an entry, its digest with it. Raises StateError naming the key where it is none."""
    return replace(_decode(data, key, _ENTRY, _ENTRY_FIELDS), digest=hashlib.sha256(data).hexdigest())


def decode_checkpoint(data: bytes, key: str) -> Checkpoint:
    """Read a checkpoint. Raises StateError naming the key where it is none."""
    return _decode(data, key, _CHECKPOINT, _CHECKPOINT_FIELDS)


def _decode(data: bytes, key: str, decoder: msgspec.json.Decoder[T], known: frozenset[str]) -> T:
    """What is stored under `key`. A field or format of a newer Penstock is refused: misreading it would lose data."""
    try:
        stored = _STORED.decode(data)
        found = _FORMAT.decode(stored.get("format", b"0"))
        unknown = sorted(stored.keys() - known)
        if found <= FORMAT and not unknown:
            return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        msg = f"state log: `{key}` is damaged ({error}); restore it from a backup or a bucket version"
        raise StateError(msg) from error
    what = f"its field `{unknown[0]}`" if unknown else f"format {found}"
    msg = f"state log: `{key}` was written by a newer Penstock ({what} is not known here); upgrade this one"
    raise StateError(msg)
