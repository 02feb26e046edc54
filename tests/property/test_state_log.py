import itertools
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_store import MemoryStore

from penstock.errors import StoreUnavailable, TakenOverError
from penstock.model import Commit, Plan, PlannedRange, TopicPartition
from penstock.statelog.entries import Head, apply, decode
from penstock.statelog.log import StateLog, Writer
from penstock.statelog.names import Names

TP = TopicPartition("t", 0)
NAMES = Names("_penstock/x/")
# Which of three instances does what next, and what becomes of its requests to the log meanwhile.
STEPS = st.tuples(st.integers(0, 2), st.sampled_from(["start", "plan", "commit", "more"]))
PUTS = st.lists(st.sampled_from(["none", "lost", "unheard", "late"]), max_size=3)
GETS = st.lists(st.sampled_from(["none", "down"]), max_size=2)


def instance(store, name, every=4):
    ticks = itertools.count(1_700_000_000_000)
    return StateLog("x", store, NAMES, Writer(name, f"host-{name}", lambda: next(ticks)), every)


def entries(store):
    """What stands in the log, by seq."""
    keys = sorted(key for key in store.objects if key.startswith(NAMES.entries))
    return [decode(store.objects[key][0], key) for key in keys]


def folded(log_entries, seq):
    head = Head()
    for entry in log_entries[:seq]:
        head = apply(head, entry)
    return head


def act(log, what):
    at = log.head.positions.get(TP, 0)
    is_open = log.head.open_intent
    if what == "start":
        log.take_over()
    elif what == "plan":
        log.append(commits=[Commit(TP, at)], intent=Plan((PlannedRange(TP, at, at + 9),), 17))
    else:
        log.append(commits=[Commit(TP, at + (1 if what == "commit" else 5))], closes=is_open[0] if is_open else None)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(STEPS, PUTS, GETS), max_size=20))
def test_whatever_is_lost_or_late_every_instance_knows_the_log_as_it_is(steps):
    store = MemoryStore()
    logs = {}
    for name, ((who, wanted), puts, gets) in enumerate(steps):
        store.put_faults, store.get_faults = deque(puts), deque(gets)
        what = wanted if who in logs else "start"
        if what == "start":
            logs[who] = instance(store, f"{who}-{name}")
        try:
            act(logs[who], what)
        except TakenOverError:
            lost = logs.pop(who)
            assert lost.writer.id not in {entry.writer for entry in entries(store)[lost.head.seq :]}
        except StoreUnavailable:
            if what == "start":
                del logs[who]
            continue
        standing = entries(store)
        assert [entry.seq for entry in standing] == list(range(1, len(standing) + 1))
        for log in logs.values():
            assert log.head == folded(standing, log.head.seq)


@settings(deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_once_an_instance_took_over_no_older_one_appends(steps):
    store = MemoryStore()
    logs = {}
    newest = None
    for name, (who, wanted) in enumerate(steps):
        what = wanted if who in logs else "start"
        if what == "start":
            logs[who], newest = instance(store, f"{who}-{name}"), who
        if who == newest:
            act(logs[who], what)
        else:
            before = len(entries(store))
            with pytest.raises(TakenOverError, match="taken over"):
                act(logs[who], what)
            assert len(entries(store)) == before
    assert {instance(store, "r").read() == log.head for who, log in logs.items() if who == newest} <= {True}
