"""An older instance finds out that it was replaced, although it has nothing to append: the real log on one store."""

import threading
import time
from types import SimpleNamespace

import pytest
from memory_store import MemoryStore

from penstock import holding
from penstock.errors import JobFailed, KafkaUnavailable, StoreUnavailable, TakenOverError
from penstock.holding import Held, Watched
from penstock.loop import keep_running
from penstock.statelog.log import StateLog, Writer
from penstock.statelog.names import Names

SAYS = "connector `x` was taken over by another instance on host newer"
CONFIG = SimpleNamespace(cycle_interval_ms=1000, rotation=SimpleNamespace(flush_on_stop=False))


def instance(store, host):
    log = StateLog("x", store, Names("_penstock/x/"), Writer(host, host, lambda: 1_700_000_000_000))
    log.take_over()
    return log


class Stop:
    """An event whose waits end at once; at the third one a newer instance starts. It is never set."""

    def __init__(self, store):
        self.waits, self.store = 0, store

    def is_set(self):
        return False

    def wait(self, _seconds):
        self.waits += 1
        if self.waits == 3:
            instance(self.store, "newer")


class Running:
    """A connector that holds a real log; its cycles find nothing to do, or Kafka away."""

    config, flushes, engine = CONFIG, (), SimpleNamespace(retry_faults=lambda: None)

    def __init__(self, log, trouble):
        self.held, self.trouble = Held(log, 0.0), trouble

    def discover(self):
        if self.trouble is not None:
            raise self.trouble

    def ends(self):
        return {}

    def lag(self, _ends=None):
        return 0

    def cycle(self, _ends, **_how):
        return None


@pytest.mark.parametrize("trouble", [None, KafkaUnavailable("the broker is away")])
def test_idle_or_waiting_for_kafka_an_older_instance_stops_and_says_who(trouble):
    store = MemoryStore()
    stop = Stop(store)
    log = instance(store, "older")
    with pytest.raises(TakenOverError, match=SAYS):
        keep_running(Running(log, trouble), stop, until_done=False)
    assert stop.waits == 3
    assert log.head.seq == 1  # it wrote nothing to find that out


def test_a_store_that_is_away_is_waited_for_like_anything_else(caplog):
    store = MemoryStore()
    stop = Stop(store)
    running = Running(instance(store, "older"), None)
    running.held.check()
    store.get_faults.extend(["down", "down"])
    with pytest.raises(TakenOverError, match=SAYS):
        keep_running(running, stop, until_done=False)
    assert sum(message.startswith("waiting seconds=") for message in caplog.messages) == 2


def test_the_log_is_looked_at_only_where_nothing_was_appended_for_a_while(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(holding, "time", SimpleNamespace(monotonic=lambda: now[0]))
    store = MemoryStore()
    log = instance(store, "x")
    held, counts = Held(log, 10.0), []
    for passed in (0, 4, 4, 4, 9, 1):
        now[0] += passed
        before = store.requests
        held.check()
        counts.append(store.requests - before)
    assert counts == [0, 0, 0, 1, 0, 1]
    log.append()
    before = store.requests
    now[0] += 60
    held.check()  # the append has just told
    assert store.requests == before


class Hanging:
    """A job that never ends by itself."""

    def __init__(self):
        self.began, self.cancelled = threading.Event(), threading.Event()

    def __call__(self, _plan, _config, _seq):
        self.began.set()
        assert self.cancelled.wait(60)
        msg = "the Spark job failed: cancelled"
        raise JobFailed(msg)

    def cancel(self):
        self.cancelled.set()


def test_a_job_that_hangs_is_ended_when_a_newer_instance_took_over():
    store = MemoryStore()
    job = Hanging()
    watched = Watched(job, instance(store, "older"), 0.01)

    store.get_faults.append("down")  # a look that fails is made again

    def meanwhile():
        job.began.wait(60)
        while store.get_faults:
            time.sleep(0.01)
        instance(store, "newer")

    threading.Thread(target=meanwhile).start()
    with pytest.raises(TakenOverError, match=SAYS):
        watched(None, None, 1)


def test_a_job_that_ends_by_itself_ends_its_watch():
    store = MemoryStore()
    log = instance(store, "x")

    def failing(*_):
        msg = "the Spark job failed"
        raise JobFailed(msg)

    with pytest.raises(JobFailed):
        Watched(failing, log, 0.01)(None, None, 1)
    assert Watched(lambda *_: ["receipt"], log, 0.01)(None, None, 1) == ["receipt"]
    deadline = time.monotonic() + 60
    while any(thread.name == "held" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_look_says_when_the_store_does_not():
    store = MemoryStore()
    log = instance(store, "x")
    store.get_faults.append("down")
    with pytest.raises(StoreUnavailable):
        log.check_held()
    log.check_held()
