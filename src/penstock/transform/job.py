"""A job that runs plans with the transformation they were made with, and all others as they always ran."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from penstock.crashpoints import reach
from penstock.errors import ConfigError, JobFailed
from penstock.job import split
from penstock.model import Commit, Receipt
from penstock.sources.edge import sentence

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.config import SinkConfig
    from penstock.engine import Job
    from penstock.model import Plan
    from penstock.transform.runner import Transformer

_log = logging.getLogger("penstock.engine")


@dataclass(frozen=True, slots=True)
class TransformingJob:
    """Runs plans on Spark, `tasks` at once. `plain`: what runs those without a transformation.

    `transformer`: what runs the others; called only where there is one, as it takes long to import.
    """

    plain: Job
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
        transformer = self.transformer()
        try:
            transformer.check(config)
        except ConfigError as error:  # the current configuration was checked: it is an older plan's
            _log.warning("plan.dropped seq=%d reason=%s", seq, error)
            return untouched(plan)
        shares = tuple(split(plan.ranges, self.tasks))
        reach("job.started")
        try:
            return transformer.run(plan, shares, config, seq)
        except (Py4JError, PySparkException, OSError) as error:
            msg = f"the Spark job failed: {sentence(error)}"
            raise JobFailed(msg) from error


def untouched(plan: Plan) -> list[Receipt]:
    """Receipts of a plan that is not run: it is closed, and planning starts anew."""
    return [Receipt(Commit(each.tp, each.start), each.start) for each in plan.ranges]
