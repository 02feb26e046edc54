"""Instances of one connector at once, request by request: the real engine, state log, cutter and uploads on one store.

Each instance runs in a thread of its own, but only one at a time, and each stops before every request to the store.
Hypothesis chooses who makes the next one, and what becomes of it: so every order of the steps can come up, long pauses
(SIGSTOP) and deaths included.
"""

import itertools
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st
from memory_store import MemoryStore

from laid_out import TP, records
from penstock import parts
from penstock.engine import Engine
from penstock.errors import StoreUnavailable, TakenOverError
from penstock.loading import load
from penstock.model import Commit, Plan, PlannedRange
from penstock.rangewriter import Pipeline, RangeWriter
from penstock.statelog.entries import decode
from penstock.statelog.log import StateLog, Writer
from penstock.statelog.names import Names
from penstock.store.base import OutcomeUnknownError
from penstock.store.upload import Owner, Uploads

NAMES = Names("_penstock/x/")
VALUES = [b"value%d" % n for n in range(9)]
ACTS = st.sampled_from(["go"] * 8 + ["die before", "die after", "lost", "unheard"])
# Who goes on, by how many requests, and what becomes of the last of them.
STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9), ACTS), max_size=40)
SIZES = st.tuples(*[st.integers(1, 5)] * 4)
HOUR_MS = 3_600_000
BY_CLOCK = {"partitioner.class": "hourly", "locale": "en", "timezone": "UTC", "timestamp.extractor": "Wallclock"}
# What asks a clock finds it an hour on at each look; a plan that is run again must not see that.
RULES = st.sampled_from(
    [
        {},
        BY_CLOCK,
        {**BY_CLOCK, "rotate.interval.ms": str(HOUR_MS)},
        {**BY_CLOCK, "rotate.schedule.interval.ms": str(2 * HOUR_MS)},
    ]
)


class DeadError(BaseException):
    """The process is gone. Nothing catches it."""


@dataclass
class Turn:
    """Lets one instance go on until its next request, and waits for it."""

    act: str = "go"
    mine: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    done: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


@dataclass
class SteppedStore:
    """The store as one instance sees it: each request waits for its turn."""

    store: MemoryStore
    turn: Turn

    def __getattr__(self, verb):
        def request(*given, **named):
            self.turn.done.release()
            self.turn.mine.acquire()
            act = self.turn.act
            if act == "die before":
                raise DeadError
            if verb == "put" and act == "lost":
                raise OutcomeUnknownError(verb)
            answer = getattr(self.store, verb)(*given, **named)
            if act == "die after":
                raise DeadError
            if verb == "put" and act == "unheard":
                raise OutcomeUnknownError(verb)
            return list(answer) if verb == "list" else answer

        return request


class AtOnce:
    """A pool whose work is done by whoever submits it."""

    def submit(self, work):
        done = Future()
        try:
            done.set_result(work())
        except Exception as error:  # noqa: BLE001 - as a pool does it
            done.set_exception(error)
        return done


