"""What a job that Spark could not finish is told as."""

import os
import time

import pytest

from penstock import job as job_module
from penstock.errors import JobFailed, TakenOverError
from penstock.holding import Watched
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

    def hangs(_spec, _share):
        time.sleep(600)

    return {"raises": raises, "dies": dies, "hangs": hangs}[what]


@pytest.mark.parametrize(
    ("what", "words"), [("raises", "the Spark job failed: ArithmeticError: two"), ("dies", "the Spark job failed: ")]
)
def test_a_task_that_raises_or_dies_is_a_failed_job_in_one_line(spark, monkeypatch, what, words):
    monkeypatch.setattr(job_module, "run_share", task(what))
    with pytest.raises(JobFailed) as caught:
        SparkJob(lambda: spark.sparkContext, None, 1)(PLAN, None, 1)
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)


class Lost:
    """A log that a newer instance holds by the time anybody looks, which is once the job runs."""

    def __init__(self, spark):
        self.jobs = spark.sparkContext.statusTracker()

    def check_held(self):
        if self.jobs.getActiveJobsIds():
            msg = "connector `x` was taken over"
            raise TakenOverError(msg)


def test_a_job_that_hangs_is_cancelled_when_a_newer_instance_took_over(spark, monkeypatch):
    monkeypatch.setattr(job_module, "run_share", task("hangs"))
    job = SparkJob(lambda: spark.sparkContext, None, 1)
    with pytest.raises(TakenOverError, match="connector `x` was taken over"):
        Watched(job, Lost(spark), 0.1)(PLAN, None, 1)
    assert spark.range(3).count() == 3  # the session goes on, for whoever else uses it
    assert list(spark.sparkContext.getJobTags()) == []
