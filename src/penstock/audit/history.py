"""The state log read from its first entry on, however broken it is: findings, and what counts in the end. Pure.

Reading goes on behind a missing or damaged entry, so that one fault is one finding and the rest is still audited.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.audit.findings import Finding, Note
from penstock.errors import StateError
from penstock.model import Commit
from penstock.statelog.entries import Entry, Head, apply

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.model import CommittedObject, PlannedRange, TopicPartition


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An entry that is there and cannot be read, and why."""

    seq: int
    reason: str


@dataclass(frozen=True, slots=True)
class Move:
    """A commit with what it rests on: it moved its topic-partition from `start` to `end`.

    `planned`: its range of the plan that entry `intent` recorded for `now_ms`, where one was open. `config`: what
    shaped its files. `whole`: no reset took part of it back.
    """

    entry: int
    commit: Commit
    start: int
    end: int
    config: Mapping[str, str]
    intent: int | None = None
    planned: PlannedRange | None = None
    now_ms: int = 0
    whole: bool = True

    @property
    def tp(self) -> TopicPartition:
        """The topic-partition that moved."""
        return self.commit.tp

    @property
    def objects(self) -> tuple[CommittedObject, ...]:
        """The objects that count."""
        return self.commit.objects


@dataclass(frozen=True, slots=True)
class History:
    """The log as it was found.

    `moves`: what counts, per topic-partition in offset order. `taken_back`: objects that a reset took out, with the
    entry of the reset. `named`: every object that an entry names, with entry and topic-partition, in the log's order.
    `begun`: where each topic-partition began. `configs`: every configuration that was recorded.
    """

    head: Head
    moves: Mapping[TopicPartition, tuple[Move, ...]]
    taken_back: Mapping[str, int]
    named: tuple[tuple[int, TopicPartition, CommittedObject], ...]
    begun: Mapping[TopicPartition, int]
    configs: tuple[Mapping[str, str], ...]
    findings: tuple[Finding, ...]
    notes: tuple[Note, ...]

    @property
    def objects(self) -> dict[str, tuple[Move, CommittedObject]]:
        """The objects that count, by their keys."""
        return {each.key: (move, each) for moves in self.moves.values() for move in moves for each in move.objects}


def read(items: Iterable[Entry | Unreadable], checkpoints: Mapping[int, Head]) -> History:
    """The history of entries in ascending order. `checkpoints`: stored heads by their entry."""
    reading = _Reading(checkpoints)
    for item in items:
        reading.take(item)
    return reading.history()


