"""What the tasks of a transformed job need to know."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from penstock.config import SinkConfig
    from penstock.kafka.settings import KafkaSettings
    from penstock.model import PlannedRange, TopicPartition
    from penstock.sources.values import Values

NUMBER = "_penstock_number"
"""The hidden column that every row keeps on its way through the query: the record's number within its task."""


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """What the reading side needs; pickled to the executors.

    `job`: a name that no other job has; empty where no ledger is wanted. `shares`: the ranges of each task. `columns`:
    what rows are made of, the number first. `keys`, `headers`, `originals`: what the writing side needs of each record.
    `grows`: a range ends before the first record whose value has more than the type. `refused`: offsets that Spark is
    not to be asked about, and why.
    """

    job: str
    kafka: KafkaSettings
    values: Values
    shares: tuple[tuple[PlannedRange, ...], ...]
    columns: pa.Schema
    keys: bool = False
    headers: bool = False
    originals: bool = False
    grows: bool = True
    refused: Mapping[TopicPartition, Mapping[int, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WriteSpec:
    """What the writing side needs; pickled to the executors. `seq`: the entry that recorded the plan.

    `schema`: the Avro schema of the result; its columns stand behind the number.
    """

    job: str
    config: SinkConfig
    kafka: KafkaSettings
    seq: int
    now_ms: int
    shares: tuple[tuple[PlannedRange, ...], ...]
    schema: str
