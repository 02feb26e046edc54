"""Complete time partitions of a real connector: recorded once, marked, and held up by whoever is behind."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer

from connecting import Rec
from penstock.audit.auditing import audit
from penstock.cli.main import main
from penstock.loading import load
from penstock.statelog.history import entries

pytestmark = pytest.mark.stack

HOUR = 3_600_000
TEN = 1_717_236_000_000  # 2024-06-01T10:00:00Z
HOURLY = {
    "flush.size": "2",
    "partitioner.class": "hourly",
    "locale": "en",
    "timezone": "UTC",
    "timestamp.extractor": "Record",
    "complete.markers": "true",
}


def at(hour, partition=0, n=2):
    return [Rec({"n": number}, TEN + (hour - 10) * HOUR + number, partition=partition) for number in range(n)]


def path(hour):
    return f"year=2024/month=06/day=01/hour={hour:02d}"


@pytest.fixture
def markers(s3, bucket):
    def find():
        listed = s3.list_objects_v2(Bucket=bucket, Prefix="topics/")["Contents"]
        return sorted(each["Key"][-len("10/_SUCCESS") : -len("/_SUCCESS")] for each in listed if "_SUC" in each["Key"])

    return find


@pytest.fixture
def shown(describe, stack, tmp_path, capsys):
    """`penstock complete`: (hour, state, waits for) of each time partition."""

    def run(topic, *options, **properties):
        worker, sink = tmp_path / "worker.properties", tmp_path / "sink.properties"
        worker.write_text(f"bootstrap.servers={stack.bootstrap_servers}\n")
        given = describe(topic, {**HOURLY, **properties})
        sink.write_text("".join(f"{name}={text}\n" for name, text in given.items()))
        with pytest.raises(SystemExit) as ended:
            main(["complete", str(sink), "--worker", str(worker), "--output", "json", *options])
        captured = capsys.readouterr()
        assert ended.value.code == 0, captured.err
        rows = json.loads(captured.out)["time_partitions"]
        return [(each["time_partition"][-2:], each["state"], each["waits_for"]) for each in rows]

    return run


def test_an_hour_is_complete_when_every_partition_has_passed_it(connect, make_topic, markers, shown, describe, stack):
    topic = make_topic(2)
    # Partition 1 has one record of hour 10 that no cut closes yet.
    connect([*at(10), *at(11), *at(12), *at(10, partition=1, n=1)], HOURLY, topic)
    assert markers() == []
    assert shown(topic) == [(hour, "open", f"{topic}-1") for hour in ("10", "11", "12")]
    connect(at(11, partition=1, n=2), HOURLY, topic)
    # Partition 1 stands at a record of hour 11: all before hour 11 is committed, and nothing says so of hour 12.
    assert markers() == ["10"]
    assert shown(topic) == [("10", "recorded", ""), *((hour, "open", f"{topic}-1") for hour in ("11", "12"))]
    connect(at(12, partition=1, n=1), HOURLY, topic)
    # Nothing is left in Kafka, and these hours are long past.
    assert markers() == ["10", "11", "12"]
    config, kafka = load(describe(topic, HOURLY), {"bootstrap.servers": stack.bootstrap_servers}, None)
    assert audit(config, kafka, pytest.fail, against_kafka=True).findings == ()


def test_lateness_and_what_comes_late(connect, opened, describe, topic, markers):
    late = {**HOURLY, "complete.lateness.ms": str(HOUR)}
    future = 20_000_000_000_000 // HOUR * HOUR  # in the year 2603: no clock has passed it
    hours = [Rec({"n": n}, future + n * HOUR) for n in range(4)]
    connect([each for each in hours for _ in range(2)], late, topic)
    assert len(markers()) == 2  # a record of the fourth hour says that the second is over by an hour
    connect([Rec({"n": 9}, future - HOUR)] * 2, late, topic)
    assert len(markers()) == 3  # late, for an hour that was complete already
    with opened(describe(topic, late)) as running:
        log = running.engine.log
        recorded = [each for entry in entries(log.store, log.names) for each in entry.complete]
        assert [each.until_ms for each in recorded] == [future + 2 * HOUR]
        assert log.head.complete == {topic: future + 2 * HOUR}


def test_an_open_transaction_may_still_bring_records(connect, topic, markers, stack):
    connect(at(10), {**HOURLY, "complete.markers": "false"}, topic)
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers, "transactional.id": topic, "log_level": 0})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"{}", timestamp=TEN + 5)
    producer.produce(topic, b"{}", timestamp=TEN + 6)
    producer.flush()
    connect([], HOURLY, topic)
    assert markers() == []
    producer.commit_transaction()
    connect([], HOURLY, topic)
    assert markers() == ["10"]


def test_marking_by_hand_and_a_reset_that_takes_it_back(
    connect, topic, markers, shown, describe, stack, tmp_path, capsys
):
    unmarked = {"complete.markers": "false"}
    connect([*at(10), *at(11)], {**HOURLY, **unmarked}, topic)
    assert shown(topic, **unmarked) == [("10", "complete", ""), ("11", "complete", "")]
    assert markers() == []
    assert shown(topic, "--mark", **unmarked) == [("10", "recorded", ""), ("11", "recorded", "")]
    assert markers() == ["10", "11"]
    files = [str(tmp_path / "sink.properties"), "--worker", str(tmp_path / "worker.properties")]
    with pytest.raises(SystemExit):
        main(["state", "reset", *files, "--earliest", "--yes"])
    assert "recorded as entry" in capsys.readouterr().err
    config, kafka = load(describe(topic, HOURLY), {"bootstrap.servers": stack.bootstrap_servers}, None)
    lying = [each.where for each in audit(config, kafka, pytest.fail).findings if "_SUCCESS" in each.where]
    assert len(lying) == 2
    assert {state for _, state, _ in shown(topic, **unmarked)} == {"open"}
