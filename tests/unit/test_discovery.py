import re
from dataclasses import dataclass, field

import pytest

from penstock.discovery import Subscription, beginnings, check_deleted, check_topics
from penstock.errors import DataLossError, KafkaUnavailable, StateError
from penstock.model import Commit, TopicPartition
from penstock.positions import Policy

EXISTING = {"orders": (0, 1), "orders.eu": (0,), "users": (0,)}
A, B, U = TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("users", 0)


@dataclass
class Found:
    offset: int
    metadata: str = ""


@dataclass
class Answers:
    """Fixed answers of a broker; the real one is asked in tests/integration/test_cluster.py."""

    starts: dict = field(default_factory=dict)
    ends: dict = field(default_factory=dict)
    group: dict = field(default_factory=dict)

    def topics(self):
        return EXISTING

    def log_starts(self, tps):
        return {tp: self.starts.get(tp, 0) for tp in tps}

    def log_ends(self, tps):
        return {tp: self.ends.get(tp, 100) for tp in tps}

    def committed(self, group, tps):
        assert group == "connect-x"
        return {tp: self.group[tp] for tp in tps if tp in self.group}


def policy(reset="earliest"):
    return Policy("x", "connect-x", "s3://b/_penstock/x/", reset, "fail")


def test_topics_are_selected_by_name_and_by_a_regex_that_must_match_all_of_it():
    assert Subscription(("orders",)).select(EXISTING) == {A, B}
    assert Subscription(regex=re.compile("orders")).select(EXISTING) == {A, B}
    assert len(Subscription(regex=re.compile("orders.*")).select(EXISTING)) == 3
    assert not Subscription(regex=re.compile("rder")).select(EXISTING)


def test_every_missing_topic_is_named_at_once_and_may_come_yet():
    with pytest.raises(KafkaUnavailable) as caught:
        check_topics(Subscription(("orders", "nope", "neither")), EXISTING, "127.0.0.1:9092")
    assert [p.split("`")[1] for p in str(caught.value).splitlines()] == ["nope", "neither"]
    assert caught.value.transient


def test_a_topic_deleted_under_the_sink_is_an_error_that_names_it():
    with pytest.raises(DataLossError, match="topic `gone` was deleted"):
        check_deleted(Subscription(("gone", "users")), [TopicPartition("gone", 0), U], EXISTING)
    check_deleted(Subscription(("users",)), [TopicPartition("gone", 0), U], EXISTING)


def test_a_new_connector_begins_where_connect_stood():
    kafka = Answers(group={A: Found(7)}, starts={B: 3})
    assert beginnings([A, B], {}, kafka, policy(), "penstock", running=False) == {A: Commit(A, 7), B: Commit(B, 3)}


def test_our_own_mirrored_offsets_are_no_beginning():
    with pytest.raises(StateError, match=r"on\.missing\.state"):
        beginnings([A], {}, Answers(group={A: Found(7, "penstock")}), policy(), "penstock", running=False)


def test_a_new_partition_of_a_known_topic_begins_at_its_start_even_with_latest():
    kafka = Answers(starts={B: 2}, ends={B: 50})
    assert beginnings([A, B], {A: 9}, kafka, policy("latest"), "penstock", running=False) == {B: Commit(B, 2)}


def test_a_topic_that_appears_while_running_begins_at_its_start_even_with_latest():
    kafka = Answers(ends={U: 50})
    assert beginnings([A, U], {A: 9}, kafka, policy("latest"), "penstock", running=True) == {U: Commit(U, 0)}
    assert beginnings([A, U], {A: 9}, kafka, policy("latest"), "penstock", running=False) == {U: Commit(U, 50)}


def test_nothing_new_asks_nothing():
    assert beginnings([A], {A: 9}, None, policy(), "penstock", running=True) == {}
