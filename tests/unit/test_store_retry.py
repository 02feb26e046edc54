import logging

import pytest

from penstock.store.retry import RetryPolicy

# Seed 001, "Automatic Retries": the longest wait before each retry with s3.retry.backoff.ms=200, in seconds.
TABLE = {1: 0.2, 2: 0.4, 3: 0.8, 4: 1.6, 5: 3.2, 6: 6.4, 7: 12.8, 8: 25.6, 9: 51.2, 10: 102.4}
LATER = {15: 3276.8, 16: 6553.6, 17: 13107.2, 18: 26214.4, 19: 52428.8, 20: 86400.0, 21: 86400.0, 5000: 86400.0}
TOTALS = {3: 1.4, 10: 204.6, 15: 6553.4, 19: 104857.4, 20: 191257.4, 21: 277657.4}


def waits(policy_retries, jitter, backoff_ms=200):
    """What is slept in seconds if every try fails."""
    slept = []
    policy = RetryPolicy(policy_retries, backoff_ms, slept.append, lambda: jitter)

    def fail():
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011 - what was raised last is raised
        policy.call(fail, lambda _: True)
    return slept


@pytest.mark.parametrize(("retry", "seconds"), {**TABLE, **LATER}.items())
def test_the_longest_wait_doubles_up_to_a_day(retry, seconds):
    assert RetryPolicy().longest_wait_ms(retry) == seconds * 1000


@pytest.mark.parametrize(("retries", "seconds"), TOTALS.items())
def test_all_waits_together_are_those_of_the_documentation(retries, seconds):
    assert sum(waits(retries, 1.0)) == pytest.approx(seconds)


def test_each_wait_is_drawn_between_nothing_and_the_longest():
    assert waits(3, 0.0) == [0, 0, 0]
    assert waits(3, 0.5) == pytest.approx([0.1, 0.2, 0.4])
    assert waits(2, 0.5, backoff_ms=1000) == pytest.approx([0.5, 1.0])
    assert waits(0, 1.0) == []


def test_only_what_may_pass_is_tried_again_and_each_retry_is_told(caplog):
    answers = [OSError("first"), OSError("second"), "done"]

    def request():
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    policy = RetryPolicy(3, 200, lambda _: None, lambda: 1.0)
    with caplog.at_level(logging.WARNING, "penstock.store"):
        assert policy.call(request, lambda error: isinstance(error, OSError)) == "done"
    assert [record.getMessage() for record in caplog.records] == [
        "s3.retry retry=1 wait_s=0.200 reason=first",
        "s3.retry retry=2 wait_s=0.400 reason=second",
    ]
    answers.append(OSError("third"))
    with pytest.raises(OSError, match="third"):
        policy.call(request, lambda _: False)
    assert answers == []
