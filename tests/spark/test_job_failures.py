"""What a job that Spark could not finish is told as."""

import os

import pytest

from penstock import job as job_module
from penstock.errors import JobFailed
from penstock.job import SparkJob
from penstock.model import Plan, PlannedRange, TopicPartition

pytestmark = pytest.mark.spark

PLAN = Plan((PlannedRange(TopicPartition("t", 0), 0, 1),), 0)


def task(what):
    """Made here, so that it travels to Spark's worker by value: tests are no module there."""

    def raises(_spec, _share):
        msg = "two\nlines"
        raise ArithmeticError(msg)

    def dies(_spec, _share):
        os._exit(7)

    return {"raises": raises, "dies": dies}[what]


@pytest.mark.parametrize(
    ("what", "words"), [("raises", "the Spark job failed: ArithmeticError: two"), ("dies", "the Spark job failed: ")]
)
def test_a_task_that_raises_or_dies_is_a_failed_job_in_one_line(spark, monkeypatch, what, words):
    monkeypatch.setattr(job_module, "run_share", task(what))
    with pytest.raises(JobFailed) as caught:
        SparkJob(lambda: spark, None, 1)(PLAN, None, 1)
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)
