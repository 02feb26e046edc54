"""The cutter against a record-by-record reading of the rules in reference s3-sink-connector 2.2."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.cutter import Columns, Open, Rules, Schemas, cut, warm

warm()


class Connector:
    """The reference's state machine, a record at a time."""

    def __init__(self, rules, joins):
        self.rules, self.joins = rules, joins
        self.cuts = []
        self.clear()

    def clear(self):
        self.count, self.base, self.previous, self.files = 0, None, None, {}

    def before(self, label, time, schema):
        rules = self.rules
        if not self.count:
            return None
        if rules.interval_ms > 0 and time - self.base >= rules.interval_ms:
            return "rotate.interval.ms"
        if rules.interval_ms > 0 and rules.on_partition_change and label != self.previous:
            return "partition.change"
        if label in self.files:
            return None if self.joins[self.files[label][0], schema] else "schema.change"
        return "partitioner.max.open.files" if 0 < rules.max_open_files <= len(self.files) else None

    def put(self, row, label, time, schema, size):
        reason = self.before(label, time, schema)
        if reason:
            self.cuts.append((row, reason))
            self.clear()
        if not self.count:
            self.base = time
        file = self.files.setdefault(label, [schema, 0])
        file[1] += size
        self.count, self.previous = self.count + 1, label
        if self.count >= max(self.rules.flush_size, 1):
            self.cuts.append((row + 1, "flush.size"))
            self.clear()
        elif 0 < self.rules.flush_bytes <= file[1]:
            self.cuts.append((row + 1, "flush.bytes"))
            self.clear()


record = st.tuples(
    st.integers(0, 3), st.integers(-20, 60), st.sampled_from([0, 0, 0, 1, 2]), st.integers(0, 9), st.booleans()
)
optional = st.one_of(st.just(-1), st.integers(1, 30))
rules = st.builds(
    Rules,
    flush_size=st.integers(-1, 12),
    flush_bytes=optional,
    interval_ms=optional,
    on_partition_change=st.booleans(),
    max_open_files=st.one_of(st.just(-1), st.integers(1, 3)),
)
matrices = st.lists(st.booleans(), min_size=9, max_size=9).map(
    lambda flags: np.array(flags, dtype=bool).reshape(3, 3) | np.eye(3, dtype=bool)
)


@st.composite
def batched(draw):
    """Records, and sizes of the batches in which they are handed over; sizes may be 0."""
    records = draw(st.lists(record, max_size=60))
    sizes, left = [], len(records)
    while left:
        size = draw(st.integers(0, left))
        sizes.append(size)
        left -= size
    return records, sizes


def in_batches(records, sizes, the_rules, joins):
    state, seen, cuts, covered = Open(), 0, [], []
    plain = Schemas.distinct(3)
    table = Schemas(joins, plain.newer, plain.reads)
    for size in sizes:
        labels, times, schemas, payload, kept = [*zip(*records[seen : seen + size], strict=True)] or [()] * 5
        columns = Columns(
            size,
            np.array(labels, dtype=np.int32),
            np.array(times, dtype=np.int64),
            np.array(schemas, dtype=np.int32),
            np.array(payload, dtype=np.int64),
            np.array(kept, dtype=bool),
        )
        segments, state = cut(state, columns, the_rules, table)
        for segment in segments:
            covered.extend(range(seen + segment.start, seen + segment.end))
            if segment.cut:
                cuts.append((seen + segment.end, segment.cut))
        seen += size
    return cuts, state, covered


def expected(records, the_rules, joins):
    connector = Connector(the_rules, joins)
    for row, (label, time, schema, size, kept) in enumerate(records):
        if kept:
            connector.put(row, label, time, schema, size)
    return connector


EYE = np.eye(3, dtype=bool)


@given(batched(), rules, matrices)
@example(([(0, 0, 0, 1, True), (0, 0, 1, 1, True)], [1, 1]), Rules(5), EYE)
@example(([(0, 0, 0, 1, True), (1, 0, 0, 1, False), (0, 50, 0, 1, True)], [2, 1]), Rules(5, interval_ms=30), EYE)
def test_cuts_are_those_of_the_rules_read_record_by_record_whatever_the_batches(case, the_rules, joins):
    records, sizes = case
    connector = expected(records, the_rules, joins)
    cuts, state, covered = in_batches(records, sizes, the_rules, joins)
    # A record that is left out may lie on either side of a cut.
    kept_before = np.cumsum([0, *(kept for *_, kept in records)])
    assert [(kept_before[row], why) for row, why in cuts] == [(kept_before[row], why) for row, why in connector.cuts]
    assert state.records == connector.count
    assert {int(label) for label in state.labels} == set(connector.files)
    assert covered == list(range(len(records)))


@given(batched(), rules, matrices, st.data())
def test_resuming_at_any_cut_finds_the_same_later_cuts(case, the_rules, joins, data):
    records, sizes = case
    cuts, _, _ = in_batches(records, sizes, the_rules, joins)
    if cuts:
        at, _ = data.draw(st.sampled_from(cuts))
        resumed, _, _ = in_batches(records[at:], [len(records) - at], the_rules, joins)
        assert [(row + at, reason) for row, reason in resumed] == [c for c in cuts if c[0] > at]


@given(batched(), rules, matrices)
def test_numbering_the_open_labels_anew_changes_no_later_cut(case, the_rules, joins):
    records, _ = case
    half = len(records) // 2
    _, state, _ = in_batches(records[:half], [half], the_rules, joins)
    names = {int(label): code for code, label in enumerate(state.labels)}
    rest = [(label, *others) for label, *others in records[half:]]
    plain = Schemas.distinct(3)
    table = Schemas(joins, plain.newer, plain.reads)

    def later(start, number):
        codes = np.array([number(label) for label, *_ in rest], dtype=np.int32)
        _, times, schemas, payload, kept = [*zip(*rest, strict=True)] or [()] * 5
        columns = Columns(
            len(rest), codes, np.array(times), np.array(schemas), np.array(payload), np.array(kept, dtype=bool)
        )
        return cut(start, columns, the_rules, table)[0]

    fresh = {label: len(names) + n for n, label in enumerate(sorted({r[0] for r in rest} - set(names)))}
    assert later(state, lambda label: label) == later(state.renumbered(), lambda label: {**names, **fresh}[label])


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 40))
def test_with_interleaving_a_file_ends_only_where_no_schema_reads_all_others(codes, flush_size):
    """Schemas 0 to 2 are versions that read all older ones; 3 reads only itself."""
    plain = Schemas.distinct(4)
    joins = np.tril(np.ones((4, 4), dtype=bool))
    joins[3, :3] = False
    reads = np.array([0b0001, 0b0011, 0b0111, 0b1000], dtype=np.uint64)
    table = Schemas(joins, plain.newer, reads)
    columns = Columns(len(codes), schemas=np.array(codes, dtype=np.int32))
    segments, _ = cut(Open(), columns, Rules(flush_size, interleave=True), table)
    cuts, held = [], []
    for row, code in enumerate(codes):
        if held and (code == 3) != (held[-1] == 3):
            cuts.append((row, "schema.change"))
            held = []
        held.append(code)
        if len(held) == flush_size:
            cuts.append((row + 1, "flush.size"))
            held = []
    assert [(segment.end, segment.cut) for segment in segments if segment.cut] == cuts
