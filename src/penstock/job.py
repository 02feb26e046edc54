"""The Spark job: a plan's ranges over tasks, each of them read -> convert -> cut -> encode -> upload.

Only receipts come back to the driver (docs/decisions/0004-fused-job.md). A task may run twice, on any executor: uploads
are create-only, and an object that this very plan wrote already is taken as it is.
"""

from __future__ import annotations

import heapq
import re
import uuid
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from penstock.crashpoints import reach
from penstock.errors import JobFailed
from penstock.kafka.reader import read
from penstock.kafka.troubles import RangeFault
from penstock.model import Records
from penstock.pipeline import build
from penstock.rangewriter import RangeWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark import SparkContext

    from penstock.config import SinkConfig
    from penstock.kafka.settings import KafkaSettings
    from penstock.model import Plan, PlannedRange, Receipt

T = TypeVar("T")
U = TypeVar("U")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt|Killed)\b.*:")


@dataclass(frozen=True, slots=True)
class Spec:
    """What every task of a job needs to know; pickled to the executors. `seq`: the entry that recorded the plan."""

    config: SinkConfig
    kafka: KafkaSettings
    seq: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class SparkJob:
    """Runs plans on Spark, `tasks` at once."""

    context: Callable[[], SparkContext]
    kafka: KafkaSettings
    tasks: int
    tag: str = field(default_factory=lambda: f"penstock-{uuid.uuid4().hex}")

    def __call__(self, plan: Plan, config: SinkConfig, seq: int) -> list[Receipt]:
        """One receipt per range of the plan.

        Raises:
            JobFailed: Spark gave up on it, for a reason of its own.
        """
        shares = split(plan.ranges, self.tasks)
        run = partial(run_share, Spec(config, self.kafka, seq, plan.now_ms))
        reach("job.started")
        with self.tagged() as context:
            return on_spark(context, shares, run)

    @contextmanager
    def tagged(self) -> Iterator[SparkContext]:
        """Spark; what this thread runs on it meanwhile can be cancelled."""
        context = self.context()
        context.addJobTag(self.tag)
        try:
            yield context
        finally:
            context.removeJobTag(self.tag)

    def cancel(self) -> None:
        """End what runs, from another thread; it raises `JobFailed` then."""
        self.context().cancelJobsWithTag(self.tag)


def on_spark(context: SparkContext, shares: Sequence[T], run: Callable[[T], Iterable[U]]) -> list[U]:
    """What `run` gives for each share, a Spark task each.

    Raises:
        JobFailed: Spark gave up on it, for a reason of its own.
    """
    try:
        found: list[U] = context.parallelize(shares, len(shares)).flatMap(run).collect()
    except (Py4JError, PySparkException, OSError) as error:
        msg = f"the Spark job failed: {cause(error)}"
        raise JobFailed(msg) from error
    return found


def cause(error: Exception) -> str:
    """The line of a Spark failure that says what happened: the last one of the innermost Python traceback, if any."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if _EXCEPTION.match(line)]
    return (named or lines or [repr(error)])[0][:300]


def split(ranges: tuple[PlannedRange, ...], tasks: int) -> list[tuple[PlannedRange, ...]]:
    """The ranges over at most `tasks` shares of about the same number of offsets, none of them empty."""
    shares: list[list[PlannedRange]] = [[] for _ in range(min(tasks, len(ranges)))]
    heap = [(0, index) for index in range(len(shares))]
    for each in sorted(ranges, key=lambda r: (-r.offsets, r.tp)):
        load, index = heapq.heappop(heap)
        shares[index].append(each)
        heapq.heappush(heap, (load + each.offsets, index))
    return [tuple(share) for share in shares]


def run_share(spec: Spec, share: tuple[PlannedRange, ...]) -> list[Receipt]:
    """What one task does with its ranges."""
    pipeline, options = build(spec.config, spec.kafka, spec.seq)
    with closing(pipeline.budget):
        writers = {planned.tp: RangeWriter(planned, pipeline, spec.now_ms) for planned in share}
        for item in read(share, options, pipeline.gather):
            if isinstance(item, Records):
                writers[item.tp].write(item)
            elif isinstance(item, RangeFault):
                writers[item.tp].stop(item.error, item.offset)
        return [writer.finish() for writer in writers.values()]
