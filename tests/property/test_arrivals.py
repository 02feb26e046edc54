"""Arrival times: no record seems to have come later than it did, and the pairs stay few."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.arrivals import first_seen, observe, seen_at


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 50), st.floats(0, 1)), max_size=300))
def test_every_record_is_known_to_have_come_when_it_did_or_a_little_earlier(steps):
    arrivals, position, end, now, came = (), 0, 0, 0, {}
    for more, wait, share in steps:
        now += wait
        for offset in range(end, end + more):
            came[offset] = now
        end += more
        arrivals = observe(arrivals, position, end, now)
        assert len(arrivals) <= 64
        offsets = np.arange(position, end)
        seen = seen_at(arrivals, offsets, now)
        assert (seen <= [came[o] for o in offsets.tolist()]).all()
        assert (np.diff(seen) >= 0).all()
        assert first_seen(arrivals) == (int(seen[0]) if len(seen) else None)
        position += int((end - position) * share)


def test_times_are_exact_while_the_pairs_are_few():
    arrivals = observe(observe(observe((), 0, 3, 10), 0, 3, 20), 0, 5, 30)
    assert arrivals == ((3, 10), (5, 30))
    assert seen_at(arrivals, np.arange(7), 99).tolist() == [10, 10, 10, 30, 30, 99, 99]
    assert observe(arrivals, 3, 5, 40) == ((5, 30),)


def test_a_clock_that_is_set_back_makes_no_record_older_than_the_one_before():
    assert observe(((3, 100),), 0, 5, 50) == ((3, 100), (5, 100))
