"""With a transformation: the crash matrix, two instances, and the files of a query that changes nothing.

What runs here is a sample, as each case takes some Spark jobs; PENSTOCK_FULL=1 runs the whole matrix.
"""

from __future__ import annotations

import itertools
import os
import random
import threading
import time

import pytest

from penstock import crashpoints
from penstock.errors import TakenOverError
from penstock.loop import keep_running
from penstock.statelog.history import entries

pytestmark = [pytest.mark.spark, pytest.mark.stack]

RECORDS = 14
KEPT = [n for n in range(RECORDS) if n % 3]
QUERY = "SELECT n, c, sha2(c, 256) AS h FROM records WHERE n % 3 != 0"
TIMED = {"partitioner.class": "hourly", "locale": "en-US", "timezone": "UTC"}
RULES = {
    "size": {"flush.size": "3"},
    "interval of Record": {**TIMED, "timestamp.extractor": "Record", "rotate.interval.ms": "4000", "flush.size": "50"},
    "interval of Wallclock": {
        **TIMED,
        "timestamp.extractor": "Wallclock",
        "rotate.interval.ms": "1",
        "flush.size": "4",
    },
    "schedule": {"rotate.schedule.interval.ms": "200", "timezone": "UTC", "flush.size": "50"},
    "fields": {"partitioner.class": "field", "partition.field.name": "c", "flush.size": "5"},
}
CHANGES = {
    "same": {},
    "flush.size": {"flush.size": "2"},
    "query": {"transform.sql": "SELECT n, c, 'new' AS h FROM records WHERE n % 3 != 0"},
}
POINTS = [point for point in crashpoints.POINTS if point not in ("part.after", "complete.before")]
EVERY = list(itertools.product(RULES, POINTS, CHANGES))
CHOSEN = EVERY if os.environ.get("PENSTOCK_FULL") else random.Random(3).sample(EVERY, 4)


class CrashError(BaseException):
    """Nothing catches it, so that it ends the run where it is."""


def values():
    return [{"n": n, "c": "abc"[n % 3 or n % 2]} for n in range(RECORDS)]


@pytest.mark.parametrize(("rule", "point", "change"), CHOSEN)
def test_after_a_crash_every_record_that_is_kept_is_in_one_committed_object(rule, point, change, connector):
    connector.produce(values())
    properties = {"transform.sql": QUERY, "checkpoint.interval.entries": "2", **RULES[rule]}
    left = 1

    def crash(reached):
        nonlocal left
        left -= reached == point
        if left == 0 and reached == point:
            raise CrashError

    with crashpoints.watched(crash):
        try:
            with connector.opened(properties) as running:
                keep_running(running, threading.Event(), until_done=True)
                time.sleep(0.25)
                keep_running(running, threading.Event(), until_done=True)
        except CrashError:
            pass
    with connector.opened({**properties, **CHANGES[change], "flush.on.stop": "true"}) as running:
        keep_running(running, threading.Event(), until_done=True)
        while running.cycle(running.ends(), forced=True) is not None:
            pass
        assert running.engine.faults == {}
        log = running.engine.log
        commits = [commit for entry in entries(log.store, log.names) for commit in entry.commits]
        assert {tp.partition: position for tp, position in log.head.positions.items()} == {0: RECORDS, 1: 0}
    found, committed = connector.objects(), [each for commit in commits for each in commit.objects]
    assert sorted(row["n"] for rows in found.values() for row in rows) == KEPT
    assert [row["n"] for rows in found.values() for row in rows if row["n"] in KEPT[:2]] == KEPT[:2]
    assert len(committed) == len({each.key for each in committed}) == len(found)
    assert sum(commit.skipped for commit in commits) == RECORDS - len(KEPT)
    assert sum(commit.hidden for commit in commits) == 0


def test_of_two_instances_the_newer_one_goes_on(connector):
    properties = {"transform.sql": QUERY, "flush.size": "2"}
    connector.produce(values()[:7])
    with connector.opened(properties) as older:
        assert older.cycle(older.ends(), thorough=True) is not None
        connector.produce(values()[7:])
        with connector.opened(properties) as newer:
            keep_running(newer, threading.Event(), until_done=True)
            with pytest.raises(TakenOverError):
                older.cycle(older.ends(), thorough=True)
            assert newer.engine.log.head.positions != older.engine.log.head.positions
    written = [row["n"] for rows in connector.objects().values() for row in rows]
    assert written == KEPT[: len(written)]
    assert len(written) >= len(KEPT) - 1


IDENTITY = {
    "times": {
        **TIMED,
        "partitioner.class": "time",
        "path.format": "'s'=ss",
        "partition.duration.ms": "1000",
        "timestamp.extractor": "Record",
        "rotate.interval.ms": "3000",
    },
    "keys": {"store.kafka.keys": "true", "keys.format.class": "json", "flush.size": "5"},
}


@pytest.mark.parametrize("rule", IDENTITY)
def test_a_query_that_changes_nothing_writes_the_files_that_are_written_without_one(rule, connector, bucket, s3, stack):
    connector.produce(values())
    connector.produce(values()[5:], partition=1)
    assert connector.run({"transform.sql": "SELECT * FROM records", **IDENTITY[rule]}) == []
    through = connector.objects()
    connector.bucket = f"{bucket}-plain"
    s3.create_bucket(Bucket=connector.bucket, CreateBucketConfiguration={"LocationConstraint": stack.region})
    assert connector.run(IDENTITY[rule]) == []
    assert len(through) > 3
    assert connector.objects() == through
