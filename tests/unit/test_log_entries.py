import json
import subprocess
import sys

import msgspec
import pytest

from penstock.errors import StateError
from penstock.model import Commit, CommittedObject, Plan, PlannedRange, TopicPartition
from penstock.statelog.entries import (
    Checkpoint,
    Complete,
    Entry,
    Head,
    Reset,
    Takeover,
    apply,
    decode,
    decode_checkpoint,
    encode,
    sealed,
)

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
PLAN = Plan((PlannedRange(A, 3, 9),), 17)


def entry(seq, **content):
    return Entry(seq=seq, writer="w", host="h", time_ms=1, time="1970-01-01T00:00:00.001+00:00", **content)


def stored(start, end):
    return CommittedObject(f"o{start}", start, end, end - start, 9, '"e"', "0", "partition=0", "", 1, 2, "flush.size")


def fold(*entries):
    head = Head()
    for each in entries:
        head = apply(head, each)
    return head


BEGUN = sealed(entry(1, commits=(Commit(A, 3), Commit(B, 0))))


BEGUN_HEAD = fold(BEGUN)


def test_an_intent_stays_open_until_an_entry_closes_it_or_a_newer_one_replaces_it():
    planned = fold(BEGUN, entry(2, intent=PLAN))
    assert planned.open_intent == (2, PLAN)
    partly = apply(planned, entry(3, commits=(Commit(A, 5, (stored(3, 5),)),)))
    assert (partly.open_intent, partly.positions) == ((2, PLAN), {A: 5, B: 0})
    closed = apply(partly, entry(4, commits=(Commit(A, 9, (stored(5, 9),)),), closes=2))
    assert (closed.open_intent, closed.positions) == (None, {A: 9, B: 0})
    newer = Plan((PlannedRange(B, 0, 4),), 18)
    assert apply(planned, entry(3, intent=newer)).open_intent == (3, newer)


def test_commits_of_an_entry_count_before_its_plan():
    head = fold(BEGUN, entry(2, commits=(Commit(B, 7),), intent=Plan((PlannedRange(B, 7, 8),), 17)))
    assert head.open_intent is not None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (entry(3), "entry 3 follows entry 1"),
        (entry(2, commits=(Commit(A, 2),)), "moves t-0 back from offset 3 to 2"),
        (entry(2, commits=(Commit(A, 9, (stored(2, 9),)),)), r"o2 .*\[2, 9\).*\[3, 9\)"),
        (entry(2, commits=(Commit(A, 9, (stored(3, 10),)),)), r"o3 .*\[3, 10\).*\[3, 9\)"),
        (entry(2, closes=1), "closes intent 1, which is not open"),
        (entry(2, intent=Plan((PlannedRange(A, 4, 9),), 17)), "plans t-0 from offset 4.* 3"),
        (entry(2, format=2), "newer Penstock"),
        (entry(2, previous="0" * 64), "entry 1 was changed after entry 2 was written"),
    ],
)
def test_an_entry_that_contradicts_the_head_is_refused(wrong, words):
    with pytest.raises(StateError, match=words):
        fold(BEGUN, wrong)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"takeover": Takeover("w0"), "config": {"flush.size": "3", "é": "\n"}},
        {"resets": (Reset(A, 2),), "complete": (Complete("t", 7),), "previous": "d"},
        {"intent": PLAN, "commits": (Commit(A, 9, (stored(3, 9),), skipped=2),), "closes": 1},
    ],
)
def test_an_entry_survives_its_json(content):
    written = sealed(entry(2, **content))
    read = decode(encode(written), "k")
    assert (read, read.digest) == (written, written.digest)


def test_a_reset_moves_a_position_back_and_takes_its_last_object_out():
    written = apply(BEGUN_HEAD, entry(2, commits=(Commit(A, 9, (stored(3, 9),)),), intent=Plan((), 17)))
    head = apply(written, entry(3, resets=(Reset(A, 3),), closes=2))
    assert (head.positions, head.last_objects, head.open_intent) == ({A: 3, B: 0}, {}, None)


def test_a_topic_that_is_reset_as_a_whole_may_be_another_one_from_then_on():
    known = apply(BEGUN_HEAD, entry(2, topics={"t": "id", "u": "other"}))
    assert known.topics == {"t": "id", "u": "other"}
    assert apply(known, entry(3, resets=(Reset(A, 3),))).topics == known.topics
    assert apply(known, entry(3, resets=(Reset(A, 3), Reset(B, 0)))).topics == {"u": "other"}


def test_a_topic_is_complete_up_to_the_newest_time_that_was_recorded():
    first = apply(BEGUN_HEAD, entry(2, complete=(Complete("t", 7), Complete("u", 1))))
    assert apply(first, entry(3, complete=(Complete("t", 9),))).complete == {"t": 9, "u": 1}


def test_a_checkpoint_holds_all_that_a_start_needs():
    head = fold(
        BEGUN,
        entry(2, intent=PLAN, config={"flush.size": "3"}, complete=(Complete("t", 7),)),
        sealed(entry(3, topics={"t": "id"}, commits=(Commit(B, 2, (stored(0, 2),)),))),
    )
    assert decode_checkpoint(msgspec.json.encode(Checkpoint.of(head)), "k").head() == head


def test_what_a_newer_penstock_wrote_is_refused_not_misread():
    newer = {**json.loads(encode(entry(2))), "novelty": []}
    with pytest.raises(StateError, match=r"`log/2`.*`novelty`.*upgrade"):
        decode(json.dumps(newer).encode(), "log/2")
    checkpoint = {**json.loads(msgspec.json.encode(Checkpoint.of(Head()))), "format": 2}
    with pytest.raises(StateError, match=r"`checkpoint/2`.*format 2.*upgrade"):
        decode_checkpoint(json.dumps(checkpoint).encode(), "checkpoint/2")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"seq": "one"}', b"\xff"])
def test_a_damaged_entry_is_named(data):
    with pytest.raises(StateError, match="`log/2` is damaged"):
        decode(data, "log/2")


ALL_AT_ONCE = """
import sys, threading
from penstock.statelog import entries
from penstock.model import Commit, CommittedObject, Plan, PlannedRange, TopicPartition
kinds = (entries.Entry, entries.Takeover, Commit, CommittedObject, Plan, PlannedRange, TopicPartition)
print([kind.__name__ for kind in kinds if "__msgspec_cache__" not in vars(kind)])
sys.setswitchinterval(1e-6)
body = sys.stdin.buffer.read()
start = threading.Barrier(8)
threads = [threading.Thread(target=lambda: (start.wait(), entries.decode(body, "k"))) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_entries_are_read_by_several_threads_from_the_first_one_on():
    """msgspec crashes where threads meet a type that another one is still looking at: all are known at import."""
    body = encode(entry(2, intent=PLAN, commits=(Commit(A, 9, (stored(3, 9),)),)))
    done = subprocess.run([sys.executable, "-c", ALL_AT_ONCE], input=body, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, b"[]\n"), done.stderr
