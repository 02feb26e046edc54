"""The records that a query fails on are found, and no others, with few looks."""

import random

import pytest

from penstock.model import PlannedRange, TopicPartition
from penstock.transform.culprits import MOST, culprits

TP = TopicPartition("t", 0)


class Query:
    """Fails over a range that holds one of `bad`."""

    def __init__(self, bad):
        self.bad, self.looks, self.offsets = set(bad), 0, 0

    def __call__(self, planned):
        self.looks += 1
        self.offsets += planned.offsets
        inside = sorted(each for each in self.bad if planned.start <= each < planned.end)
        return f"fails on {inside[0]}" if inside else None


@pytest.mark.parametrize("seed", range(20))
def test_every_culprit_is_found_with_its_reason(seed):
    chance = random.Random(seed)
    start, size = chance.randint(0, 50), chance.randint(1, 300)
    bad = chance.sample(range(start, start + size), chance.randint(0, min(size, 12)))
    found, known = culprits(PlannedRange(TP, start, start + size), Query(bad), every=True)
    assert found == {each: f"fails on {each}" for each in sorted(bad)}
    assert known == start + size


def test_the_first_one_is_enough_where_the_partition_stops_there():
    query = Query({700_000, 900_000})
    assert culprits(PlannedRange(TP, 0, 1_000_000), query, every=False) == ({700_000: "fails on 700000"}, 700_001)
    assert query.looks <= 23
    assert query.offsets < 3_500_000


def test_no_more_than_so_many_are_looked_for_at_once():
    found, known = culprits(PlannedRange(TP, 0, 500), Query(range(500)), every=True)
    assert list(found) == list(range(MOST))
    assert known == MOST


def test_a_failure_that_is_no_records_fault_is_put_on_none():
    answers = iter(["lost an executor", None, None, None, None, None, None])
    assert culprits(PlannedRange(TP, 10, 14), lambda _: next(answers), every=True)[0] == {}
