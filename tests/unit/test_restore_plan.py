"""What a restore takes, in which order, and where it says that it cannot know (pure)."""

import pytest

from penstock.errors import PenstockError, UsageError
from penstock.model import Commit, CommittedObject, Plan, TopicPartition
from penstock.restore.history import History, read
from penstock.restore.offsets import Position, Row, Sent, rows
from penstock.restore.plan import Bundle, Leniency, bundles, segments
from penstock.restore.prepare import planned
from penstock.restore.run import Work
from penstock.restore.selection import Selection, Span, edges
from penstock.statelog import Entry

TP = TopicPartition("t", 0)
STRICT, WHOLE, UNORDERED = Leniency(), Leniency(whole=True), Leniency(unordered=True)
NONE = frozenset()


def held(start, end, records=None, label="partition=0", view="value", times=(5, 5)):
    count = end - start if records is None else records
    key = f"{label}/{start}.{view}"
    return CommittedObject(key, start, end, count, 100, "e", "0", label, "", *times, "flush.size", view)


def bundle(*args, carried=NONE, **kwargs):
    return Bundle(TP, held(*args, **kwargs), None, None, 0, carried)


def places(found):
    return [[each.any.start for each in segment.bundles] for segment in found]


def test_values_keys_and_headers_of_one_file_belong_together_and_error_objects_to_none():
    views = [held(0, 3, view=view) for view in ("headers", "keys", "value")]
    (one,) = bundles(TP, [*views, held(0, 3, view="errors")], 7, NONE)
    assert (one.value, one.keys, one.headers, one.shape) == (views[2], views[1], views[0], 7)


def test_keys_without_values_are_tombstones():
    found = list(bundles(TP, [held(0, 4, 3), held(2, 3, label="tombstone", view="keys")], 0, NONE))
    assert [(each.value is None, each.any.start) for each in found] == [(False, 0), (True, 2)]


def test_bundles_follow_each_other_by_offset_whatever_the_order_of_the_log():
    assert places(segments([bundle(5, 9), bundle(0, 3, 2), bundle(3, 5)], Span(), STRICT)) == [[0], [3], [5]]


def test_overlapping_bundles_are_merged_where_records_carry_offsets():
    carried = frozenset({"offset"})
    found = [bundle(0, 9, 5, "a", carried=carried), bundle(1, 8, 3, "b", carried=carried), bundle(9, 12)]
    assert places(segments(found, Span(), STRICT)) == [[0, 1], [9]]


def test_overlapping_bundles_without_offsets_are_refused_or_taken_one_after_the_other():
    found = [bundle(0, 9, 5, "a"), bundle(1, 8, 3, "b"), bundle(9, 12)]
    with pytest.raises(PenstockError, match=r"`a/0\.value` and `b/1\.value`.*--unordered"):
        segments(found, Span(), STRICT)
    assert places(segments(found, Span(), UNORDERED)) == [[0], [1], [9]]


@pytest.mark.parametrize(
    ("span", "taken"),
    [
        (Span(), [0, 3, 6]),
        (Span(3, 6), [3]),
        (Span(2, 4), [0, 3]),
        (Span(9), []),
        (Span(0, 0), []),
        (Span(from_ms=20), [3, 6]),
        (Span(to_ms=20), [0]),
        (Span(from_ms=20, to_ms=30), [3]),
    ],
)
def test_edges_take_the_objects_between_them(span, taken):
    found = [bundle(start, start + 3, times=(10 + 10 * n, 10 + 10 * n)) for n, start in enumerate((0, 3, 6))]
    assert [segment.start for segment in segments(found, span, STRICT)] == taken
    assert all(segment.span is span for segment in segments(found, span, STRICT))


def test_an_offset_within_an_object_with_gaps_is_refused_unless_it_is_taken_whole():
    found = [bundle(0, 10, 4)]
    with pytest.raises(PenstockError, match=r"t-0: an edge lies within `partition=0/0\.value`.*choose 0 or 10"):
        segments(found, Span(5), STRICT)
    assert places(segments(found, Span(5), WHOLE)) == [[0]]
    assert places(segments([bundle(0, 10, 4, carried=frozenset({"offset"}))], Span(5), STRICT)) == [[0]]


def test_a_time_within_an_object_of_several_times_is_refused_unless_it_is_taken_whole():
    found = [bundle(0, 10, times=(10, 30))]
    for span in (Span(from_ms=20), Span(to_ms=20)):
        with pytest.raises(PenstockError, match="of the times 10 to 30"):
            segments(found, span, STRICT)
        assert places(segments(found, span, WHOLE)) == [[0]]
    assert places(segments(found, Span(from_ms=10, to_ms=31), STRICT)) == [[0]]
    assert places(segments([bundle(0, 9, times=(1, 3), carried=frozenset({"timestamp"}))], Span(to_ms=2), STRICT)) == [
        [0]
    ]


