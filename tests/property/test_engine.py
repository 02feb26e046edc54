"""The real engine on the real state log, against everything that may happen to it: a model of Kafka and of the job.

Crashes come before or after any write, of the log or of an object; instances start and go on in any order, also while
another one's job runs; records, partitions, outages and changes of the configuration come in between.
"""

import itertools
import random
from types import SimpleNamespace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from memory_store import MemoryStore

from penstock.engine import Cycle, Engine
from penstock.errors import JobFailed, TakenOverError
from penstock.loading import load
from penstock.model import Commit, CommittedObject, Fault, Receipt, TopicPartition
from penstock.parts import planner_rules, scheduled
from penstock.statelog.entries import decode
from penstock.statelog.log import StateLog, Writer
from penstock.statelog.names import Names

NAMES = Names("_penstock/x/")
CONFIGS = st.fixed_dictionaries(
    {"flush.size": st.sampled_from(["1", "2", "3", "5"])}, optional={"max.latency.ms": st.just("40")}
)


class CrashError(BaseException):
    """The process is gone. Nothing catches it."""


class Fuse:
    """`left`: so many more steps are made before the crash; None for no crash."""

    def __init__(self):
        self.left = None

    def step(self):
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise CrashError


class BurningStore(MemoryStore):
    """A process may end before a write, or after it before its answer is heard."""

    def __init__(self, fuse):
        super().__init__()
        self.fuse = fuse

    def put(self, key, body, precondition, metadata=None):
        self.fuse.step()
        etag = super().put(key, body, precondition, metadata)
        self.fuse.step()
        return etag


class World:
    """What outlives every process: the log, the objects (start and end by key), Kafka, the clock."""

    def __init__(self):
        self.fuse = Fuse()
        self.store = BurningStore(self.fuse)
        self.objects = {}
        self.ends = {TopicPartition("t", 0): 0}
        self.now_ms = 1_700_000_000_000
        self.mirrored = {}
        self.trouble = None
        self.meanwhile = None

    def clock_ms(self):
        self.now_ms += 1
        return self.now_ms

    def log_ends(self, tps):
        return {tp: self.ends[tp] for tp in tps}

    def mirror(self, _group, offsets):
        self.mirrored.update(offsets)

    def job(self, plan, config, _seq):
        """A pure function of plan and configuration, but for where it is cut off."""
        trouble, self.trouble = self.trouble, None
        if trouble == "no job":
            msg = "Spark is gone"
            raise JobFailed(msg)
        # Ranges are worked on in any order, and another instance may do anything meanwhile.
        ranges = random.Random(plan.now_ms).sample(plan.ranges, len(plan.ranges))
        receipts = []
        for number, each in enumerate(ranges):
            outage = trouble == "outage" and number == 0
            receipts.append(self.range(each, config.flush_size, outage=outage))
            if self.meanwhile is not None:
                act, self.meanwhile = self.meanwhile, None
                act()
        return receipts

    def range(self, planned, flush_size, *, outage):
        cuts = list(range(planned.start + flush_size, planned.end + 1, flush_size))
        position = cuts[-1] if cuts else planned.start
        if planned.closing is not None and position < planned.end:
            cuts.append(planned.end)
        committed = []
        for start, end in itertools.pairwise([planned.start, *cuts]):
            key = f"{planned.tp}+{start}"
            self.fuse.step()
            # An object under this key is there already only if an earlier run of the same plan wrote it.
            assert self.objects.setdefault(key, (start, end)) == (start, end)
            self.fuse.step()
            reason = "flush.size" if end - start == flush_size else planned.closing
            size = end - start
            committed.append(CommittedObject(key, start, end, size, size, "e", "c", "p", "", 0, 0, reason))
        if outage:  # what was uploaded behind the failure is there, but nobody says so
            del committed[1:]
        position = committed[-1].end if committed else planned.start
        fault = Fault("the store is away", passing=True) if outage else None
        commit = Commit(planned.tp, position, tuple(committed))
        return Receipt(
            commit, position if outage else planned.end, 0 if outage else planned.end - position, None, fault
        )

    def entries(self):
        keys = sorted(key for key in self.store.objects if key.startswith(NAMES.entries))
        return [decode(self.store.objects[key][0], key) for key in keys]


def instance(world, number, given):
    """A process that starts with these properties: the log is taken over, new topic-partitions begin at 0."""
    properties = {
        "name": "x",
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": "t",
        "s3.bucket.name": "b",
        "s3.region": "us-east-1",
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "format.class": "bytes",
        "value.converter": "bytes",
        **given,
    }
    config, _ = load(properties, {"bootstrap.servers": "127.0.0.1:9"})
    log = StateLog("x", world.store, NAMES, Writer(str(number), "host", world.clock_ms), 3)
    log.take_over()
    kafka = SimpleNamespace(log_ends=world.log_ends, mirror=world.mirror)
    return Engine(
        config, planner_rules(config), "connect-x", log, kafka, world.job, world.clock_ms, scheduled=scheduled(config)
    )


