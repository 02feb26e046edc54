"""Entries of the log, their JSON, and the pure fold of entries into a head."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry, created once under its sequence number. `closes`: the seq of the intent that is done with it."""

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


@dataclass(frozen=True, slots=True)
class Head:
    """Everything up to entry `seq`, folded.

    `open_intent`: the newest plan with its seq, while no entry closed it. `config`: what shaped files when it was made.
    `last_objects`: the newest object of each topic-partition.
    """

    seq: int = 0
    writer: str = ""
    positions: Mapping[TopicPartition, int] = field(default_factory=lambda: _EMPTY)
    open_intent: tuple[int, Plan] | None = None
    config: Mapping[str, str] | None = None
    last_objects: Mapping[TopicPartition, str] = field(default_factory=lambda: _EMPTY)


def apply(head: Head, entry: Entry) -> Head:
    """The head behind one more entry.

    Raises:
        StateError: the entry does not follow, or moves a position backwards.
    """
    if entry.seq != head.seq + 1:
        msg = f"state log: entry {entry.seq} follows entry {head.seq}; entries are missing"
        raise StateError(msg)
    if entry.format > FORMAT:
        msg = f"state log: entry {entry.seq} was written by a newer Penstock (format {entry.format}); upgrade this one"
        raise StateError(msg)
    positions, objects = dict(head.positions), dict(head.last_objects)
    for commit in entry.commits:
        if commit.position < positions.get(commit.tp, 0):
            before = positions[commit.tp]
            msg = f"state log: entry {entry.seq} moves {commit.tp} back from offset {before} to {commit.position}"
            raise StateError(msg)
        positions[commit.tp] = commit.position
        if commit.objects:
            objects[commit.tp] = commit.objects[-1].key
    intent = head.open_intent
    if intent is not None and entry.closes == intent[0]:
        intent = None
    if entry.intent is not None:
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
    )


class _TopicPartition(msgspec.Struct, omit_defaults=True):
    topic: str
    partition: int

    def value(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class _Position(_TopicPartition, omit_defaults=True, kw_only=True):
    """How a checkpoint holds a position."""

    position: int
    last_object: str | None = None


class Checkpoint(msgspec.Struct, kw_only=True):
    """A head as it is stored."""

    format: int = FORMAT
    seq: int
    writer: str
    positions: list[_Position]
    intent_seq: int | None
    intent: Plan | None
    config: dict[str, str] | None

    @classmethod
    def of(cls, head: Head) -> Checkpoint:
        """The stored form of a head."""
        positions = [
            _Position(topic=tp.topic, partition=tp.partition, position=offset, last_object=head.last_objects.get(tp))
            for tp, offset in sorted(head.positions.items())
        ]
        seq, intent = head.open_intent or (None, None)
        config = None if head.config is None else dict(head.config)
        return cls(seq=head.seq, writer=head.writer, positions=positions, intent_seq=seq, intent=intent, config=config)

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
        )


def encode(entry: Entry) -> bytes:
    """An entry as JSON; what is empty is left out."""
    document = msgspec.to_builtins(entry)
    kept = {name: value for name, value in document.items() if value not in (None, [], ())}
    return msgspec.json.format(msgspec.json.encode(kept), indent=1)


def decode(data: bytes, key: str) -> Entry:
    """Read an entry. Raises StateError naming the key where it is none."""
    return _decode(data, key, Entry)


def decode_checkpoint(data: bytes, key: str) -> Checkpoint:
    """Read a checkpoint. Raises StateError naming the key where it is none."""
    return _decode(data, key, Checkpoint)


def _decode(data: bytes, key: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        msg = f"state log: `{key}` is damaged ({error}); restore it from a backup or a bucket version"
        raise StateError(msg) from error
