"""Between sink and S3 server everything goes wrong that can: each record is in one committed object, once."""

import functools
import os
import random
import threading
import zlib
from dataclasses import replace

import numpy as np
import pytest

from audit import audit
from connecting import Rec
from faulty_s3 import FAULTS, at_random, faulty_s3, in_turn, nothing, once_per_kind
from penstock import crashpoints, stores
from penstock.errors import StoreUnavailable
from penstock.loop import keep_running
from penstock.store.retry import RetryPolicy
from penstock.store.s3 import store

pytestmark = pytest.mark.stack

MIB = 1024 * 1024
# Files of seven: an object of two parts, and two of one PUT.
VALUES = [bytes([65 + n]) * 900_000 for n in range(7)] + [f"value{n}".encode() for n in range(14)]
WRITES = {"append", "put", "part", "begin", "complete"}
READS = {"list", "uploads", "get"}
HIT = {
    "409": {"append", "put", "complete"},
    "412": {"append", "put", "complete"},
    "200.error": {"complete"},
    "drop.amid": {"append", "put", "part", "complete"},
    "garbled": {"begin", "complete", "list", "uploads"},
    "truncated": {"begin", "complete", "list", "uploads"},
}
IS_FULL = bool(os.environ.get("PENSTOCK_FULL"))
CHOSEN = FAULTS if IS_FULL else ("drop.after", "half.open", "garbled", "403")
SLOW = {"half.open": ("append", "put", "complete"), "slow": ("append", "put", "complete", "part")}


def ids(body):
    return np.array([zlib.crc32(line) for line in body.split(b"\n") if line], np.int64)


class CrashError(BaseException):
    """Nothing catches it, so that it ends the run where it is."""


class Impatient(threading.Event):
    """Pauses are over at once, and are remembered."""

    def __init__(self):
        super().__init__()
        self.pauses = []

    def wait(self, timeout=None):
        self.pauses.append(timeout)
        return self.is_set()


@pytest.fixture(scope="module")
def big(make_topic, write_records):
    topic = make_topic()
    write_records(topic, [Rec(value) for value in VALUES])
    return topic


@pytest.fixture
def properties(describe, big):
    def build(proxy, **changes):
        raw = {"format.class": "bytes", "value.converter": "bytes", "format.bytearray.extension": ".txt"}
        quick = {"s3.retry.backoff.ms": "1", "s3.part.size": str(5 * MIB), "flush.size": "7"}
        changed = {name.replace("_", "."): value for name, value in changes.items()}
        unfit = {"value.converter.schemas.enable": None}
        return describe(big, {**raw, **quick, "store.url": proxy.url, **changed, **unfit})

    return build


@pytest.fixture
def look(stack, bucket):
    """What is in the bucket, past the proxy."""
    options = stores.StoreOptions(
        bucket,
        stack.region,
        stack.store_url,
        access_key_id=stack.access_key_id,
        secret_access_key=stack.secret_access_key,
    )
    return lambda: audit(store(options), bucket, ids(b"\n".join(VALUES)), ids)


@pytest.fixture
def timeout(monkeypatch):
    """The sink waits for an answer this long."""
    sink = stores.of_sink

    def wait(seconds):
        monkeypatch.setattr(
            stores, "of_sink", lambda config, bucket=None: replace(sink(config, bucket), timeout_seconds=seconds)
        )

    return wait


@pytest.mark.parametrize("fault", CHOSEN)
def test_every_kind_of_request_suffers_a_fault_once(fault, stack, properties, opened, look, timeout):
    if fault == "half.open":
        timeout(0.5)
    with faulty_s3(stack.store_url, once_per_kind(fault, SLOW.get(fault))) as proxy:
        with opened(properties(proxy)) as running:
            keep_running(running, threading.Event(), until_done=True)
            assert running.engine.faults == {}
        hit = {kind for kind, _ in proxy.happened}
        assert hit >= HIT.get(fault, set(SLOW.get(fault, WRITES | READS - {"get"})))
        proxy.choose = nothing
        with opened(properties(proxy)):  # the next start ends uploads whose beginning nobody heard of
            pass
    assert look().is_clean, look()