class Machine(RuleBasedStateMachine):
    """`engines`: instances that live; `newest`: the one that holds the log."""

    @initialize(given=CONFIGS)
    def begin(self, given):
        self.world, self.engines, self.newest, self.numbers = World(), [], None, itertools.count(1)
        self.start(given)

    def start(self, given):
        engine = instance(self.world, next(self.numbers), given)
        self.engines.append(engine)
        self.newest = engine

    def discover(self, engine):
        new = self.world.ends.keys() - engine.log.head.positions.keys()
        if new:
            engine.begin({tp: Commit(tp, 0) for tp in sorted(new)})

    def cycle(self, engine, **how):
        """One round of an instance, as its loop does it; a crash or a takeover ends the instance."""
        before = len(self.world.entries())
        newest = self.newest
        try:
            self.discover(engine)
            cycle = engine.cycle(dict(self.world.ends), **how)
            if cycle is not None:
                engine.mirror(cycle)
        except CrashError:
            self.engines.remove(engine)
            return None
        except TakenOverError:
            assert engine is not self.newest
            self.engines.remove(engine)
            return None
        except JobFailed:
            return None
        finally:
            self.world.fuse.left = self.world.trouble = self.world.meanwhile = None
        if engine is not newest:
            assert cycle is None
            assert len(self.world.entries()) == before
        return cycle

    @rule(partition=st.integers(0, 2), count=st.integers(1, 12))
    def produce(self, partition, count):
        tp = TopicPartition("t", partition)
        self.world.ends[tp] = self.world.ends.get(tp, 0) + count

    @rule(ms=st.sampled_from([1, 30, 100]))
    def time_passes(self, ms):
        self.world.now_ms += ms

    @rule(given=CONFIGS)
    def another_instance(self, given):
        self.start(given)

    @precondition(lambda self: self.engines)
    @rule(data=st.data(), thorough=st.booleans(), forced=st.booleans())
    def one_cycle(self, data, thorough, forced):
        self.cycle(data.draw(st.sampled_from(self.engines)), thorough=thorough, forced=forced)

    @precondition(lambda self: self.engines)
    @rule(data=st.data(), steps=st.integers(0, 25), forced=st.booleans())
    def crash(self, data, steps, forced):
        engine = data.draw(st.sampled_from(self.engines))
        self.world.fuse.left = steps
        self.cycle(engine, forced=forced)

    @precondition(lambda self: self.engines)
    @rule(trouble=st.sampled_from(["no job", "outage"]), forced=st.booleans())
    def trouble(self, trouble, forced):
        self.world.trouble = trouble
        self.cycle(self.engines[-1], forced=forced)

    @precondition(lambda self: self.engines)
    @rule(given=CONFIGS, cycles=st.integers(0, 3), forced=st.booleans())
    def taken_over_while_the_job_runs(self, given, cycles, forced):
        older = self.engines[-1]

        def meanwhile():
            self.start(given)
            for _ in range(cycles):
                self.cycle(self.engines[-1], thorough=True)

        self.world.meanwhile = meanwhile
        self.cycle(older, forced=forced)

    @invariant()
    def commits_are_consecutive_and_each_record_is_in_one_object(self):
        if not hasattr(self, "world"):
            return
        positions, holder, seen = {}, None, set()
        for entry in self.world.entries():
            holder = entry.writer if entry.takeover is not None else holder
            assert entry.writer == holder
            for commit in entry.commits:
                at = positions.get(commit.tp)
                assert (at is None) == (not commit.objects)
                for each in commit.objects:
                    assert each.start == at < each.end
                    assert self.world.objects[each.key] == (each.start, each.end)
                    assert each.key not in seen
                    seen.add(each.key)
                    at = each.end
                assert commit.position == (at or 0)
                assert commit.position <= self.world.ends[commit.tp]
                positions[commit.tp] = commit.position
        assert all(offset <= positions[tp] for tp, offset in self.world.mirrored.items())
        self.committed, self.positions = seen, positions

    def teardown(self):
        """Whatever happened: a last instance commits everything, and leaves no object uncommitted."""
        if not hasattr(self, "world"):
            return
        self.start({"flush.size": "4"})
        for _ in range(4 * sum(self.world.ends.values()) + 10):
            if not isinstance(self.cycle(self.newest, forced=True), Cycle):
                break
        self.commits_are_consecutive_and_each_record_is_in_one_object()
        assert self.positions == self.world.ends
        assert self.committed == set(self.world.objects)


TestEngine = Machine.TestCase
TestEngine.settings = settings(max_examples=150, stateful_step_count=30)
