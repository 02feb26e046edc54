"""The cutter against a record-by-record reading of the rules in reference s3-sink-connector 2.2."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.cutter import Columns, Open, Rules, cut


def one_by_one(schemas, flush_size):
    """Every cut as (rows before it, reason): the rules as the reference states them, for one record at a time."""
    cuts, count, current = [], 0, None
    for row, schema in enumerate(schemas):
        if count and schema != current:
            cuts.append((row, "schema.change"))
            count = 0
        current = schema
        count += 1
        if count >= flush_size:
            cuts.append((row + 1, "flush.size"))
            count = 0
    return cuts, count


def cut_in_batches(schemas, flush_size, sizes, *, constant=False):
    state, seen, cuts, covered = Open(), 0, [], []
    for size in sizes:
        batch = np.array(schemas[seen : seen + size], dtype=np.int32)
        segments, state = cut(state, Columns(len(batch), None if constant else batch), Rules(flush_size))
        for segment in segments:
            covered.extend(range(seen + segment.start, seen + segment.end))
            if segment.cut:
                cuts.append((seen + segment.end, segment.cut))
        seen += len(batch)
    return cuts, state, covered


@st.composite
def batched(draw):
    schemas = draw(st.lists(st.sampled_from([0, 0, 0, 1, 2]), max_size=60))
    sizes, left = [], len(schemas)
    while left:
        size = draw(st.integers(0, left))
        sizes.append(size)
        left -= size
    return schemas, sizes


@given(batched(), st.integers(1, 12))
@example(([0, 0, 1, 1], [2, 2]), 2)
@example(([0, 1], [1, 1]), 5)
def test_cuts_are_those_of_the_rules_read_record_by_record_whatever_the_batches(case, flush_size):
    schemas, sizes = case
    expected, still_open = one_by_one(schemas, flush_size)
    cuts, state, covered = cut_in_batches(schemas, flush_size, sizes)
    assert cuts == expected
    assert state.records == still_open
    assert covered == list(range(len(schemas)))


@given(batched(), st.integers(1, 12), st.data())
def test_resuming_at_any_cut_finds_the_same_later_cuts(case, flush_size, data):
    schemas, sizes = case
    cuts, _, _ = cut_in_batches(schemas, flush_size, sizes)
    if cuts:
        at, _ = data.draw(st.sampled_from(cuts))
        resumed, _, _ = cut_in_batches(schemas[at:], flush_size, [len(schemas) - at])
        assert [(row + at, reason) for row, reason in resumed] == [c for c in cuts if c[0] > at]


@given(st.integers(0, 100), st.integers(1, 30))
def test_without_schemas_only_the_count_cuts(rows, flush_size):
    cuts, state, _ = cut_in_batches([0] * rows, flush_size, [rows], constant=True)
    assert cuts == [(n, "flush.size") for n in range(flush_size, rows + 1, flush_size)]
    assert state.records == rows % flush_size
