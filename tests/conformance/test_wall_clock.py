"""What the clock decides: arrival times, schedules, latency targets and flushes. Every wait is for an outcome."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import pytest

from connecting import Rec, stored
from penstock import Sink
from penstock.loop import keep_running
from penstock.statelog.history import entries

pytestmark = pytest.mark.stack

WALL = {"partitioner.class": "hourly", "locale": "en-US", "timezone": "UTC", "timestamp.extractor": "Wallclock"}
OLD = 1_000_000_000_000  # 2001


@contextmanager
def going(running):
    """The connector's loop in a thread."""
    stop = threading.Event()
    thread = threading.Thread(target=keep_running, args=(running, stop), kwargs={"until_done": False})
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)
        assert not thread.is_alive()


def eventually(look):
    """The first true answer; pytest's time limit ends what never comes."""
    while not (found := look()):
        time.sleep(0.05)
    return found


def reasons(running):
    """Why each committed object was closed, by the state log."""
    log = running.engine.log
    return [
        each.reason for entry in entries(log.store, log.names) for commit in entry.commits for each in commit.objects
    ]


@pytest.fixture
def live(opened, describe, topic):
    """A running connector: `with live(properties) as running`."""

    @contextmanager
    def start(properties):
        with opened(describe(topic, {"cycle.interval.ms": "50", **properties})) as running, going(running):
            yield running

    return start


def numbers(s3, bucket, topic):
    found = stored(s3, bucket, topic)
    return sorted([row["n"] for row in rows] for rows in found.values())


def test_the_hour_is_that_of_the_arrival_not_of_the_timestamp(connect):
    before = time.gmtime()
    outcome = connect([Rec({"n": 0}, OLD)], {"flush.size": "1", **WALL})
    after = time.gmtime()
    hours = {time.strftime("year=%Y/month=%m/day=%d/hour=%H", each) for each in (before, after)}
    (key,) = outcome.objects
    assert key.removesuffix("/0+0000000000") in hours


def test_an_interval_of_the_clock_is_counted_from_the_first_arrival_and_needs_a_later_record(
    live, topic, s3, bucket, write_records
):
    properties = {**WALL, "rotate.interval.ms": "700", "rotate.file.on.partition.change": "false"}
    write_records(topic, [Rec({"n": 0}, OLD), Rec({"n": 1}, OLD)])
    with live(properties) as running:
        arrived = eventually(lambda: [seen for seen in running.engine.arrivals.values() if seen])
        assert numbers(s3, bucket, topic) == []
        eventually(lambda: running.engine.clock_ms() >= arrived[0][0][1] + 700)
        write_records(topic, [Rec({"n": 2}, OLD)])
        eventually(lambda: numbers(s3, bucket, topic))
        assert numbers(s3, bucket, topic) == [[0, 1]]
    assert reasons(running) == ["rotate.interval.ms"]


def test_a_schedule_closes_what_is_open_on_an_idle_topic(live, topic, s3, bucket, write_records):
    write_records(topic, [Rec({"n": 0}, OLD), Rec({"n": 1}, OLD)])
    with live({"rotate.schedule.interval.ms": "500", "timezone": "UTC"}) as running:
        eventually(lambda: numbers(s3, bucket, topic) == [[0, 1]])
        write_records(topic, [Rec({"n": 2}, OLD)])
        eventually(lambda: numbers(s3, bucket, topic) == [[0, 1], [2]])
    assert reasons(running) == ["rotate.schedule.interval.ms"] * 2


def test_a_schedule_that_is_far_away_closes_nothing(connect):
    properties = {"rotate.schedule.interval.ms": "86400000", "timezone": "Pacific/Kiritimati"}
    assert connect([Rec({"n": 0}, OLD)], properties).open == 1


def test_a_latency_target_closes_what_is_open_on_an_idle_topic(live, topic, s3, bucket, write_records):
    with live({"max.latency.ms": "400"}) as running:
        now = int(time.time() * 1000)
        write_records(topic, [Rec({"n": 0}, now), Rec({"n": 1}, now)])
        eventually(lambda: sorted(n for file in numbers(s3, bucket, topic) for n in file) == [0, 1])
    assert set(reasons(running)) == {"max.latency.ms"}


def test_what_arrived_long_before_the_start_is_overdue(connect):
    outcome = connect([Rec({"n": 0}, OLD), Rec({"n": 1}, OLD)], {"max.latency.ms": "3600000"})
    assert [len(rows) for rows in outcome.objects.values()] == [2]


def test_flush_on_stop_closes_what_is_open(connect):
    outcome = connect([Rec({"n": n}) for n in range(5)], {"flush.size": "3", "flush.on.stop": "true"})
    assert [len(rows) for rows in outcome.objects.values()] == [3, 2]
    assert outcome.open == 0


def test_a_flush_that_another_thread_asks_for(live, topic, s3, bucket, write_records, describe, stack):
    sink = Sink.from_properties(describe(topic, {}), {"bootstrap.servers": stack.bootstrap_servers})
    write_records(topic, [Rec({"n": 0}), Rec({"n": 1})])
    with live({}) as running:
        sink._running = running
        assert sink.flush().records == 2
        assert numbers(s3, bucket, topic) == [[0, 1]]
        assert sink.flush().records == 0
    assert reasons(running) == ["flush"]
