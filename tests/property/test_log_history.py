import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_store import MemoryStore

from penstock.errors import StateError, StoreUnavailable
from penstock.model import Commit, CommittedObject, TopicPartition
from penstock.statelog.history import entries, tables
from penstock.statelog.log import StateLog, Writer
from penstock.statelog.names import Names
from penstock.store.base import Anything, Create

TP = TopicPartition("t", 0)
NAMES = Names("_penstock/x/")


class Failing(MemoryStore):
    """Writes of checkpoints and lists fail from the n-th on, until `fails_from` is None."""

    fails_from = None
    written = 0

    def put(self, key, body, precondition, metadata=None):
        if "/log/" not in key:
            self.written += 1
            if self.fails_from is not None and self.written >= self.fails_from:
                raise StoreUnavailable(key)
        return super().put(key, body, precondition, metadata)


def instance(store, name, every):
    ticks = itertools.count(1_700_000_000_000)
    return StateLog("x", store, NAMES, Writer(name, "h", lambda: next(ticks)), every)


def commit(position):
    stored = CommittedObject(f"o{position}", position - 1, position, 1, 9, '"e"', "0", "p=0", "", 1, 2, "flush.size")
    return Commit(TP, position, (stored,))


def keys(store):
    return [key for table in tables(store, NAMES) for key in table["key"].to_pylist()]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4), st.none() | st.integers(1, 3)), min_size=1, max_size=6))
def test_every_object_is_listed_once_whatever_became_of_checkpoints(runs):
    """Each run: how many commits, the interval of checkpoints, and which write from its start on fails."""
    store = Failing()
    position = 0
    for name, (commits, every, fails_from) in enumerate(runs):
        store.fails_from = None if fails_from is None else store.written + fails_from
        log = instance(store, f"w{name}", every)
        log.take_over()
        for _ in range(commits):
            position += 1
            log.append(commits=[commit(position)])
    expected = [f"o{n}" for n in range(1, position + 1)]
    assert keys(store) == expected
    assert instance(store, "r", 4).read().positions == {TP: position}
    assert [entry.seq for entry in entries(store, NAMES)] == list(range(1, position + len(runs) + 1))


def test_a_start_on_a_thousand_entries_costs_as_little_as_on_ten():
    store = MemoryStore()
    log = instance(store, "w", 10)
    log.take_over()
    costs = {}
    for position in range(1, 1000):
        log.append(commits=[commit(position)])
        if position in (9, 999 - 10, 995):
            before = store.requests
            assert instance(store, "r", 10).read().positions == {TP: position}
            costs[position] = store.requests - before
    assert costs[9] <= 3
    assert costs[989] <= 3
    assert costs[995] <= 3 + 10


def test_the_history_of_a_thousand_entries_is_a_tenth_of_the_requests():
    store = MemoryStore()
    log = instance(store, "w", 100)
    log.take_over()
    for position in range(1, 1000):
        log.append(commits=[commit(position)])
    before = store.requests
    assert len(keys(store)) == 999
    assert store.requests - before <= 1000 // 100 + 2


def test_a_missing_entry_or_a_damaged_list_is_named():
    store = MemoryStore()
    log = instance(store, "w", 4)
    log.take_over()
    for position in range(1, 7):
        log.append(commits=[commit(position)])
    kept = store.get(NAMES.entry(6))
    store.delete(NAMES.entry(6))
    with pytest.raises(StateError, match=r"0006\.json` is missing"):
        keys(store)
    store.put(NAMES.entry(6), kept, Create())
    store.put(NAMES.objects(1, 4), b"not parquet", Anything())
    with pytest.raises(StateError, match=r"0001-0*4\.parquet` is damaged .* delete it"):
        keys(store)
    store.delete(NAMES.objects(1, 4))
    assert len(keys(store)) == 6
