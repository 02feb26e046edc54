"""The state log as it lies in the bucket, read whole: entries, checkpoints, lists of objects."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from typing import TYPE_CHECKING

from penstock.audit.findings import Finding
from penstock.audit.history import Unreadable, read
from penstock.errors import StateError
from penstock.statelog.entries import decode, decode_checkpoint
from penstock.statelog.history import read_list
from penstock.statelog.objects import object_row
from penstock.store.base import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from penstock.audit.history import History
    from penstock.statelog.entries import Entry, Head
    from penstock.statelog.names import Names
    from penstock.store.base import Store

_THREADS, _AHEAD = 8, 64


def read_log(store: Store, names: Names) -> tuple[History, list[Finding]]:
    """The whole log, and what in its bucket is not as it must be."""
    found: list[Finding] = []
    checkpoints = _checkpoints(store, names, found)
    history = read(_entries(store, names, found), checkpoints)
    spans = [span for each in store.list(names.object_lists) if (span := names.span_of_objects(each.key)) is not None]
    newest = max((*checkpoints, *(last for _, last in spans)), default=0)
    if newest > history.head.seq:
        which = f"entries {history.head.seq + 1} to {newest}"
        found.append(Finding("entry.missing", which, "are not in the log, but a checkpoint or list was made of them"))
    for first, last in spans:
        found += _list(store, names.objects(first, last), first, last, history)
    return history, [*history.findings, *found]


def _entries(store: Store, names: Names, found: list[Finding]) -> Iterator[Entry | Unreadable]:
    """In ascending order, with requests under way ahead; one that vanishes meanwhile is a missing one."""
    with ThreadPoolExecutor(_THREADS, "audit") as pool:
        ahead: deque[Future[tuple[Entry | Unreadable, ...]]] = deque()
        for listed in store.list(names.entries):
            seq = names.seq_of_entry(listed.key)
            if names.is_under_way(listed.key):
                continue
            if seq is None or names.entry(seq) != listed.key:
                found.append(Finding("entry.damaged", listed.key, "is no entry; move it out of the log"))
                continue
            ahead.append(pool.submit(_entry, store, listed.key, seq))
            if len(ahead) >= _AHEAD:
                yield from ahead.popleft().result()
        while ahead:
            yield from ahead.popleft().result()


def _entry(store: Store, key: str, seq: int) -> tuple[Entry | Unreadable, ...]:
    """The entry; nothing if it is gone."""
    try:
        entry = decode(store.get(key), key)
    except NotFoundError:
        return ()
    except StateError as error:
        return (Unreadable(seq, str(error)),)
    if entry.seq != seq:
        return (Unreadable(seq, f"`{key}` says that it is entry {entry.seq}"),)
    return (entry,)


def _checkpoints(store: Store, names: Names, found: list[Finding]) -> dict[int, Head]:
    heads: dict[int, Head] = {}
    for listed in store.list(names.checkpoints):
        seq = names.seq_of_checkpoint(listed.key)
        if seq is None:
            continue
        try:
            heads[seq] = decode_checkpoint(store.get(listed.key), listed.key).head()
        except StateError as error:
            found.append(Finding("checkpoint.differs", f"checkpoint {seq}", str(error)))
    return heads


def _list(store: Store, key: str, first: int, last: int, history: History) -> list[Finding]:
    """One list of objects against the entries that it was made of."""
    unreadable = {each.where for each in history.findings if each.kind in ("entry.missing", "entry.damaged")}
    if unreadable:
        return []
    try:
        stored = read_list(store, key).to_pylist()
    except StateError as error:
        return [Finding("list.differs", key, str(error))]
    start = bisect_left(history.named, first, key=itemgetter(0))
    end = bisect_right(history.named, last, key=itemgetter(0))
    named = [object_row(entry, tp, each) for entry, tp, each in history.named[start:end]]
    if stored == named:
        return []
    return [Finding("list.differs", key, f"does not say what the entries {first} to {last} say; delete it")]
