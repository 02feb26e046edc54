"""Data objects on two real S3 servers that differ in what a refused completion leaves behind."""

import os
import threading
import time
from concurrent.futures import wait

import google_crc32c
import pytest

from penstock.errors import ForeignObjectError, StoreUnavailable, TakenOverError
from penstock.store.base import Anything, Create, NotFoundError, OutcomeUnknownError, RefusedError, Replace
from penstock.store.probe import refuses_overwrites
from penstock.store.s3 import StoreOptions, store
from penstock.store.upload import CONNECTOR, CRC32C, RECORDS, SEQ, Owner, Uploads, abort_leftovers

pytestmark = pytest.mark.stack

MIB = 1024 * 1024
PART = 5 * MIB
PART_FAILED = "part 2 failed"
BIG = os.urandom(2 * PART + 17)


@pytest.fixture(params=["stack", "moto_stack"])
def s3store(request):
    info = request.getfixturevalue(request.param)
    options = StoreOptions(
        f"uploads-{os.urandom(6).hex()}",
        info.region,
        info.store_url,
        access_key_id=info.access_key_id,
        secret_access_key=info.secret_access_key,
        retries=1,
        backoff_ms=1,
    )
    opened = store(options)
    opened.client.create_bucket(Bucket=options.bucket, CreateBucketConfiguration={"LocationConstraint": options.region})
    return opened


class Faulty:
    """A store whose verbs a test can replace."""

    def __init__(self, inner, **verbs):
        self.inner, self.verbs = inner, verbs

    def __getattr__(self, name):
        return self.verbs.get(name) or getattr(self.inner, name)


def begin(s3store, body, seq=5, key="topics/t/k", records="3", existing="fail"):
    writer = Uploads(s3store, Owner("x", seq, existing), PART).open(key, 0)
    for start in range(0, len(body), MIB):
        writer.write(body[start : start + MIB])
    return writer.close({"records": records})


def crc(body):
    return f"{google_crc32c.value(body):08x}"


@pytest.mark.parametrize("body", [b"", b"small", BIG[:PART], BIG[: PART + 1], BIG])
def test_an_object_is_what_was_written_and_says_whose_it_is(s3store, body):
    stored = begin(s3store, body).result()
    head = s3store.head("topics/t/k")
    assert s3store.get("topics/t/k") == body
    assert (stored.size, stored.etag, stored.crc32c) == (len(body), head.etag, crc(body))
    assert (head.metadata[CONNECTOR], head.metadata[SEQ]) == ("x", "5")
    assert head.metadata.get(CRC32C, crc(body)) == crc(body)
    assert list(s3store.uploads("")) == []


@pytest.mark.parametrize("body", [b"small", BIG])
def test_the_same_plan_goes_on_with_its_object_and_leaves_no_upload(s3store, body):
    first = begin(s3store, body).result()
    assert begin(s3store, body).result() == first
    assert list(s3store.uploads("")) == []


@pytest.mark.parametrize("standing", [b"other build", BIG[:-1]])
@pytest.mark.parametrize("body", [b"small", BIG])
def test_an_object_of_the_same_plan_is_never_changed_even_if_another_build_compressed_it(s3store, standing, body):
    first = begin(s3store, standing).result()
    assert begin(s3store, body).result() == first
    assert s3store.get("topics/t/k") == standing
    assert first.crc32c == crc(standing)


@pytest.mark.parametrize("standing", [b"old", BIG[:-1]])
@pytest.mark.parametrize("body", [b"small", BIG])
def test_a_left_over_of_an_older_plan_is_replaced_whatever_the_sizes(s3store, standing, body):
    begin(s3store, standing, seq=4).result()
    assert begin(s3store, body).result().size == len(body)
    assert s3store.get("topics/t/k") == body
    assert list(s3store.uploads("")) == []


@pytest.mark.parametrize("body", [b"small", BIG])
def test_a_newer_plans_object_stops_us_and_stays(s3store, body):
    begin(s3store, b"newer", seq=6).result()
    with pytest.raises(TakenOverError):
        begin(s3store, body).result()
    assert s3store.get("topics/t/k") == b"newer"
    assert list(s3store.uploads("")) == []