@dataclass(slots=True)
class _Reading:
    """The head so far. `unsure`: what came right before could not be read, so the next entry is taken as it is."""

    checkpoints: Mapping[int, Head]
    head: Head = field(default_factory=Head)
    unsure: bool = False
    was_unsure: bool = False
    moves: dict[TopicPartition, list[Move]] = field(default_factory=lambda: defaultdict(list))
    taken_back: dict[str, int] = field(default_factory=dict)
    named: list[tuple[int, TopicPartition, CommittedObject]] = field(default_factory=list)
    begun: dict[TopicPartition, int] = field(default_factory=dict)
    configs: list[Mapping[str, str]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def take(self, item: Entry | Unreadable) -> None:
        """The next entry."""
        self._missing(item.seq)
        if isinstance(item, Unreadable):
            self.findings.append(Finding("entry.damaged", f"entry {item.seq}", item.reason))
            self._skip_to(item.seq)
            return
        behind = self._follow(item)
        self._commits(item)
        self._resets(item)
        if item.config is not None:
            self.configs.append(item.config)
        self.head = behind
        self._compare(item.seq)

    def history(self) -> History:
        """What was found."""
        return History(
            self.head,
            {tp: tuple(moves) for tp, moves in sorted(self.moves.items())},
            self.taken_back,
            tuple(self.named),
            self.begun,
            tuple(self.configs),
            tuple(self.findings),
            tuple(self.notes),
        )

    def _missing(self, seq: int) -> None:
        first, last = self.head.seq + 1, seq - 1
        if first > last:
            return
        which = f"entry {first}" if first == last else f"entries {first} to {last}"
        what = "is not in the log; restore it from a backup or a bucket version"
        self.findings.append(Finding("entry.missing", which, what))
        self._skip_to(last)

    def _skip_to(self, seq: int) -> None:
        self.head = replace(self.head, seq=seq, digest="", open_intent=None)
        self.unsure = self.was_unsure = True

    def _follow(self, entry: Entry) -> Head:
        """The head behind an entry, also where the entry contradicts the one before."""
        try:
            return apply(self.head, entry)
        except StateError as error:
            if not self.unsure:
                self._contradiction(entry, error)
            self.was_unsure = True
            return self._forced(entry)
        finally:
            self.unsure = False

    def _contradiction(self, entry: Entry, error: StateError) -> None:
        changed = bool(entry.previous and self.head.digest and entry.previous != self.head.digest)
        if not changed:
            self.findings.append(Finding("entry.contradicts", f"entry {entry.seq}", str(error)))
            return
        what = f"is not as it was when entry {entry.seq} was written; restore it from a backup or a bucket version"
        self.findings.append(Finding("entry.changed", f"entry {self.head.seq}", what))

    def _forced(self, entry: Entry) -> Head:
        """As the entry says, whatever stood before."""
        head = self.head
        positions = dict(head.positions)
        if entry.intent is not None:
            at_intent = {**positions, **{each.tp: each.position for each in entry.commits}}
            for each in entry.intent.ranges:
                self._jump(entry.seq, each, at_intent.get(each.tp))
                positions[each.tp] = each.start
        positions |= {each.tp: each.position for each in entry.commits}
        is_open = None if entry.closes is not None else head.open_intent
        bare = replace(head, seq=entry.seq - 1, digest="", positions=positions, open_intent=is_open)
        return apply(bare, replace(entry, commits=(), closes=None, previous=""))

    def _jump(self, seq: int, planned: PlannedRange, position: int | None) -> None:
        """A plan that begins elsewhere than the last commit that is known ended."""
        if position is None or position >= planned.start:
            return
        where = f"{planned.tp}@{position}"
        what = f"offsets [{position}, {planned.start}) are in no entry before entry {seq}, which goes on behind them"
        self.findings.append(Finding("range.gap", where, what))

    def _commits(self, entry: Entry) -> None:
        intent = self.head.open_intent
        planned = {} if intent is None else {each.tp: each for each in intent[1].ranges}
        for commit in entry.commits:
            tp, start = commit.tp, self.head.positions.get(commit.tp)
            self.named.extend((entry.seq, tp, each) for each in commit.objects)
            if start is None:
                start = self._first(commit)
            if commit == Commit(tp, start):
                continue
            ours = planned.get(tp)
            if intent is None and not commit.objects:
                self._passed_over(entry, commit, start)
                continue
            seq, now_ms = (None, 0) if intent is None else (intent[0], intent[1].now_ms)
            config = self.head.config or {}
            self.moves[tp].append(Move(entry.seq, commit, start, commit.position, config, seq, ours, now_ms))

    def _first(self, commit: Commit) -> int:
        """Where a topic-partition begins that was not known: its first commit says so."""
        start = min((each.start for each in commit.objects), default=commit.position)
        self.begun[commit.tp] = start
        return start

    def _passed_over(self, entry: Entry, commit: Commit, start: int) -> None:
        what = f"entry {entry.seq} ({entry.time}) passed over offsets [{start}, {commit.position}): on.data.loss=skip"
        self.notes.append(Note(f"{commit.tp}@{start}", what))

    def _resets(self, entry: Entry) -> None:
        for reset in entry.resets:
            kept: list[Move] = []
            for move in self.moves[reset.tp]:
                inside = tuple(each for each in move.objects if each.end <= reset.position)
                if move.end <= reset.position:
                    kept.append(move)
                    continue
                self.taken_back |= {each.key: entry.seq for each in move.objects if each not in inside}
                if move.start < reset.position:
                    rest = replace(move.commit, objects=inside, position=reset.position)
                    kept.append(replace(move, commit=rest, end=reset.position, whole=False))
            self.moves[reset.tp] = kept
            what = f"entry {entry.seq} ({entry.time}, host {entry.host}) set the position to {reset.position}"
            self.notes.append(Note(f"{reset.tp}@{reset.position}", what))

    def _compare(self, seq: int) -> None:
        """With the checkpoint behind this entry, if there is one and all before it could be read."""
        stored = self.checkpoints.get(seq)
        if stored is None or self.was_unsure:
            return
        if replace(stored, digest="") != replace(self.head, digest=""):
            what = (
                "does not say what the entries up to it say; delete it, and `latest.json` beside it: entries are enough"
            )
            self.findings.append(Finding("checkpoint.differs", f"checkpoint {seq}", what))
