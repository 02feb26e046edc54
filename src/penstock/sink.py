"""`penstock.Sink`: one connector, from its properties to its objects, in a process of yours.

from penstock import Sink
Sink.from_properties("etc/quickstart-s3.properties").run(until_done=True)
"""

from __future__ import annotations

import functools
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock import crashpoints
from penstock.completing import time_path
from penstock.errors import PenstockError
from penstock.job import SparkJob
from penstock.loading import load
from penstock.loop import keep_running, open_patiently, silent
from penstock.pipeline import check
from penstock.report import RunSummary, SinkStatus, run_summary, running_status, stored_status
from penstock.running import Running
from penstock.spark import context, session
from penstock.summary import Activity, CycleSummary, FlushRequest
from penstock.transform.job import TransformingJob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from penstock.config import SinkConfig
    from penstock.kafka.settings import KafkaSettings
    from penstock.loading import Source
    from penstock.transform.runner import Transformer

_LOOK_SECONDS = 0.5


@functools.lru_cache(maxsize=4)
def _transformer(get: Callable[[], SparkSession], kafka: KafkaSettings) -> Transformer:
    from penstock.transform.runner import Transformer  # noqa: PLC0415 - half a second that most need not wait

    return Transformer(get, kafka)


class Sink:
    """One connector. Exactly-once: whatever ends this process, the next one goes on from what is in S3.

    Two instances of one connector do not harm each other: the newer takes over, the older one raises `TakenOverError`.
    """

    def __init__(self, config: SinkConfig, kafka: KafkaSettings) -> None:
        check(config)
        if config.completeness.markers:
            time_path(config)
        self.config = config
        self.kafka = kafka
        self._running: Running | None = None

    @classmethod
    def from_properties(
        cls,
        connector: Source,
        worker: Source | None = None,
        *,
        directory: Path | None = None,
    ) -> Sink:
        """Read a connector's properties: a file (properties or Connect's JSON), or a mapping.

        `worker`: where Kafka is; without one, the embedded stack in `directory` (default ~/.penstock) if it runs.

        Raises:
            ConfigError: every mistake at once.
        """
        return cls(*load(connector, worker, directory))

    @property
    def name(self) -> str:
        """The connector's name."""
        return self.config.name

    @property
    def is_running(self) -> bool:
        """Whether a thread of this process runs it, with its state log taken over."""
        return self._running is not None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is odd about the configuration, but harmless."""
        return self.config.warnings

    def run(
        self,
        spark: SparkSession | None = None,
        *,
        until_done: bool = False,
        stop: threading.Event | None = None,
        tell: Callable[[Activity], None] = silent,
    ) -> RunSummary:
        """Move records until `stop` is set, or, with `until_done`, until all that can be closed now is committed.

        What is away for a while (broker, store, registry) is waited for, with a line in the log. A topic-partition
        that cannot go on is left where it stands and reported; the others go on. `tell` hears what is being done.

        Raises:
            TakenOverError: a newer instance of this connector runs.
            PenstockError: something is wrong from the start, or stays so.
        """
        stop = stop or threading.Event()
        opening = functools.partial(self._open, spark)
        with opening() if until_done else open_patiently(opening, stop) as running, self._shown(running):
            return run_summary(running, keep_running(running, stop, until_done=until_done, tell=tell))

    def run_once(self, spark: SparkSession | None = None) -> CycleSummary:
        """One cycle: what an earlier run left unfinished, or else what is worth writing now."""
        with self._open(spark) as running:
            cycle = running.cycle(running.ends(), thorough=True)
            return CycleSummary() if cycle is None else CycleSummary().plus(cycle)

    def flush(self, spark: SparkSession | None = None) -> CycleSummary:
        """Close and commit everything that is in Kafka now, full or not.

        While the connector runs in another thread, that one does it.
        """
        running = self._running
        if running is not None:
            request = FlushRequest()
            running.flushes.append(request)
            while not request.done.wait(_LOOK_SECONDS) and self._running is running:
                pass
            if not request.done.is_set():  # it came too late for the run to see it
                request.error = self._ended()
            if request.error is not None:
                raise request.error
            return request.committed
        with self._open(spark) as running:
            goal, done = running.ends(), CycleSummary()
            while (cycle := running.cycle(goal, forced=True)) is not None:
                done = done.plus(cycle)
            return done

    def status(self) -> SinkStatus:
        """Positions, lag and errors, from any thread; asks Kafka, and S3 when this object does not run itself."""
        running = self._running
        if running is not None:
            return running_status(self.name, running, self.kafka)
        return stored_status(self.config, self.kafka)

    def _open(self, spark: SparkSession | None) -> Running:
        crashpoints.arm()
        config = self.config

        @functools.cache
        def core() -> SparkContext:
            rows = config.transform.wanted
            return context(config.tasks_max, config.spark, rows=rows) if spark is None else spark.sparkContext

        @functools.cache
        def sql() -> SparkSession:
            return spark or session(config.tasks_max, config.spark)

        job = SparkJob(core, self.kafka, config.tasks_max)
        transforming = TransformingJob(job, functools.partial(_transformer, sql, self.kafka), config.tasks_max)
        return Running.open(self.config, self.kafka, transforming, transforming.prepare)

    @contextmanager
    def _shown(self, running: Running) -> Iterator[None]:
        """While it runs, `status` asks the running connector."""
        self._running = running
        try:
            yield
        finally:
            self._running = None
            for request in running.flushes:
                request.error = self._ended()
                request.done.set()

    def _ended(self) -> PenstockError:
        return PenstockError(f"connector `{self.name}` ended before everything open was closed")