@pytest.mark.parametrize(
    "metadata", [{}, {CONNECTOR: "y", SEQ: "5"}, {CONNECTOR: "x", SEQ: "?"}, {CONNECTOR: "x", SEQ: "5", RECORDS: "4"}]
)
def test_a_foreign_object_or_one_with_other_records_is_named_and_stays(s3store, metadata):
    s3store.put("topics/t/k", b"foreign", Create(), metadata)
    with pytest.raises(ForeignObjectError, match="`topics/t/k`"):
        begin(s3store, b"small").result()
    assert s3store.get("topics/t/k") == b"foreign"
    begin(s3store, b"small", existing="overwrite").result()
    assert s3store.get("topics/t/k") == b"small"


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("body", [b"small", BIG])
def test_an_answer_that_never_came_is_found_out(s3store, done, body):
    verb = "put" if body == b"small" else "complete"
    tries = []

    def unheard(*args):
        tries.append(1)
        if len(tries) > 1:
            return getattr(s3store, verb)(*args)
        if done:
            getattr(s3store, verb)(*args)
        raise OutcomeUnknownError(verb)

    stored = begin(Faulty(s3store, **{verb: unheard}), body).result()
    assert (stored.size, stored.crc32c) == (len(body), crc(body))
    assert s3store.get("topics/t/k") == body
    assert list(s3store.uploads("")) == []


def test_a_part_that_fails_leaves_neither_object_nor_upload(s3store):
    def part(upload, number, body):
        if number == 2:
            raise StoreUnavailable(PART_FAILED)
        return s3store.part(upload, number, body)

    with pytest.raises(StoreUnavailable, match=PART_FAILED):
        begin(Faulty(s3store, part=part), BIG).result()
    assert s3store.head("topics/t/k") is None
    assert list(s3store.uploads("")) == []


def test_an_abandoned_upload_whose_abort_fails_costs_nothing_but_the_next_starts_sweep(s3store):
    def abort(_upload):
        raise StoreUnavailable(PART_FAILED)

    writer = Uploads(Faulty(s3store, abort=abort), Owner("x", 5), PART).open("topics/t/k", 0)
    writer.write(BIG)
    writer.abandon()
    assert s3store.head("topics/t/k") is None
    assert abort_leftovers(s3store, "topics/t/") == 1
    assert list(s3store.uploads("")) == []


def test_sweeping_leaves_uploads_elsewhere_alone(s3store):
    other = s3store.begin("topics/other/k", {})
    s3store.begin("topics/t/k", {})
    assert abort_leftovers(s3store, "topics/t/") == 1
    assert list(s3store.uploads("")) == [other]


def test_of_eight_that_write_one_key_one_wins_and_its_bytes_stay(s3store):
    outcomes = []

    def write(n):
        try:
            s3store.put("k", b"%d" % n, Create())
            outcomes.append(n)
        except RefusedError:
            pass

    for _ in range(5):
        outcomes.clear()
        threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(outcomes) == 1
        assert s3store.get("k") == b"%d" % outcomes[0]
        s3store.delete("k")


@pytest.mark.parametrize(("memory", "most_parts"), [(1, 1), (2, 2), (6, 2), (16, 4)])
def test_encoding_waits_once_enough_bytes_are_in_flight(s3store, memory, most_parts):
    held, most = [], []
    gate = threading.Event()

    def part(upload, number, body):
        held.append(len(body))
        most.append(sum(held))
        gate.wait(10)
        stored = s3store.part(upload, number, body)
        held.remove(len(body))
        return stored

    uploads = Uploads(Faulty(s3store, part=part), Owner("x", 5), PART, memory=memory * PART)
    futures = []

    def encode():
        writer = uploads.open("topics/t/k", 0)
        for _ in range(6):
            writer.write(bytes(PART))
        futures.append(writer.close({}))

    encoder = threading.Thread(target=encode)
    encoder.start()
    while len(held) < most_parts:
        time.sleep(0.01)
    assert not futures
    gate.set()
    encoder.join()
    wait(futures)
    assert futures[0].result().size == 6 * PART
    assert max(most) == most_parts * PART


def test_replacing_what_is_gone_is_refused_and_a_range_may_be_open(s3store):
    with pytest.raises(RefusedError):
        s3store.put("gone", b"x", Replace('"00000000000000000000000000000000"'))
    s3store.put("k", b"0123456789", Create())
    assert s3store.get("k", 7) == b"789"
    assert s3store.get("k", None, 3) == b"012"
    assert s3store.get("k", 4, 4) == b""
    assert s3store.get("k", 10, 20) == b""
    with pytest.raises(NotFoundError):
        s3store.get("gone", 1, 2)


def test_the_probe_finds_out_whether_every_condition_holds(s3store):
    assert refuses_overwrites(s3store, "probe/w")
    for verb, forget in (("put", 2), ("complete", 2)):

        def ignoring(*args, verb=verb, forget=forget):
            conditions = list(args)
            conditions[forget] = Anything()
            return getattr(s3store, verb)(*conditions)

        assert not refuses_overwrites(Faulty(s3store, **{verb: ignoring}), "probe/w")
    assert list(s3store.list("")) == []
    assert list(s3store.uploads("")) == []
