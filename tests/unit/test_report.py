"""What a sink says about itself while another thread runs it."""

import contextlib
import threading
from types import SimpleNamespace

import pytest

from penstock import report
from penstock.errors import KafkaUnavailable
from penstock.model import Fault, TopicPartition
from penstock.report import PartitionStatus, SinkStatus, running_status

ONE, TWO, NEW = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 2)


def running(**changes):
    """A running sink, as far as its status goes."""
    head = SimpleNamespace(positions={ONE: 6, TWO: 9, NEW: 4}, last_objects={ONE: "a", TWO: "b"})
    engine = SimpleNamespace(log=SimpleNamespace(head=head), faults={TWO: Fault("stopped", passing=False)})
    values = {"engine": engine, "last_objects": {ONE: "newer"}, "seen_ends": {ONE: 8, TWO: 7}}
    return SimpleNamespace(**{**values, **changes})


@pytest.fixture(autouse=True)
def kafka(monkeypatch):
    """Log ends by topic-partition; None: Kafka is away."""
    said = {"ends": None}

    class Cluster(contextlib.nullcontext):
        def __init__(self, settings):
            super().__init__(self)
            assert settings is None

        def log_ends(self, _tps):
            if said["ends"] is None:
                msg = "away"
                raise KafkaUnavailable(msg)
            return said["ends"]

    monkeypatch.setattr(report, "Cluster", Cluster)
    return said


def test_a_running_sink_is_told_with_the_log_ends_of_now(kafka):
    kafka["ends"] = {ONE: 10, TWO: 9, NEW: 5}
    assert [each.lag for each in running_status("x", running(), None).partitions] == [4, 0, 1]


def test_while_kafka_is_away_a_running_sink_tells_what_it_saw_last():
    assert running_status("x", running(), None) == SinkStatus(
        "x",
        "RUNNING",
        (
            PartitionStatus(ONE, 6, 8, 2, "newer", None),
            PartitionStatus(TWO, 9, 9, 0, "b", "stopped"),
            PartitionStatus(NEW, 4, 4, 0, None, None),
        ),
    )


def test_the_status_is_whole_while_objects_and_faults_come_and_go():
    sink = running(last_objects={}, seen_ends={})
    ended = threading.Event()

    def work():
        number = 0
        while not ended.is_set():
            number += 1
            tp = TopicPartition("t", number % 1000)
            sink.last_objects[tp] = str(number)
            sink.engine.faults[tp] = Fault("stopped", passing=False)
            if number % 1000 == 0:
                sink.last_objects.clear()
                sink.engine.faults.clear()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(2000):
            assert len(running_status("x", sink, None).partitions) == 3
    finally:
        ended.set()
        worker.join()
