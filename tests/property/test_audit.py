"""What the audit says of logs: nothing of a true one, and something of each that was tampered with."""

import itertools
import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from memory_store import MemoryStore

from penstock.audit import accounts
from penstock.audit.findings import Finding
from penstock.audit.logbook import read_log
from penstock.model import Commit, CommittedObject, Plan, PlannedRange, TopicPartition
from penstock.statelog.entries import Complete, Reset
from penstock.statelog.log import StateLog, Writer
from penstock.statelog.names import Names
from penstock.store.base import Anything

TP = TopicPartition("t", 0)
NAMES = Names("_penstock/x/")
# Of a commit: (records, hidden offsets before them) of each object, records left out, how the entry ends.
COMMITS = st.tuples(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), max_size=3),
    st.integers(0, 2),
    st.sampled_from(["closed", "closed", "partly", "reset back", "skipped", "complete", "taken over"]),
)


def stored(at, records, hidden, n):
    start = at + hidden
    return CommittedObject(
        f"o{n}", start, start + records, records, 9, '"e"', "0", "p", "", 1, 2, "flush.size", "value"
    )


def instance(store, every):
    ticks = itertools.count(1_700_000_000_000)
    return StateLog("x", store, NAMES, Writer("w", "h", lambda: next(ticks)), every)


def append(log, step, numbers):
    pieces, left_out, ending = step
    at = start = log.head.positions[TP]
    log.append(intent=Plan((PlannedRange(TP, at, at + 100),), 17), config={"flush.size": str(next(numbers) % 2 + 1)})
    seq, objects = log.head.seq, []
    for records, hidden in pieces:
        objects.append(stored(at, records, hidden, next(numbers)))
        at += records + hidden
    hidden = sum(each for _, each in pieces)
    closes = None if ending == "partly" else seq
    log.append(commits=[Commit(TP, at + left_out, tuple(objects), left_out, hidden)], closes=closes)
    if ending == "reset back" and objects:
        log.reset([Reset(TP, objects[-1].start)])
    elif ending == "skipped":
        log.append(commits=[Commit(TP, at + left_out + 5)])
    elif ending == "complete":
        log.mark_complete([Complete("t", start)])
    elif ending == "taken over":
        log.take_over()


def written(steps, every):
    """A log on a store, its first position 3."""
    store, numbers = MemoryStore(), itertools.count()
    log = instance(store, every)
    log.take_over()
    log.append(commits=[Commit(TP, 3)])
    for step in steps:
        append(log, step, numbers)
    return store


def findings(store):
    history, found = read_log(store, NAMES)
    return [*found, *accounts.check(history)]


@settings(max_examples=40)
@given(st.lists(COMMITS, max_size=6), st.integers(1, 5))
def test_a_true_log_is_sound_whatever_happened_in_it(steps, every):
    assert findings(written(steps, every)) == []


@settings(max_examples=40)
@given(st.lists(COMMITS, min_size=1, max_size=4), st.integers(1, 9), st.data())
def test_an_entry_that_is_gone_or_changed_is_a_finding(steps, every, data):
    store = written(steps, every)
    keys = sorted(key for key in store.objects if key.startswith(NAMES.entries))
    chosen = data.draw(st.integers(0, len(keys) - 2))
    if data.draw(st.booleans()):
        store.delete(keys[chosen])
        expected = "entry.missing"
    else:
        document = json.loads(store.get(keys[chosen]))
        document["host"] = "another"
        store.put(keys[chosen], json.dumps(document).encode(), Anything())
        expected = "entry.changed"
    found = findings(store)
    assert [each.where for each in found if each.kind == expected] == [f"entry {chosen + 1}"], found


@settings(max_examples=40)
@given(st.lists(COMMITS, min_size=1, max_size=4), st.sampled_from(["records", "skipped", "hidden", "position"]))
def test_a_wrong_number_in_the_newest_entry_is_a_finding(steps, what):
    steps = [*steps[:-1], (*steps[-1][:2], "closed")]
    store = written(steps, 100)
    newest = max(key for key in store.objects if key.startswith(NAMES.entries))
    document = json.loads(store.get(newest))
    (commit,) = document["commits"]
    changed = commit if what != "records" else next(iter(commit["objects"]), None)
    assume(changed is not None)
    changed[what] += 1
    store.put(newest, json.dumps(document).encode(), Anything())
    assert {each.kind for each in findings(store)} & {"range.gap", "range.overlap"}


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda s: s.put(NAMES.checkpoint(4), b"{}", Anything()), ("checkpoint.differs", "checkpoint 4")),
        (
            lambda s: s.put(
                NAMES.checkpoint(4), s.get(NAMES.checkpoint(4)).replace(b'"position":', b'"position":1'), Anything()
            ),
            ("checkpoint.differs", "checkpoint 4"),
        ),
        (lambda s: s.put(NAMES.objects(5, 8), b"PAR1", Anything()), ("list.differs", NAMES.objects(5, 8))),
        (
            lambda s: s.put(NAMES.objects(5, 8), s.get(NAMES.objects(1, 4)), Anything()),
            ("list.differs", NAMES.objects(5, 8)),
        ),
        (lambda s: s.put(f"{NAMES.entries}notes.txt", b"", Anything()), ("entry.damaged", f"{NAMES.entries}notes.txt")),
        (lambda s: s.delete(NAMES.entry(8)), ("entry.missing", "entries 8 to 8")),
        (lambda s: s.put(NAMES.entry(8), s.get(NAMES.entry(6)), Anything()), ("entry.damaged", "entry 8")),
    ],
)
def test_a_spoilt_summary_or_a_stray_object_in_the_log_is_named(spoil, expected):
    store = written([([(3, 0)], 0, "closed")] * 3, 4)
    assert findings(store) == []
    spoil(store)
    assert expected in {(each.kind, each.where) for each in findings(store) if isinstance(each, Finding)}
