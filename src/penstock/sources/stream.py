"""`spark.readStream.format("penstock.kafka")`: micro-batches between offsets that Spark's checkpoint keeps.

Offsets are written as Spark's own Kafka source writes them, so that a query may change its source and go on.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows, SupportsTriggerAvailableNow

from penstock.errors import DataLossError
from penstock.kafka.cluster import Cluster
from penstock.model import PlannedRange
from penstock.sources.edge import plainly
from penstock.sources.positions import LATEST, Everywhere, as_json, limited, of_json
from penstock.sources.ranges import checked, existing, pieces, start_offsets
from penstock.sources.shares import Share

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.streaming.datasource import ReadLimit

    from penstock.sources.options import KafkaOptions
    from penstock.sources.positions import Offsets
    from penstock.sources.reading import Reading


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives on the driver as long as the query, which asks it in turn for offsets and for what to read between them.

    The task's side of it is `read` alone.
    """

    def __init__(self, options: KafkaOptions, reading: Reading) -> None:
        self.options = options
        self.reading = reading
        self._target: Offsets | None = None
        self._last_trigger = time.monotonic()

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below
        """Where a new query begins."""
        with plainly(), Cluster(self.options.kafka) as kafka:
            tps = existing(self.options, kafka)
            log = kafka.log_starts(tps), kafka.log_ends(tps)
            return as_json(start_offsets(self.options, kafka, self.options.start or Everywhere(LATEST), log))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """What the options say; Spark puts everything there is in its place where the trigger says so."""
        if self.options.max_offsets is not None:
            return ReadMaxRows(self.options.max_offsets)
        return ReadMinRows(self.options.min_offsets) if self.options.min_offsets else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember what is there now; what comes later is for the next run."""
        with plainly():
            self._target = self._ends()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Where the next micro-batch ends: at `start` where it is to wait."""
        with plainly():
            begun = of_json(start)
            ends = self._ends() if self._target is None else self._target
            begin = self._with_new(begun, ends)
            ends = self._with_gone(begin, ends)
            if self._target is None and not isinstance(limit, ReadAllAvailable) and self._waits(begin, ends):
                return start
            self._last_trigger = time.monotonic()
            return as_json(limited(begin, ends, limit.max_rows) if isinstance(limit, ReadMaxRows) else ends)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """The logs' ends, for the query's progress."""
        with plainly():
            return as_json(self._ends())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """What the tasks of a micro-batch read."""
        with plainly():
            ends = of_json(end)
            begin = self._with_new(of_json(start), ends)
            moved = [tp for tp in sorted(ends) if ends[tp] > begin[tp]]
            if not moved:
                return []
            with Cluster(self.options.kafka) as kafka:
                starts, log_ends = kafka.log_starts(moved), kafka.log_ends(moved)
            spans = {tp: checked(self.options, tp, (begin[tp], ends[tp]), (starts[tp], log_ends[tp])) for tp in moved}
            ranges = [PlannedRange(tp, a, b) for tp, (a, b) in spans.items() if a < b]
            return [Share(each) for each in pieces(self.options, ranges)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In the task: its rows."""
        with plainly():
            yield from self.reading.batches(partition.ranges if isinstance(partition, Share) else ())

    def commit(self, end: dict[str, Any]) -> None:
        """Spark's checkpoint is all there is."""

    def stop(self) -> None:
        """Nothing is open between calls."""

    def _ends(self) -> Offsets:
        with Cluster(self.options.kafka) as kafka:
            return kafka.log_ends(existing(self.options, kafka))

    def _with_new(self, begun: Offsets, ends: Offsets) -> Offsets:
        """Topic-partitions that came into being meanwhile begin with their first record.

        Raises:
            DataLossError: that is gone already.
        """
        new = [tp for tp in ends if tp not in begun]
        if not new:
            return begun
        with Cluster(self.options.kafka) as kafka:
            starts = kafka.log_starts(new)
        late = [tp for tp in new if starts[tp] > 0]
        if late and self.options.fail_on_data_loss:
            msg = (
                f"{late[0]}@0: it came into being after the query began, and its log starts at `{starts[late[0]]}` "
                "already; failOnDataLoss=false goes on there"
            )
            raise DataLossError(msg)
        return {**begun, **starts}

    def _with_gone(self, begin: Offsets, ends: Offsets) -> Offsets:
        """Ends that never lie before where the query stands.

        Raises:
            DataLossError: a topic-partition is gone, or its log is shorter than it was.
        """
        for tp, offset in begin.items():
            if self.options.fail_on_data_loss and ends.get(tp, -1) < offset:
                what = f"its log ends at `{ends[tp]}`" if tp in ends else "it is not there any more"
                msg = f"{tp}@{offset}: {what}: the topic was deleted or made anew; failOnDataLoss=false goes on"
                raise DataLossError(msg)
        return {tp: max(offset, begin[tp]) for tp, offset in ends.items()}

    def _waits(self, begin: Offsets, ends: Offsets) -> bool:
        """Whether there is too little for a micro-batch yet (`minOffsetsPerTrigger`, `maxTriggerDelay`)."""
        waiting = sum(offset - begin[tp] for tp, offset in ends.items())
        waited_ms = (time.monotonic() - self._last_trigger) * 1000
        return waiting < self.options.min_offsets and waited_ms < self.options.max_delay_ms
