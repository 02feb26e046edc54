"""Waiting and going on; the pauses are those of an event that is never set, so nothing really waits."""

import pytest

from penstock.engine import Cycle
from penstock.errors import JobFailed, KafkaUnavailable, StoreUnavailable, TakenOverError
from penstock.loop import keep_running, open_patiently
from penstock.model import Commit, CommittedObject, Fault, Plan, TopicPartition

TP = TopicPartition("t", 0)
OBJECT = CommittedObject("k", 0, 3, 3, 30, "e", "c", "partition=0", "", 1, 2, "flush.size")
WROTE = Cycle(Plan((), 0), (Commit(TP, 3, (OBJECT,)),), {})
OUTAGE = Cycle(Plan((), 0), (), {TP: Fault("the registry is away", passing=True)})


class Stop:
    """An event whose waits are counted and end at once; set after the last expected one."""

    def __init__(self, waits=1_000):
        self.waited, self.left = [], waits

    def is_set(self):
        return len(self.waited) >= self.left

    def wait(self, seconds):
        self.waited.append(seconds)


class Running:
    """Plays the outcomes of cycles, one after the other: a Cycle, None, or an error."""

    class config:  # noqa: N801
        cycle_interval_ms = 1000

        class rotation:  # noqa: N801
            flush_on_stop = False

    flushes = ()

    class held:  # noqa: N801
        @staticmethod
        def check():
            pass

    class engine:  # noqa: N801
        @staticmethod
        def retry_faults():
            pass

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)

    def discover(self):
        pass

    def ends(self):
        return {TP: 3}

    def lag(self, _ends=None):
        return 0

    def cycle(self, _ends, **_options):
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def test_until_done_ends_when_nothing_is_left_and_counts_what_was_committed():
    done = keep_running(Running(WROTE, WROTE, None), Stop(), until_done=True)
    assert (done.records, done.objects, done.bytes) == (6, 2, 60)


def test_an_outage_is_waited_for_with_doubling_pauses_and_then_forgotten(caplog):
    stop = Stop()
    away = [KafkaUnavailable("the broker is away")] * 7
    keep_running(
        Running(*away, WROTE, StoreUnavailable("the store is away"), OUTAGE, WROTE, None), stop, until_done=True
    )
    assert stop.waited == [1, 2, 4, 8, 16, 30, 30, 1, 2]
    assert "waiting seconds=1 reason=the broker is away" in caplog.messages
    assert "waiting seconds=2 reason=the registry is away" in caplog.messages


def test_idle_it_looks_again_after_the_interval_until_it_is_stopped():
    stop = Stop(waits=3)
    keep_running(Running(None, None, None), stop, until_done=False)
    assert stop.waited == [1, 1, 1]


@pytest.mark.parametrize("error", [TakenOverError("who"), KafkaUnavailable("no rights", transient=False)])
def test_what_waiting_cannot_mend_ends_the_run(error):
    with pytest.raises(type(error)):
        keep_running(Running(error), Stop(), until_done=False)


def test_a_job_that_fails_again_and_again_ends_the_run():
    with pytest.raises(JobFailed):
        keep_running(Running(*[JobFailed("it broke")] * 5), Stop(), until_done=False)
    done = keep_running(
        Running(*[JobFailed("it broke")] * 4, WROTE, *[JobFailed("it")] * 4, None), Stop(), until_done=True
    )
    assert done.objects == 1


def test_it_tells_what_it_is_doing_what_it_committed_and_what_is_to_go():
    told = []
    running = Running(WROTE, KafkaUnavailable("the broker is away"), None)
    keep_running(running, Stop(), until_done=True, tell=told.append)
    assert [(each.doing, each.committed.records) for each in told] == [
        ("looking for new records", 0),
        ("looking for new records", 3),
        ("waiting: the broker is away", 3),
        ("looking for new records", 3),
    ]
    assert {each.lag for each in told} == {0}


def test_a_start_amid_an_outage_waits_for_its_end():
    stop, outcomes = Stop(), [KafkaUnavailable("away"), StoreUnavailable("away"), "open"]

    def opening():
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    assert open_patiently(opening, stop) == "open"
    assert stop.waited == [1, 2]


@pytest.mark.parametrize(
    ("error", "waits"), [(StoreUnavailable("no such bucket", transient=False), 0), (KafkaUnavailable("away"), 2)]
)
def test_a_start_ends_at_what_waiting_cannot_mend_and_when_it_is_stopped(error, waits):
    def opening():
        raise error

    stop = Stop(waits=2)
    with pytest.raises(type(error)):
        open_patiently(opening, stop)
    assert len(stop.waited) == waits
