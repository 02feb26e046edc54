import pytest

from penstock.errors import StateError
from penstock.model import TopicPartition
from penstock.positions import GroupPosition, Policy, first_positions

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
STARTS, ENDS = {A: 5, B: 0}, {A: 90, B: 40}
CONNECT, OURS = GroupPosition(30, ours=False), GroupPosition(20, ours=True)


def policy(reset="earliest", on_missing_state="fail"):
    return Policy("s3-sink", "connect-s3-sink", "s3://b/_penstock/s3-sink/", reset, on_missing_state)


@pytest.mark.parametrize(
    ("group", "rules", "expected"),
    [
        ({}, policy(), {A: 5, B: 0}),
        ({}, policy("latest"), {A: 90, B: 40}),
        ({A: CONNECT}, policy(), {A: 30, B: 0}),
        ({A: CONNECT}, policy("latest"), {A: 30, B: 40}),
        ({A: CONNECT, B: CONNECT}, policy("none"), {A: 30, B: 30}),
        ({A: OURS}, policy(on_missing_state="resume"), {A: 20, B: 0}),
        ({A: OURS}, policy(on_missing_state="reset"), {A: 5, B: 0}),
        ({A: OURS, B: CONNECT}, policy(on_missing_state="reset"), {A: 5, B: 30}),
    ],
)
def test_a_new_topic_partition_begins_where_connect_stood_or_as_the_reset_policy_says(group, rules, expected):
    assert first_positions([B, A], group, STARTS, ENDS, rules) == expected


def test_only_mirrored_offsets_mean_a_deleted_state_and_the_choices_are_named():
    with pytest.raises(StateError) as caught:
        first_positions([A, B], {A: OURS}, STARTS, ENDS, policy())
    text = str(caught.value)
    assert "s3://b/_penstock/s3-sink/" in text
    assert "t-0 up to offset 20" in text
    assert "`resume`" in text
    assert "`reset`" in text


def test_nothing_to_go_by_and_no_reset_policy_is_an_error_that_names_the_partition():
    with pytest.raises(StateError, match=r"t-1: consumer group `connect-s3-sink` has no offset"):
        first_positions([A, B], {A: CONNECT}, STARTS, ENDS, policy("none"))
