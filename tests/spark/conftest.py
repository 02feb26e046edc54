"""One Spark session for all tests of this folder: it takes longer to start than they take to run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from transforming import Connector

import penstock
from connecting import record_writer
from penstock.spark import session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import SparkSession

    from connecting import Rec


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session that knows Penstock's data sources."""
    opened = session(2, {})
    opened.conf.set("spark.sql.session.timeZone", "UTC")
    penstock.register(opened)
    yield opened
    opened.stop()


@pytest.fixture(scope="session")
def write_records(stack) -> Iterator[Callable[[str, Iterable[Rec]], None]]:
    """Produce records: `write_records(topic, records)`."""
    with record_writer(stack) as write:
        yield write


@pytest.fixture
def connector(stack, spark, s3, bucket, make_topic):
    """A connector with a topic of its own, of two partitions."""
    return Connector(stack, spark, s3, bucket, make_topic(2))
