"""The store and the state log on a real S3 server."""

import itertools
import os
import threading
import uuid
from concurrent.futures import wait
from dataclasses import replace

import pytest

from penstock.audit.logbook import read_log
from penstock.errors import ForeignObjectError, StateError, StoreUnavailable, TakenOverError
from penstock.model import Commit, CommittedObject, Plan, PlannedRange, TopicPartition
from penstock.statelog.log import StateLog, Writer
from penstock.statelog.names import Names
from penstock.store.base import Anything, Create, RefusedError, Replace
from penstock.store.probe import refuses_overwrites
from penstock.store.s3 import StoreOptions, store
from penstock.store.upload import Owner, Uploads, abort_leftovers

pytestmark = pytest.mark.stack

TP = TopicPartition("t", 0)
MIB = 1024 * 1024


@pytest.fixture
def options(stack, bucket):
    return StoreOptions(
        bucket,
        stack.region,
        stack.store_url,
        access_key_id=stack.access_key_id,
        secret_access_key=stack.secret_access_key,
        retries=1,
        backoff_ms=1,
    )


@pytest.fixture
def s3store(options):
    opened = store(options)
    yield opened
    opened.client.close()


def log(s3store, writer, every=100):
    ticks = itertools.count(1_700_000_000_000)
    return StateLog("x", s3store, Names("_penstock/x/"), Writer(writer, f"host-{writer}", lambda: next(ticks)), every)


def test_the_verbs_do_what_their_preconditions_say(s3store):
    etag = s3store.put("k", b"one", Create(), {"penstock-intent": "7"})
    with pytest.raises(RefusedError):
        s3store.put("k", b"two", Create())
    assert s3store.get("k") == b"one"
    assert s3store.get("k", 1, 3) == b"ne"
    head = s3store.head("k")
    assert (head.size, head.etag, head.metadata) == (3, etag, {"penstock-intent": "7"})
    s3store.put("k", b"three", Anything())
    assert s3store.head("absent") is None
    assert [each.key for each in s3store.list("")] == ["k"]
    assert [each.key for each in s3store.list("", "k")] == []
    s3store.delete("k")
    assert refuses_overwrites(s3store, "probe")
    assert list(s3store.list("")) == []


def test_a_replacement_needs_the_object_that_was_looked_at(s3store):
    etag = s3store.put("k", b"one", Create())
    s3store.put("k", b"two", Replace(etag))
    with pytest.raises(RefusedError):
        s3store.put("k", b"three", Replace(etag))
    assert s3store.get("k") == b"two"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bucket": "no-such-bucket-anywhere"}, "s3.bucket.name"),
        ({"secret_access_key": "wrong-secret"}, "aws.secret.access.key"),
        ({"access_key_id": "AKIAWRONG"}, "aws.access.key.id"),
        ({"url": "http://127.0.0.1:9"}, "does not answer"),
    ],
)
def test_what_is_wrong_with_a_store_is_one_sentence_without_a_secret(options, change, words):
    wrong = replace(options, **change)
    with pytest.raises(StoreUnavailable) as caught:
        store(wrong).check()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert wrong.secret_access_key not in str(caught.value) + repr(wrong)


def test_a_big_object_goes_up_in_parts_and_appears_whole(s3store):
    uploads = Uploads(s3store, Owner("x", 5), 5 * MIB)
    writer = uploads.open("big", 0)
    blocks = [os.urandom(MIB) for _ in range(13)]
    for block in blocks:
        writer.write(block)
    assert s3store.head("big") is None
    stored = writer.close({"records": "13"}).result()
    assert stored.size == 13 * MIB
    assert s3store.get("big") == b"".join(blocks)
    assert s3store.head("big").metadata["penstock-intent"] == "5"


def test_an_upload_that_was_never_completed_leaves_no_object_and_is_swept(s3store):
    uploads = Uploads(s3store, Owner("x", 5), 5 * MIB)
    for action in ("abandon", "crash"):
        writer = uploads.open(f"topics/{action}", 0)
        writer.write(bytes(6 * MIB))
        wait(writer._parts)
        if action == "abandon":
            writer.abandon()
    assert abort_leftovers(s3store, "topics/") == 1
    assert abort_leftovers(s3store, "topics/") == 0
    assert list(s3store.list("")) == []


def put(s3store, owner, body=b"data"):
    writer = Uploads(s3store, owner, 5 * MIB).open("key", 0)
    writer.write(body)
    return writer.close({}).result()


def test_the_same_plan_takes_its_own_object_as_it_is(s3store):
    first = put(s3store, Owner("x", 5))
    assert put(s3store, Owner("x", 5)) == first


def test_a_left_over_of_an_older_plan_is_replaced(s3store):
    put(s3store, Owner("x", 4), b"old content")
    put(s3store, Owner("x", 5))
    assert s3store.get("key") == b"data"


def test_an_object_of_a_newer_plan_stops_us(s3store):
    put(s3store, Owner("x", 6))
    with pytest.raises(TakenOverError):
        put(s3store, Owner("x", 5), b"other")
    assert s3store.get("key") == b"data"


