"""A cluster of two brokers, one of which is killed under load and comes back: leaders change to and fro."""

import time
from dataclasses import replace

import pytest

from soak.course import Course, Trouble
from two_brokers import two_brokers

pytestmark = pytest.mark.stack


def test_leaders_that_change_under_load_lose_and_double_nothing(stack, tmp_path):
    with two_brokers(tmp_path) as cluster:
        seen = []

        def bounce(_dice):
            cluster.kill(2)
            while set(cluster.leaders(course.topic)) != {1}:
                time.sleep(0.1)
            seen.append("killed")
            time.sleep(3)
            cluster.start(2)
            cluster.wait_for(2)
            cluster.restore_leaders(course.topic)
            seen.append("back")

        info = replace(stack, bootstrap_servers=cluster.servers)
        trouble = Trouble(broker_s=8, kill_s=15)
        course = Course(info, tmp_path / "soak", 45, trouble, ["size", "schedule"], bounce=bounce, replication=2)
        result = course.run()
    assert seen[:2] == ["killed", "back"]
    assert result.failed == []
    assert all(each.is_clean for each in result.audits.values()), result.audits
