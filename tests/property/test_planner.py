"""The planner with the cutter's rule behind it: everything closable is closed, and reading stays bounded."""

import bisect

from hypothesis import given
from hypothesis import strategies as st

from penstock.model import PlannedRange, TopicPartition
from penstock.planner import Clock, Look, Rules, View
from penstock.planner import plan as make_plan

TP = TopicPartition("t", 0)


def plan(positions, ends, looks, rules, now_ms, **how):
    return make_plan(View(positions, ends, looks), rules, Clock(now_ms), **how)


def run(offsets, arrivals, flush_size, rules):
    """Play cycles over the visible `offsets`; returns (position, offsets read in total)."""
    position, looks, read = 0, {}, 0
    for cycle, end in enumerate(arrivals, 1):
        thorough = cycle == len(arrivals)
        while ranges := plan({TP: position}, {TP: end}, looks, rules, 0, thorough=thorough).ranges:
            (todo,) = ranges
            assert todo.start == position < todo.end <= end
            read += todo.offsets
            visible = offsets[bisect.bisect_left(offsets, position) : bisect.bisect_left(offsets, todo.end)]
            whole = len(visible) // flush_size * flush_size
            if whole:
                position, looks = visible[whole - 1] + 1, {}
            if len(visible) > whole:
                looks = {TP: Look(position, todo.end, len(visible) - whole)}
            else:
                position, looks = todo.end, {}
    return position, read


@given(
    st.lists(st.integers(1, 9), max_size=80),
    st.lists(st.integers(0, 60), min_size=1, max_size=12),
    st.integers(1, 20),
    st.integers(1, 50),
    st.integers(1, 5),
    st.booleans(),
)
def test_whatever_can_be_closed_is_closed_and_nothing_is_read_more_than_a_few_times(
    gaps, steps, flush_size, max_offsets, max_files, content_cuts
):
    offsets, at = [], 0
    for gap in gaps:
        at += gap
        offsets.append(at - 1)
    arrivals, end = [], 0
    for step in steps:
        end += step
        arrivals.append(end)
    rules = Rules(flush_size, content_cuts=content_cuts, max_offsets=max_offsets, max_files=max_files)
    position, read = run(offsets, arrivals, flush_size, rules)
    visible = [o for o in offsets if o < end]
    whole = len(visible) // flush_size * flush_size
    assert position >= (visible[whole - 1] + 1 if whole else 0)
    assert read <= 8 * (end + flush_size)


def test_a_tail_is_read_again_only_when_it_has_doubled():
    rules = Rules(1_000, content_cuts=True)
    looks = {TP: Look(0, 100, 100)}
    assert not plan({TP: 0}, {TP: 199}, looks, rules, 0).ranges
    assert plan({TP: 0}, {TP: 200}, looks, rules, 0).ranges == (PlannedRange(TP, 0, 200),)
    assert plan({TP: 0}, {TP: 101}, looks, rules, 0, thorough=True).ranges == (PlannedRange(TP, 0, 101),)
    assert not plan({TP: 0}, {TP: 100}, looks, rules, 0, thorough=True).ranges


def test_a_tail_that_only_the_count_can_close_is_not_read_before_it_can_be_full():
    rules = Rules(1_000, content_cuts=False)
    assert not plan({TP: 0}, {TP: 999}, {}, rules, 0).ranges
    assert plan({TP: 0}, {TP: 999}, {}, rules, 0, thorough=True).ranges == (PlannedRange(TP, 0, 999),)
    assert not plan({TP: 0}, {TP: 999}, {TP: Look(0, 999, 999)}, rules, 0, thorough=True).ranges
    assert plan({TP: 0}, {TP: 2_999}, {}, rules, 0).ranges == (PlannedRange(TP, 0, 2_000),)


def test_a_backlog_is_taken_in_bounded_bites_of_whole_files():
    rules = Rules(300, content_cuts=False, max_offsets=1_000)
    assert plan({TP: 10}, {TP: 10**9}, {}, rules, 0).ranges == (PlannedRange(TP, 10, 910),)
    tiny = Rules(1, content_cuts=False, max_files=50)
    assert plan({TP: 0}, {TP: 10**9}, {}, tiny, 0).ranges == (PlannedRange(TP, 0, 50),)


def test_a_forced_plan_reads_every_tail_to_its_end():
    rules = Rules(1_000, content_cuts=False)
    looks = {TP: Look(5, 9, 4)}
    assert plan({TP: 5}, {TP: 9}, looks, rules, 7, forced=True).ranges == (PlannedRange(TP, 5, 9, "flush"),)
    assert not plan({TP: 9}, {TP: 9}, {}, rules, 7, forced=True).ranges


def arrived(*pairs):
    return {TP: pairs}


def test_what_was_there_before_the_scheduled_instant_is_closed_once():
    rules = Rules(1_000, content_cuts=False)
    view = View({TP: 5}, {TP: 9}, {}, arrived((7, 100), (9, 200)))
    closed = PlannedRange(TP, 5, 9, "rotate.schedule.interval.ms")
    assert make_plan(view, rules, Clock(250, scheduled_ms=150)).ranges == (closed,)
    assert not make_plan(view, rules, Clock(250, scheduled_ms=100)).ranges
    assert not make_plan(View({TP: 9}, {TP: 9}, {}, {}), rules, Clock(250, scheduled_ms=150)).ranges


def test_the_latency_target_closes_in_time_for_the_cycle_that_does_it():
    rules = Rules(1_000, content_cuts=False, max_latency_ms=1_000)
    view = View({TP: 5}, {TP: 9}, {}, arrived((9, 0)))
    closed = (PlannedRange(TP, 5, 9, "max.latency.ms"),)
    assert not make_plan(view, rules, Clock(799, margin_ms=200)).ranges
    assert make_plan(view, rules, Clock(800, margin_ms=200)).ranges == closed
    # A cycle that takes longer than the target does not make it begin with every record.
    assert not make_plan(view, rules, Clock(499, margin_ms=5_000)).ranges
    assert make_plan(view, rules, Clock(500, margin_ms=5_000)).ranges == closed


def test_ranges_carry_the_arrivals_that_say_something_about_them():
    rules = Rules(2, content_cuts=False, wall_clock=True)
    view = View({TP: 0}, {TP: 5}, {}, arrived((1, 10), (3, 20), (4, 30), (5, 40)))
    (range_,) = make_plan(view, rules, Clock(50)).ranges
    assert (range_.end, range_.arrivals) == (4, ((1, 10), (3, 20), (4, 30)))


def test_a_large_tail_is_looked_at_when_its_interval_should_be_over():
    rules = Rules(10**6, content_cuts=True, interval_ms=1_000)
    view = View({TP: 0}, {TP: 150}, {TP: Look(0, 100, 100, at_ms=200, base_ms=100)})
    assert not make_plan(view, rules, Clock(1_099)).ranges
    assert make_plan(view, rules, Clock(1_100)).ranges == (PlannedRange(TP, 0, 150),)
    later = View({TP: 0}, {TP: 150}, {TP: Look(0, 100, 100, at_ms=1_100, base_ms=100)})
    assert not make_plan(later, rules, Clock(2_099)).ranges
    assert make_plan(later, rules, Clock(2_100)).ranges == (PlannedRange(TP, 0, 150),)
