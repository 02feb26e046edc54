"""What the log holds, for start, status and verify: entries in their order, and the objects they committed.

Files of objects may overlap after a crash between the steps of a checkpoint; entries are never deleted. A reader takes
the longest file that begins where it stands, and entries where none does, so each entry counts exactly once.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import StateError
from penstock.statelog.entries import decode
from penstock.statelog.objects import SCHEMA, rows
from penstock.store.base import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from penstock.statelog.entries import Entry
    from penstock.statelog.names import Names
    from penstock.store.base import Store

_THREADS, _AHEAD = 8, 32


def entries(store: Store, names: Names, after: int = 0, through: int | None = None) -> Iterator[Entry]:
    """Entries `after + 1` to `through`, or to the newest one, with a few requests under way at once.

    Raises:
        StateError: an entry is missing, damaged, or not one.
    """
    with ThreadPoolExecutor(_THREADS, "state") as pool:
        ahead: deque[Future[Entry]] = deque()
        for seq in _seqs(store, names, after, through):
            ahead.append(pool.submit(_entry, store, names.entry(seq)))
            if len(ahead) >= _AHEAD:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def tables(store: Store, names: Names) -> Iterator[pa.Table]:
    """All committed objects in the order of the log, a row each, as tables of `objects.SCHEMA`.

    Raises:
        StateError: something of the log is missing or damaged.
    """
    longest = _longest(store, names)
    at = 1
    while True:
        if at in longest:
            yield read_list(store, names.objects(at, longest[at]))
            at = longest[at] + 1
            continue
        start = min((first for first in longest if first > at), default=None)
        read = entries(store, names, at - 1, None if start is None else start - 1)
        yield pa.Table.from_pylist(rows(read), schema=SCHEMA)
        if start is None:
            return
        at = start


def _seqs(store: Store, names: Names, after: int, through: int | None) -> Iterator[int]:
    expected = after + 1
    for listed in store.list(names.entries, names.entry(after)):
        seq = names.seq_of_entry(listed.key)
        if seq is None and names.is_under_way(listed.key):
            continue
        if seq is None:
            msg = f"state log: `{listed.key}` is no entry; move it out of the log"
            raise StateError(msg)
        if through is not None and expected > through:
            return
        if seq != expected:
            msg = f"state log: entry {seq} follows entry {expected - 1}; `{names.entry(expected)}` is missing"
            raise StateError(msg)
        yield seq
        expected += 1
    if through is not None and expected <= through:
        msg = f"state log: `{names.entry(expected)}` is missing"
        raise StateError(msg)


def _entry(store: Store, key: str) -> Entry:
    try:
        return decode(store.get(key), key)
    except NotFoundError as error:
        msg = f"state log: `{key}` is missing"
        raise StateError(msg) from error


def _longest(store: Store, names: Names) -> dict[int, int]:
    """Per first entry, the last entry of the longest file that begins there."""
    found: dict[int, int] = {}
    for listed in store.list(names.object_lists):
        span = names.span_of_objects(listed.key)
        if span is not None:
            found[span[0]] = max(found.get(span[0], 0), span[1])
    return found


def read_list(store: Store, key: str) -> pa.Table:
    """A list of committed objects, a row each. Raises StateError where it is damaged."""
    try:
        table = pq.read_table(pa.BufferReader(store.get(key)))
        return table.select(SCHEMA.names).cast(SCHEMA)
    except (pa.ArrowException, KeyError, OSError) as error:
        msg = f"state log: `{key}` is damaged ({error}); delete it, the entries hold the same"
        raise StateError(msg) from error
