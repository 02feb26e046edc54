"""The log on a store: open (and take over), append with its three outcomes, checkpoints."""

from __future__ import annotations

import datetime as dt
import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NoReturn

import msgspec

from penstock.crashpoints import reach
from penstock.errors import PenstockError, StateError, StoreUnavailable, TakenOverError
from penstock.statelog.entries import (
    Checkpoint,
    Entry,
    Head,
    Takeover,
    apply,
    decode,
    decode_checkpoint,
    encode,
    sealed,
)
from penstock.statelog.history import entries
from penstock.statelog.objects import object_table
from penstock.store.base import Anything, ConflictError, Create, NotFoundError, OutcomeUnknownError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.model import Commit, Plan
    from penstock.statelog.entries import Complete, Reset
    from penstock.statelog.names import Names
    from penstock.store.base import Store

_log = logging.getLogger("penstock.statelog")
_UNCLEAR_TRIES = 10
_UNHEARD = 2  # each comes after all retries


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes: a fresh id for each instance, and the host for people. `clock_ms`: for the entries' times."""

    id: str
    host: str
    clock_ms: Callable[[], int]


@dataclass(slots=True)
class StateLog:
    """The log of one connector. Only `take_over` makes an instance one that may append.

    `_in_doubt`: an append ended without our knowing whether its entry is there.
    """

    connector: str
    store: Store
    names: Names
    writer: Writer
    checkpoint_every: int = 100
    head: Head = field(default_factory=Head)
    _since_checkpoint: list[Entry] = field(default_factory=list)
    _in_doubt: bool = False

    def read(self) -> Head:
        """Everything that is in the log now; takes nothing over.

        One GET of the hint, one of a checkpoint, a listing of what came after: the age of the log does not matter.
        """
        checkpoint = self._newest_checkpoint()
        self.head = Head() if checkpoint is None else checkpoint.head()
        self._since_checkpoint = []
        self._read_on()
        return self.head

    def take_over(self) -> Head:
        """Read the log and append a takeover entry, so that every older instance is refused from then on."""
        self.read()
        while True:
            entry = sealed(replace(self._entry(), takeover=Takeover(self.head.writer)))
            if self._create(entry) is entry:
                self._advance(entry)
                return self.head
            self._read_on()

    def append(
        self,
        *,
        intent: Plan | None = None,
        commits: Sequence[Commit] = (),
        config: Mapping[str, str] | None = None,
        closes: int | None = None,
        topics: Mapping[str, str] | None = None,
    ) -> Head:
        """Append one entry of the engine; it is there when this returns. Raises as `add`."""
        shaping = None if config is None else dict(config)
        ids = dict(topics) if topics else None
        empty = self._entry()
        return self.add(
            replace(empty, intent=intent, commits=tuple(commits), config=shaping, closes=closes, topics=ids)
        )

    def reset(self, resets: Sequence[Reset]) -> Head:
        """Set positions; a plan that is still open is given up. Raises as `add`."""
        is_open = self.head.open_intent
        return self.add(replace(self._entry(), resets=tuple(resets), closes=None if is_open is None else is_open[0]))

    def mark_complete(self, complete: Sequence[Complete]) -> Head:
        """Record up to which time topics are complete. Raises as `add`."""
        return self.add(replace(self._entry(), complete=tuple(complete)))

    def check_held(self) -> None:
        """Find out whether this instance still holds the log, without writing: one GET, and no state is changed.

        Raises:
            TakenOverError: another instance appended behind the head.
            StoreUnavailable: the store does not say.
        """
        key = self.names.entry(self.head.seq + 1)
        try:
            standing = decode(self.store.get(key), key)
        except NotFoundError:
            return
        if standing.writer != self.writer.id:
            raise self._taken_over(standing)

    def add(self, entry: Entry) -> Head:
        """Append an entry; it is there when this returns.

        Raises:
            TakenOverError: another instance appended before us; nothing was written, and nothing may be any more.
            StateError: the entry contradicts the head; nothing was written.
            StoreUnavailable: it is not known whether the entry is there. The next append finds out; if it was, that
                raises this once more, because what the caller was about to say rests on an older `head`.
        """
        self._settle()
        entry = sealed(entry)
        expected = apply(self.head, entry)
        standing = self._create(entry)
        if standing is not entry:
            self._go_on_from(standing)
        self._advance(entry, expected)
        return self.head

    def _settle(self) -> None:
        """Find out what became of an append whose outcome is unknown."""
        if not self._in_doubt:
            return
        key = self.names.entry(self.head.seq + 1)
        try:
            standing = decode(self.store.get(key), key)
        except NotFoundError:
            self._in_doubt = False
            return
        self._in_doubt = False
        self._go_on_from(standing)

    def _go_on_from(self, standing: Entry) -> NoReturn:
        """An entry that this append did not make has its place: another instance's, or an earlier one of our own."""
        if standing.writer == self.writer.id:
            self._advance(standing)
            msg = f"state log: entry {standing.seq} turned out to be written after all; planning again from there"
            raise StoreUnavailable(msg)
        raise self._taken_over(standing)

    def _taken_over(self, standing: Entry) -> TakenOverError:
        when = standing.time or "an unknown time"
        msg = (
            f"connector `{self.connector}` was taken over by another instance on host {standing.host} at {when} "
            f"(state log entry {standing.seq}); this instance stops"
        )
        return TakenOverError(msg)

    def _entry(self) -> Entry:
        """The next entry, by this writer, with nothing in it."""
        now = self.writer.clock_ms()
        return Entry(
            seq=self.head.seq + 1,
            writer=self.writer.id,
            host=self.writer.host,
            time_ms=now,
            time=dt.datetime.fromtimestamp(now / 1000, dt.timezone.utc).isoformat(timespec="milliseconds"),
            previous=self.head.digest,
        )

    def _create(self, entry: Entry) -> Entry:
        """Create the entry. `entry` itself when it is there, else the one that stands in its place.

        An outcome that we did not hear is found out by reading the key back. Only the same bytes are the same entry:
        an earlier append of ours, given up as unknown, may say something else under this very key.
        """
        key, body = self.names.entry(entry.seq), encode(entry)
        self._in_doubt = True
        unheard = 0
        for _ in range(_UNCLEAR_TRIES):
            try:
                self.store.put(key, body, Create())
            except (RefusedError, ConflictError, OutcomeUnknownError) as error:
                unclear = error
            else:
                self._in_doubt = False
                return entry
            try:
                found = self.store.get(key)
            except NotFoundError:
                unheard += isinstance(unclear, OutcomeUnknownError)
                if unheard >= _UNHEARD:
                    break
                continue
            self._in_doubt = False
            return entry if found == body else decode(found, key)
        msg = f"state log: entry `{key}` could not be written: {unclear}"
        raise StoreUnavailable(msg)

    def _advance(self, entry: Entry, head: Head | None = None) -> None:
        self.head = apply(self.head, entry) if head is None else head
        self._since_checkpoint.append(entry)
        if len(self._since_checkpoint) >= self.checkpoint_every:
            self._checkpoint()

    def _read_on(self) -> None:
        """Fold in the entries behind the head."""
        for entry in entries(self.store, self.names, self.head.seq):
            self.head = apply(self.head, entry)
            self._since_checkpoint.append(entry)

    def _newest_checkpoint(self) -> Checkpoint | None:
        """The checkpoint that the hint names; without a good hint the newest one there is."""
        try:
            seq = msgspec.json.decode(self.store.get(self.names.hint), type=dict[str, int])["seq"]
            key = self.names.checkpoint(seq)
            return decode_checkpoint(self.store.get(key), key)
        except (NotFoundError, StateError, msgspec.DecodeError, KeyError):
            pass
        prefix = self.names.hint.removesuffix("latest.json")
        keys = [each.key for each in self.store.list(prefix) if self.names.seq_of_checkpoint(each.key) is not None]
        return decode_checkpoint(self.store.get(keys[-1]), keys[-1]) if keys else None

    def _checkpoint(self) -> None:
        """Write the head, then the hint. A failure costs a later start some time, so it stops nothing."""
        first, last = self._since_checkpoint[0].seq, self.head.seq
        try:
            self._put_once(self.names.objects(first, last), object_table(self._since_checkpoint))
            self._put_once(self.names.checkpoint(last), msgspec.json.encode(Checkpoint.of(self.head)))
            self.store.put(self.names.hint, msgspec.json.encode({"seq": last}), Anything())
        except PenstockError as error:
            _log.warning("checkpoint.failed seq=%d reason=%s", last, error)
            return
        self._since_checkpoint = []
        reach("checkpoint.written")

    def _put_once(self, key: str, body: bytes) -> None:
        try:
            self.store.put(key, body, Create())
        except RefusedError:
            return