class Instance:
    """A process: takes over, then writes everything there is. `end`: how it ended, None while it goes on."""

    def __init__(self, store, number, flush_size, rules):
        self.turn, self.end, self.error = Turn(), None, None
        self.id = f"writer{number}"
        self.store, self.properties = SteppedStore(store, self.turn), properties(flush_size, rules)
        self.clock_ms = lambda: next(store.ticks)
        self.thread = threading.Thread(target=self._live, daemon=True)
        self.thread.start()
        self.turn.done.acquire()  # it stands before its first request

    def step(self, act="go"):
        """Make one request. Whether there was one to make."""
        if self.end is not None:
            return False
        self.turn.act = act
        self.turn.mine.release()
        self.turn.done.acquire()
        return True

    def _live(self):
        try:
            self._work()
            self.end = "done"
        except DeadError:
            self.end = "dead"
        except TakenOverError as error:
            self.end, self.error = "taken over", str(error)
        except StoreUnavailable:  # at the start, where nobody waits for the store
            self.end = "dead"
        except BaseException as error:  # noqa: BLE001 - the test shows it
            self.end, self.error = "broken", repr(error)
        finally:
            self.turn.done.release()

    def _work(self):
        config, _ = load(self.properties, {"bootstrap.servers": "127.0.0.1:9"})
        log = StateLog("x", self.store, NAMES, Writer(self.id, f"host-{self.id}", self.clock_ms), 2)
        log.take_over()
        rules, kafka = parts.planner_rules(config), SimpleNamespace(mirror=lambda *_: None)
        engine = Engine(
            config, rules, "connect-x", log, kafka, self._job, self.clock_ms, scheduled=parts.scheduled(config)
        )
        while True:
            try:
                if TP not in log.head.positions:
                    engine.begin({TP: Commit(TP, 0)})
                if engine.cycle({TP: len(VALUES)}, forced=True) is None:
                    return
            except StoreUnavailable:
                continue

    def _job(self, plan, config, seq):
        uploads = Uploads(self.store, Owner("x", seq), 5 << 20, pool=AtOnce())
        pipeline = Pipeline(
            parts.sieve(config), parts.file_format(config), parts.layout(config), parts.cut_rules(config), uploads.open
        )
        return [self._range(each, pipeline, plan) for each in plan.ranges]

    def _range(self, planned: PlannedRange, pipeline: Pipeline, plan: Plan):
        writer = RangeWriter(planned, pipeline, plan.now_ms)
        writer.write(records(VALUES[planned.start : planned.end], b"\n", planned.start))
        return writer.finish()


class TimedStore(MemoryStore):
    """`ticks`: the one clock of all instances."""

    def __init__(self):
        super().__init__()
        self.ticks = itertools.count(1_700_000_000_000, HOUR_MS)


def properties(flush_size, rules):
    return {
        "name": "x",
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": "t",
        "s3.bucket.name": "b",
        "s3.region": "us-east-1",
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "format.class": "bytes",
        "value.converter": "bytes",
        "flush.size": str(flush_size),
        **rules,
    }


def check(store):
    """One chain of one writer at a time, in which each record is in one object, and every object is in the chain."""
    at, holder, committed = 0, None, {}
    keys = sorted(key for key in store.objects if key.startswith(NAMES.entries))
    for seq, key in enumerate(keys, 1):
        entry = decode(store.objects[key][0], key)
        assert entry.seq == seq
        holder = entry.writer if entry.takeover is not None else holder
        assert entry.writer == holder
        for each in (each for commit in entry.commits for each in commit.objects):
            assert (each.start, each.key in committed) == (at, False)
            assert store.objects[each.key][0] == b"".join(value + b"\n" for value in VALUES[each.start : each.end])
            committed[each.key], at = each, each.end
    return at, {key for key in store.objects if key.startswith("topics/")} - committed.keys()


@settings(max_examples=150)
@given(STEPS, SIZES, RULES)
def test_in_every_order_of_their_requests_one_wins_and_each_record_is_in_one_object(steps, sizes, rules):
    store, living, ended = TimedStore(), {}, []
    singly = ((who, step) for who, count, act in steps for step in ["go"] * (count - 1) + [act])
    for who, act in singly:
        if who not in living:
            living[who] = Instance(store, len(ended) + len(living), sizes[who], rules)
        living[who].step(act)
        if living[who].end is not None:
            ended.append(living.pop(who))
        check(store)
    for instance in living.values():  # those that were paused go on, one after the other
        while instance.step():
            pass
        ended.append(instance)
    last = Instance(store, "last", sizes[3], rules)
    while last.step():
        pass
    for instance in [*ended, last]:
        instance.thread.join()
        assert instance.end != "broken", instance.error
        if instance.end == "taken over":
            assert "was taken over by another instance on host host-writer" in instance.error
    assert last.end == "done"
    assert check(store) == (len(VALUES), set())
