"""A job that runs plans with the transformation they were made with, and all others as they always ran."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from penstock.crashpoints import reach
from penstock.errors import ConfigError, JobFailed
from penstock.job import cause, split
from penstock.model import Commit, Receipt
from penstock.sources.edge import words
from penstock.transform.culprits import culprits

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.config import SinkConfig
    from penstock.job import SparkJob
    from penstock.model import Plan, PlannedRange
    from penstock.transform.runner import Transformer

_log = logging.getLogger("penstock.engine")
_CANCELLED = "SPARK_JOB_CANCELLED"
_FAILURES = (Py4JError, PySparkException, OSError)


@dataclass(frozen=True, slots=True)
class TransformingJob:
    """Runs plans on Spark, `tasks` at once. `plain`: what runs those without a transformation.

    `transformer`: what runs the others; called only where there is one, as it takes long to import.
    """

    plain: SparkJob
    transformer: Callable[[], Transformer]
    tasks: int

    def prepare(self, config: SinkConfig) -> SinkConfig | None:
        """See `Transformer.prepare`."""
        return self.transformer().prepare(config) if config.transform.wanted else config

    def __call__(self, plan: Plan, config: SinkConfig, seq: int) -> list[Receipt]:
        """One receipt per range of the plan.

        Raises:
            JobFailed: Spark gave up on it, for a reason of its own.
        """
        if not config.transform.wanted:
            return self.plain(plan, config, seq)
        with self.plain.tagged():
            return self._transformed(plan, config, seq)

    def cancel(self) -> None:
        """End what runs, from another thread; it raises `JobFailed` then."""
        self.plain.cancel()

    def _transformed(self, plan: Plan, config: SinkConfig, seq: int) -> list[Receipt]:
        transformer = self.transformer()
        try:
            if not transformer.are_tables_the_same(config):
                _log.info("plan.dropped seq=%d reason=a table changed", seq)
                return untouched(plan)
        except ConfigError as error:  # the current configuration was checked: it is an older plan's
            _log.warning("plan.dropped seq=%d reason=%s", seq, error)
            return untouched(plan)
        reach("job.started")
        plan = _as_far_as_known(transformer, plan, config)
        try:
            return self._run(transformer, plan, config, seq)
        except _FAILURES as error:
            before = transformer.failing(plan)
            if _CANCELLED not in str(error):
                plan = _looked_through(transformer, plan, config)
            if transformer.failing(plan) == before:
                msg = f"the Spark job failed: {told(error)}"
                raise JobFailed(msg) from error
        try:
            return self._run(transformer, plan, config, seq)
        except _FAILURES as error:
            msg = f"the Spark job failed: {told(error)}"
            raise JobFailed(msg) from error

    def _run(self, transformer: Transformer, plan: Plan, config: SinkConfig, seq: int) -> list[Receipt]:
        shares = tuple(split(plan.ranges, self.tasks))
        return transformer.run(plan, shares, config, seq, transformer.failing(plan))


def _as_far_as_known(transformer: Transformer, plan: Plan, config: SinkConfig) -> Plan:
    """The plan up to the first record of each range that stops it."""
    if config.errors.tolerance == "all":
        return plan
    known = transformer.failing(plan)
    ranges = tuple(
        replace(each, end=min(known[each.tp]) + 1, closing=None) if each.tp in known else each for each in plan.ranges
    )
    return replace(plan, ranges=ranges)


def _looked_through(transformer: Transformer, plan: Plan, config: SinkConfig) -> Plan:
    """The plan as far as it is known now which records the query fails on; `Transformer.failing` has them."""

    def fails(planned: PlannedRange) -> str | None:
        try:
            transformer.evaluate(planned, config, plan.now_ms)
        except PySparkException as error:
            if _CANCELLED in str(error):
                msg = "the Spark job failed: it was cancelled"
                raise JobFailed(msg) from error
            return f"the transformation fails on it: {told(error)}; mend {config.transform.name}"
        except (Py4JError, OSError) as error:
            msg = f"the Spark job failed: {told(error)}"
            raise JobFailed(msg) from error
        return None

    ranges = []
    for planned in plan.ranges:
        found, end = culprits(planned, fails, every=config.errors.tolerance == "all")
        transformer.fails_on(planned.tp, found)
        ranges.append(planned if end == planned.end else replace(planned, end=end, closing=None))
    return replace(plan, ranges=tuple(ranges))


def told(error: Exception) -> str:
    """What a failed job says happened, in one line."""
    return cause(error) if "Traceback (most recent call last)" in str(error) else words(error)


def untouched(plan: Plan) -> list[Receipt]:
    """Receipts of a plan that is not run: it is closed, and planning starts anew."""
    return [Receipt(Commit(each.tp, each.start), each.start) for each in plan.ranges]