@pytest.mark.parametrize("metadata", [{}, {"penstock-connector": "y", "penstock-intent": "1"}])
def test_a_foreign_object_is_named_and_left_alone_unless_the_user_says_otherwise(s3store, metadata):
    s3store.put("key", b"foreign", Create(), metadata)
    with pytest.raises(ForeignObjectError, match="`key`"):
        put(s3store, Owner("x", 5))
    assert s3store.get("key") == b"foreign"
    put(s3store, Owner("x", 5, "overwrite"))
    assert s3store.get("key") == b"data"


def committed(start, end):
    return CommittedObject(f"o{start}", start, end, end - start, 9, "e", "0", "partition=0", "", 1, 2, "flush.size")


def test_the_log_goes_on_where_it_stood_and_keeps_the_open_plan(s3store):
    one = log(s3store, "one")
    one.take_over()
    one.append(commits=[Commit(TP, 0)])
    plan = Plan((PlannedRange(TP, 0, 3),), 17)
    one.append(intent=plan, config={"flush.size": "3"})
    two = log(s3store, "two")
    assert two.take_over().open_intent == (3, plan)
    assert two.head.config == {"flush.size": "3"}
    two.append(commits=[Commit(TP, 3, (committed(0, 3),))], closes=3)
    head = log(s3store, "three").read()
    assert (head.positions, head.open_intent, head.last_objects) == ({TP: 3}, None, {TP: "o0"})


def test_the_older_instance_is_refused_and_told_who_took_over(s3store):
    one, two = log(s3store, "one"), log(s3store, "two")
    one.take_over()
    two.take_over()
    with pytest.raises(TakenOverError, match="host-two"):
        one.append(commits=[Commit(TP, 1)])
    with pytest.raises(TakenOverError):
        one.append(commits=[Commit(TP, 1)])
    assert two.append(commits=[Commit(TP, 2)]).positions == {TP: 2}
    assert log(s3store, "three").read().positions == {TP: 2}


def test_of_many_that_append_at_once_one_wins_every_time(s3store):
    logs = [log(s3store, f"w{n}") for n in range(6)]
    for each in logs:
        each.read()
    outcomes = []

    def append(each):
        try:
            each.append(commits=[Commit(TP, 1)])
            outcomes.append("done")
        except TakenOverError:
            outcomes.append("refused")

    threads = [threading.Thread(target=append, args=(each,)) for each in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["done"] + ["refused"] * 5


class Counting:
    """A store that counts its requests."""

    def __init__(self, inner):
        self.inner, self.requests = inner, 0

    def __getattr__(self, verb):
        self.requests += 1
        return getattr(self.inner, verb)


def test_a_start_reads_as_little_from_a_long_log_as_from_a_short_one(s3store):
    writer = log(s3store, "one", every=10)
    writer.take_over()
    costs = []
    for position in range(1, 61):
        writer.append(commits=[Commit(TP, position, (committed(position - 1, position),))])
        if position in (9, 59):
            counting = Counting(s3store)
            assert log(counting, "r").read().positions == {TP: position}
            costs.append(counting.requests)
    assert costs[1] <= costs[0]
    assert len(list(s3store.list("_penstock/x/objects/"))) == 6


@pytest.mark.parametrize("hint", [None, b"{", b'{"seq": 99}', b'{"seq": 10}'])
def test_a_hint_that_is_missing_stale_or_damaged_changes_nothing(s3store, hint):
    writer = log(s3store, "one", every=10)
    writer.take_over()
    for position in range(1, 35):
        writer.append(commits=[Commit(TP, position)])
    if hint is None:
        s3store.delete(writer.names.hint)
    else:
        s3store.put(writer.names.hint, hint, Anything())
    assert log(s3store, "two").read().positions == {TP: 34}


def test_a_missing_or_damaged_entry_is_named(s3store):
    writer = log(s3store, "one")
    writer.take_over()
    for position in range(1, 5):
        writer.append(commits=[Commit(TP, position)])
    s3store.put(writer.names.entry(3), b"{not json", Anything())
    with pytest.raises(StateError, match=r"00003\.json` is damaged"):
        log(s3store, "two").read()
    s3store.delete(writer.names.entry(3))
    with pytest.raises(StateError, match="entry 4 follows entry 2"):
        log(s3store, "two").read()


def test_what_a_server_of_files_lists_of_an_entry_under_way_is_none(s3store, bucket, tmp_path_factory):
    """s3proxy writes to a file beside the key, and lists it: without an ETag at first, then with one, then renamed."""
    writer = log(s3store, "one", every=2)
    writer.take_over()
    for position in range(1, 4):
        writer.append(commits=[Commit(TP, position)])
    s3store.delete(writer.names.hint)
    under_way = [f"{writer.names.entry(4)}-{uuid.uuid4()}" for _ in range(2)]
    s3store.put(under_way[0], b"{", Anything())
    data = next(tmp_path_factory.getbasetemp().glob(f"stack-s3proxy0/stack/s3/data/{bucket}"))
    (data / under_way[1]).write_bytes(b"{")
    (data / f"{writer.names.checkpoint(4)}-{uuid.uuid4()}").write_bytes(b"{")
    assert log(s3store, "two").take_over().positions == {TP: 3}
    assert read_log(s3store, writer.names)[1] == []
    s3store.put(f"{writer.names.entry(4)}.bak", b"{", Anything())
    with pytest.raises(StateError, match="is no entry; move it out of the log"):
        log(s3store, "three").take_over()