@pytest.mark.parametrize(
    ("offset", "timestamp", "inside"),
    [(3, 20, True), (2, 20, False), (5, 20, False), (4, 30, False), (4, 9, False), (None, None, True), (4, None, True)],
)
def test_a_span_holds_what_is_not_known_to_be_outside(offset, timestamp, inside):
    assert Span(3, 5, 10, 30).holds(offset, timestamp) == inside


def test_limits_are_read_per_topic_partition_and_for_all():
    other = TopicPartition("my-topic", 3)
    found = edges(["7", "my-topic-3=12"])
    assert found == {None: 7, other: 12}
    selection = Selection((), found, {other: 20}, None, 99)
    assert selection.span(TP) == Span(7, to_ms=99)
    assert selection.span(other) == Span(12, 20, None, 99)
    assert selection.text == '{"starts":{"all":7,"my-topic-3":12},"ends":{"my-topic-3":20},"to_ms":99}'


@pytest.mark.parametrize("text", ["", "x", "t=5", "t-x=5", "-1", "t-0=", "=5"])
def test_a_limit_that_is_none_is_named(text):
    with pytest.raises(ValueError, match=f"got `{text}`"):
        edges([text])


def test_a_limit_given_twice_is_refused():
    with pytest.raises(ValueError, match="names t-0 twice"):
        edges(["t-0=1", "t-0=2"])


def entry(seq, **given):
    return Entry(seq=seq, writer="w", host="h", time_ms=0, time="", **given)


def test_objects_have_the_configuration_that_was_recorded_before_their_commit():
    first, second = {"flush.size": "3"}, {"flush.size": "5"}
    log = [
        entry(1, config=first, intent=Plan((), 0)),
        entry(2, commits=(Commit(TP, 3, (held(0, 3),)),), config=second),
        entry(3, commits=(Commit(TP, 8, (held(3, 8), held(4, 5, view="errors"))), Commit(TopicPartition("u", 0), 0))),
        entry(4, config=first),
        entry(5, commits=(Commit(TP, 9, (held(8, 9),)),)),
    ]
    history = read(log, lambda topic: topic == "t", lambda _: NONE)
    assert [history.shapes[each.shape] for each in history.bundles[TP]] == [first, second, first]
    assert (list(history.bundles), history.topics, history.rejected) == ([TP], {"t"}, 1)


def history(*tps):
    return History(
        {tp: (Bundle(tp, held(0, 3), None, None, 0, NONE),) for tp in tps}, ({},), frozenset(tp.topic for tp in tps)
    )


def test_a_topic_goes_under_its_own_name_or_another_in_the_same_partition():
    (own,) = planned(history(TopicPartition("t", 4)), Selection(), None, STRICT, "c")
    (other,) = planned(history(TopicPartition("t", 4)), Selection(), "t2", STRICT, "c")
    assert (str(own.to), str(other.to), other.records) == ("t-4", "t2-4", 3)


@pytest.mark.parametrize(
    ("selection", "to_topic", "words"),
    [
        (Selection(("x",)), None, "nothing of `x`; topics with objects: `t`, `u`"),
        (Selection((), {TopicPartition("t", 9): 1}), None, "nothing of `t-9`"),
        (Selection(), "one", "--to-topic is for one topic, but there are `t`, `u`"),
    ],
)
def test_what_is_not_there_is_named(selection, to_topic, words):
    with pytest.raises(UsageError, match=words):
        planned(history(TP, TopicPartition("u", 0)), selection, to_topic, STRICT, "c")


def test_the_map_has_a_row_for_each_run_of_offsets():
    known = [Sent(start, start + 1, new, is_known=True) for start, new in ((0, 10), (1, 11), (2, 13), (5, 14), (6, 15))]
    unknown = [Sent(7, 20, 16, is_known=False), Sent(7, 20, 17, is_known=False), Sent(20, 30, 18, is_known=False)]
    made = rows([*known, *unknown])
    assert made == [
        Row(0, 2, 10, 12, 2),
        Row(2, 3, 13, 14, 1),
        Row(5, 7, 14, 16, 2),
        Row(7, 20, 16, 18, 2),
        Row(20, 30, 18, 19, 1),
    ]
    assert [row.is_exact for row in made] == [True, True, True, False, False]


def test_a_position_is_read_as_it_was_stored_and_a_stranger_s_is_refused():
    position = Position("{}", 7, None, (Row(0, 2, 10, 12, 2),), "part")
    assert Position.read(position.metadata, "g") == position
    with pytest.raises(PenstockError, match="`g` has offsets that no restore committed"):
        Position.read("penstock", "g")


@pytest.mark.parametrize(
    ("position", "left"),
    [
        (Position("", -1, None), [(0, 0), (3, 0), (6, 0)]),
        (Position("", 0, 2), [(0, 2), (3, 0), (6, 0)]),
        (Position("", 3, None), [(6, 0)]),
        (Position("", 6, 1), [(6, 1)]),
        (Position("", 6, None), []),
    ],
)
def test_what_is_left_begins_where_the_position_is(position, left):
    found = segments([bundle(0, 3), bundle(3, 6), bundle(6, 9)], Span(), STRICT)
    assert [(segment.start, done) for segment, done in Work(TP, TP, found, position).left] == left
