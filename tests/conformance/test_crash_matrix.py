"""Every crash point x rotation rule x change of configuration: each record is in one committed object, once.

The crash is an exception at the point, so that hundreds of them are cheap; tests/crash does it with SIGKILL. What runs
here is a sample; PENSTOCK_FULL=1 runs the whole matrix.
"""

from __future__ import annotations

import itertools
import os
import random
import threading
import time

import pytest

from connecting import Rec, stored
from penstock import crashpoints
from penstock.loop import keep_running
from penstock.statelog.history import entries

pytestmark = pytest.mark.stack

T = 1_717_171_200_000
STEP = 600_000
TIMED = {"partitioner.class": "hourly", "locale": "en-US", "timezone": "UTC"}
BY_RECORD = {**TIMED, "timestamp.extractor": "Record"}
BY_FIELD = {**TIMED, "timestamp.extractor": "RecordField", "timestamp.field": "t"}
WALL = {**TIMED, "timestamp.extractor": "Wallclock"}
RULES = {
    "size": {"flush.size": "3"},
    "interval of Record": {**BY_RECORD, "rotate.interval.ms": "1800000"},
    "interval of RecordField": {
        **BY_FIELD,
        "rotate.interval.ms": "3600000",
        "rotate.file.on.partition.change": "false",
    },
    "interval of Wallclock": {**WALL, "rotate.interval.ms": "1", "flush.size": "4"},
    "schedule": {"rotate.schedule.interval.ms": "200", "timezone": "UTC"},
    "latency": {"max.latency.ms": "100"},
    "bytes": {"flush.bytes": "60"},
    "open files": {"partitioner.class": "field", "partition.field.name": "c", "partitioner.max.open.files": "2"},
    "fields": {"partitioner.class": "field", "partition.field.name": "c", "flush.size": "5"},
    "nulls": {"behavior.on.null.values": "ignore", "flush.size": "2"},
}
CHANGES = {
    "same": {},
    "flush.size": {"flush.size": "2"},
    "partitioner": {"partitioner.class": "default"},
}
POINTS = [point for point in crashpoints.POINTS if point not in ("part.after", "complete.before")]
EVERY = list(itertools.product(RULES, POINTS, CHANGES))
CHOSEN = EVERY if os.environ.get("PENSTOCK_FULL") else random.Random(7).sample(EVERY, 36)


class CrashError(BaseException):
    """Nothing catches it, so that it ends the run where it is."""


def records(nulls):
    for n in range(14):
        minutes = n if n % 5 else n - 9
        yield Rec({"n": n, "c": "abc"[n % 3], "t": T + minutes * STEP}, T + minutes * STEP)
        if nulls and n % 4 == 0:
            yield Rec(None, T)


@pytest.mark.parametrize(("rule", "point", "change"), CHOSEN)
def test_after_a_crash_every_record_is_in_one_committed_object(
    rule, point, change, opened, describe, write_records, topic, s3, bucket
):
    write_records(topic, list(records(rule == "nulls")))
    properties = {"checkpoint.interval.entries": "2", **RULES[rule]}
    left = random.Random(f"{rule}{point}{change}").randint(1, 2)

    def crash(reached):
        nonlocal left
        left -= reached == point
        if left == 0 and reached == point:
            raise CrashError

    with crashpoints.watched(crash):
        try:
            with opened(describe(topic, properties)) as running:
                run_for_a_while(running)
        except CrashError:
            pass
    after = describe(topic, {**properties, **CHANGES[change], "flush.on.stop": "true"})
    with opened(after) as running:
        keep_running(running, threading.Event(), until_done=True)
        assert running.engine.faults == {}
        log = running.engine.log
        committed = [o for e in entries(log.store, log.names) for c in e.commits for o in c.objects]
    found = stored(s3, bucket, topic)
    assert sorted(row["n"] for rows in found.values() for row in rows) == list(range(14))
    assert len(committed) == len({each.key for each in committed}) == len(found)
    assert sorted(each.records for each in committed) == sorted(len(rows) for rows in found.values())


def run_for_a_while(running):
    """Cycles until something was committed and there is nothing to do, or the crash comes."""
    keep_running(running, threading.Event(), until_done=True)
    time.sleep(0.25)
    keep_running(running, threading.Event(), until_done=True)
