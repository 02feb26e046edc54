"""The fetcher against brokers made up here: what it asks for, and whom."""

import asyncio
import io

import numpy as np
import pytest

from penstock.errors import KafkaUnavailable
from penstock.kafka.batches import Fetched
from penstock.kafka.brokers import BrokerLost, Topology
from penstock.kafka.fetch import Fetcher
from penstock.kafka.reader import ReaderOptions
from penstock.kafka.troubles import RangeFault
from penstock.kafka.wire import Answer, Fetch, Part, _Decoder
from penstock.model import PlannedRange, TopicPartition
from record_batches import Rec, batch

TP = TopicPartition("t", 0)
LEADER, NEAR = 1, 2
LOG = batch([Rec(offset) for offset in range(10)])
FROM_ZERO, FROM_FIVE = batch([Rec(offset) for offset in range(5)]), batch([Rec(offset) for offset in range(5, 10)])


def part(data=b"", *, error=0, nearer=-1, tp=TP):
    return Part(tp, error, 10, 10, (), 0, len(data), nearer), data


def answer(said):
    found, data = said
    return Answer(0, 0, (found,), np.frombuffer(data, np.uint8))


class Cluster:
    """`leader` and `near`: what these two brokers say in turn; the last word again and again."""

    def __init__(self, leader, near):
        self.said = {LEADER: leader, NEAR: near}
        self.asked = []

    async def topology(self, _topics):
        return Topology(dict.fromkeys([TP], LEADER), {})

    async def send(self, node, request):
        await asyncio.sleep(0)
        self.asked.append((node, request._rack_id))
        self.request = request
        said = self.said[node]
        word = said.pop(0) if said[1:] else said[0]
        if isinstance(word, Exception):
            raise word
        return answer(word)


def fetched(cluster, **options):
    events = []
    options = ReaderOptions({}, **options)
    ranges = [PlannedRange(TP, 0, 10)]
    fetcher = Fetcher(ranges, options, cluster, lambda delivery: events.extend(delivery.events))
    asyncio.run(asyncio.wait_for(fetcher.run(), 30))
    return events


def all_there(events):
    (last,) = events
    return isinstance(last, Fetched) and last.data.tobytes() == LOG


def test_without_a_rack_the_leader_is_asked():
    cluster = Cluster([part(LOG)], [])
    assert all_there(fetched(cluster))
    assert cluster.asked == [(LEADER, "")]


def test_the_replica_that_the_leader_names_is_asked():
    cluster = Cluster([part(nearer=NEAR)], [part(LOG)])
    assert all_there(fetched(cluster, rack="r1"))
    assert cluster.asked == [(LEADER, "r1"), (NEAR, "r1")]


FAILURES = {
    "it is away": BrokerLost("gone"),
    "it does not have the partition": part(error=6),
    "it does not have the offset yet": part(error=1),
    "it may not tell": part(error=29),
    "it lags behind": part(),
    "it names another": part(nearer=LEADER),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_the_leader_is_asked_again_without_the_rack_when_a_near_replica_fails(failure):
    cluster = Cluster([part(nearer=NEAR), part(LOG)], [failure])
    assert all_there(fetched(cluster, rack="r1"))
    assert cluster.asked == [(LEADER, "r1"), (NEAR, "r1"), (LEADER, "")]


def test_what_a_near_replica_gave_is_not_asked_of_the_leader_again():
    cluster = Cluster([part(nearer=NEAR), part(FROM_FIVE)], [part(FROM_ZERO), BrokerLost("x")])
    first, second = fetched(cluster, rack="r1")
    assert (first.data.tobytes() + second.data.tobytes()) == FROM_ZERO + FROM_FIVE
    assert [at for _, ((_, at, _),) in cluster.request.topics] == [5]


def test_a_leader_that_is_lost_after_the_fall_back_is_waited_for_and_told():
    cluster = Cluster([part(nearer=NEAR), BrokerLost("gone too")], [BrokerLost("gone")])
    (fault,) = fetched(cluster, rack="r1", unavailable_timeout_ms=300)
    assert isinstance(fault, RangeFault)
    assert isinstance(fault.error, KafkaUnavailable)
    assert "gone too" in str(fault.error)


def test_the_waits_and_sizes_of_the_settings_are_asked_for():
    cluster = Cluster([part(LOG)], [])
    fetched(cluster, fetch_min_bytes=1234, fetch_max_wait_ms=77)
    assert (cluster.request._min_bytes, cluster.request._max_wait_ms) == (1234, 77)


def test_no_more_is_waited_for_than_may_be_sent():
    cluster = Cluster([part(LOG)], [])
    fetched(cluster, fetch_min_bytes=1 << 30, fetch_max_bytes=5000)
    assert cluster.request._min_bytes == cluster.request._max_bytes == 5000


def test_the_rack_goes_out_with_version_11_and_not_before():
    fetch = Fetch(500, 1, 100, 1, [("t", [(0, 5, 100)])], "rack-7")
    assert fetch.prepare({1: (4, 11)}).encode().endswith(b"\x00\x06rack-7")
    assert b"rack-7" not in fetch.prepare({1: (4, 10)}).encode()


def test_the_nearer_replica_is_read_from_version_11_on():
    head = bytes(4) + bytes(2) + bytes(4) + (1).to_bytes(4, "big") + b"\x00\x01t" + (1).to_bytes(4, "big")
    one = bytes(4) + bytes(2) + (10).to_bytes(8, "big") + (9).to_bytes(8, "big") + bytes(8) + b"\xff" * 4
    body = (3).to_bytes(4, "big") + b"abc"
    for version, more, nearer in ((11, (2).to_bytes(4, "big"), 2), (11, b"\xff" * 4, -1), (10, b"", -1)):
        read = _Decoder(version).decode(io.BytesIO(head + one + more + body))
        (found,) = read.parts
        assert (found.nearer, found.high_watermark, found.last_stable) == (nearer, 10, 9)
        assert read.data[found.start : found.end].tobytes() == b"abc"