@pytest.mark.parametrize("fault", ["late", "drop.after", "500.after", "half.open"] if IS_FULL else ["late"])
@pytest.mark.parametrize("kind", ["append", "put", "complete"])
def test_a_write_whose_outcome_stays_unknown_is_looked_at_before_anything_is_done(
    kind, fault, stack, properties, opened, look, timeout
):
    """Without retries each unheard answer reaches those who must find out what happened."""
    if fault == "half.open":
        timeout(0.5)
    with faulty_s3(stack.store_url) as proxy, opened(properties(proxy, s3_part_retries="0")) as running:
        proxy.choose = in_turn(kind, fault)
        keep_running(running, Impatient(), until_done=True)
        assert running.engine.faults == {}
        assert proxy.happened == {(kind, fault): 1}
    assert look().is_clean, look()


@pytest.mark.parametrize("answer", ["404", "412"])
def test_a_completion_asked_twice_because_nobody_heard_the_answer(answer, stack, properties, opened, look):
    """The real server says NoSuchUpload to the second one; others (aws-sdk-java-v2 #6580) say 412."""
    second = None if answer == "404" else "412"
    with faulty_s3(stack.store_url) as proxy, opened(properties(proxy)) as running:
        proxy.choose = in_turn("complete", "drop.after", second)
        keep_running(running, threading.Event(), until_done=True)
        assert running.engine.faults == {}
    assert look().is_clean, look()


def test_retries_wait_as_documented(stack, properties, opened, look, monkeypatch):
    slept = []
    policy = functools.partial(RetryPolicy, sleep=slept.append, jitter=lambda: 1.0)
    monkeypatch.setattr("penstock.store.s3.RetryPolicy", policy)
    with faulty_s3(stack.store_url) as proxy, opened(properties(proxy, s3_retry_backoff_ms="200")) as running:
        proxy.choose = in_turn("append", "503", "drop.before", "500")
        keep_running(running, threading.Event(), until_done=True)
        assert slept == [0.2, 0.4, 0.8]
        slept.clear()
        proxy.choose = in_turn("list", *["503"] * 4)
        with pytest.raises(StoreUnavailable, match=r"SlowDown \(503\)"):
            opened(properties(proxy, s3_retry_backoff_ms="200"))
        assert slept == [0.2, 0.4, 0.8]
    assert look().is_clean, look()


def test_an_outage_longer_than_all_retries_is_waited_for_with_growing_pauses(stack, properties, opened, look):
    stop = Impatient()
    with faulty_s3(stack.store_url) as proxy, opened(properties(proxy, s3_part_retries="0")) as running:
        proxy.choose = in_turn("put", *["503"] * 30)
        keep_running(running, stop, until_done=True)
        assert running.engine.faults == {}
    assert stop.pauses[:6] == [1, 2, 4, 8, 16, 30]
    assert set(stop.pauses[6:]) <= {30}
    assert look().is_clean, look()


@pytest.mark.parametrize("seed", range(20) if IS_FULL else [1])
def test_a_day_of_faults_and_crashes_leaves_no_upload_behind(seed, stack, properties, opened, look, monkeypatch):
    """Every "hour" begins with a start and ends with a crash; a fifth of all requests goes wrong."""
    monkeypatch.setattr("penstock.store.s3.RetryPolicy", functools.partial(RetryPolicy, sleep=lambda _: None))
    faults = [fault for fault in FAULTS if fault not in ("half.open", "slow")]
    dice = random.Random(seed)
    crashes = 0
    with faulty_s3(stack.store_url, at_random(0.2, seed, faults)) as proxy:
        retries = {"s3_part_retries": "12"}
        for _ in range(24 if IS_FULL else 5):
            left = dice.randint(5, 15)

            def crash(_point):
                nonlocal left
                left -= 1
                if left == 0:
                    raise CrashError

            with crashpoints.watched(crash):
                try:
                    with opened(properties(proxy, **retries)) as running:
                        keep_running(running, Impatient(), until_done=True)
                except CrashError:
                    crashes += 1
        with opened(properties(proxy, **retries)) as running:
            keep_running(running, Impatient(), until_done=True)
        assert proxy.happened.total() > 20
        proxy.choose = nothing
        with opened(properties(proxy)):
            pass
    assert crashes
    assert look().is_clean, look()


def test_leftovers_are_aborted_every_hour_while_it_runs(stack, properties, opened, look, s3, bucket, big):
    with faulty_s3(stack.store_url) as proxy, opened(properties(proxy)) as running:
        left = s3.create_multipart_upload(Bucket=bucket, Key=f"topics/{big}/partition=0/nobody")
        assert left["UploadId"]
        running._swept -= 3600
        keep_running(running, threading.Event(), until_done=True)
        assert look().is_clean, look()
