"""What a sink says about itself while another thread runs it."""

import threading
from types import SimpleNamespace

from penstock.model import Fault, TopicPartition
from penstock.report import PartitionStatus, SinkStatus, running_status

ONE, TWO, NEW = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 2)


def running(**changes):
    """A running sink without a connection: whoever asks Kafka through it fails."""
    head = SimpleNamespace(positions={ONE: 6, TWO: 9, NEW: 4}, last_objects={ONE: "a", TWO: "b"})
    engine = SimpleNamespace(log=SimpleNamespace(head=head), faults={TWO: Fault("stopped", passing=False)})
    values = {"engine": engine, "last_objects": {ONE: "newer"}, "seen_ends": {ONE: 8, TWO: 7}}
    return SimpleNamespace(**{**values, **changes})


def test_a_running_sink_tells_what_it_saw_last_and_asks_nobody():
    assert running_status("x", running()) == SinkStatus(
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
            assert len(running_status("x", sink).partitions) == 3
    finally:
        ended.set()
        worker.join()
