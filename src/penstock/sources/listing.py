"""Committed objects, through the state log: what is not in a commit is not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import StateError
from penstock.sources.columns import MICROSECONDS
from penstock.sources.filters import passes
from penstock.statelog import StateLog, history
from penstock.statelog.log import Writer
from penstock.store.s3 import store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.sources.filters import Condition
    from penstock.sources.object_options import ObjectOptions
    from penstock.statelog import Head

COLUMNS = {"_topic": pa.string(), "_partition": pa.int32(), "_object": pa.string()}
DETAILS = {
    "_encoded_partition": pa.string(),
    "_start_offset": pa.int64(),
    "_end_offset": pa.int64(),
    "_min_timestamp": MICROSECONDS,
    "_max_timestamp": MICROSECONDS,
    "_entry": pa.int64(),
}


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as the log has it. Offsets are `[start, end)`; times in milliseconds."""

    key: str
    topic: str
    partition: int
    encoded_partition: str
    start: int
    end: int
    min_timestamp: int
    max_timestamp: int
    entry: int
    records: int
    size: int
    crc32c: str
    schema: str

    @property
    def columns(self) -> dict[str, Any]:
        """What its rows have in `COLUMNS` and `DETAILS`; times in microseconds."""
        return {
            "_topic": self.topic,
            "_partition": self.partition,
            "_object": self.key,
            "_encoded_partition": self.encoded_partition,
            "_start_offset": self.start,
            "_end_offset": self.end,
            "_min_timestamp": self.min_timestamp * 1000,
            "_max_timestamp": self.max_timestamp * 1000,
            "_entry": self.entry,
        }


def head_of(options: ObjectOptions) -> Head:
    """What the log says now.

    Raises:
        StateError: there is no such log, or it is broken, or it ends before the entry that was asked for.
    """
    reader = Writer("", "", lambda: 0)  # nothing is appended
    head = StateLog("", store(options.state), options.names, reader).read()
    if head.seq == 0:
        msg = f"there is no state log at {options.url}; correct the path, or run the connector first"
        raise StateError(msg)
    if options.as_of is not None and options.as_of > head.seq:
        msg = f"asOfEntry is {options.as_of}, but the state log at {options.url} ends at entry {head.seq}"
        raise StateError(msg)
    return head


def committed(options: ObjectOptions, conditions: Iterable[Condition] = ()) -> Iterator[StoredObject]:
    """The objects that count, in the order of the log, without those of which no row can pass.

    Raises:
        StateError: something of the log is missing or damaged.
    """
    wanted = tuple(conditions)
    for table in history.tables(store(options.state), options.names):
        chosen = table.filter(pc.equal(table["view"], options.view))
        if options.as_of is not None:
            chosen = chosen.filter(pc.less_equal(chosen["entry"], options.as_of))
        for row in chosen.to_pylist():
            found = _object(row)
            if passes(wanted, found.columns):
                yield found


def _object(row: dict[str, Any]) -> StoredObject:
    kept = ("topic", "partition", "encoded_partition", "start", "end", "min_timestamp", "max_timestamp", "entry")
    more = ("key", "records", "size", "crc32c", "schema")
    return StoredObject(**{name: row[name] for name in (*kept, *more)})
