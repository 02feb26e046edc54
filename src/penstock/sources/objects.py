"""`spark.read.format("penstock")`: the objects that a connector committed, as one DataFrame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from penstock.errors import ConfigError
from penstock.sources.contents import MissingError, arrays, kind_of, type_of
from penstock.sources.edge import plainly
from penstock.sources.filters import accept
from penstock.sources.framing import Framing
from penstock.sources.listing import COLUMNS, DETAILS, committed, head_of
from penstock.sources.object_options import FORMAT, parse
from penstock.sources.types import Unmergeable, merge
from penstock.store.s3 import store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from penstock.sources.filters import Condition
    from penstock.sources.listing import StoredObject
    from penstock.sources.object_options import ObjectOptions

_ALL = {**COLUMNS, **DETAILS}
_SMALL, _LARGE, _PIECES = 1 << 20, 64 << 20, 16
_LOOKED_AT = 20


class ObjectSource(DataSource):
    """The data source; Spark makes one for each query."""

    @classmethod
    def name(cls) -> str:
        """What `format` takes."""
        return FORMAT

    def schema(self) -> StructType:
        """The fields of the records, whatever schema each object has, and where each record is from."""
        with plainly():
            options = parse(self.options)
            framing = Framing.of(head_of(options).config or {})
            return from_arrow_schema(columns(options, list(committed(options)), framing))

    def reader(self, schema: StructType) -> ObjectReader:
        """What reads it."""
        with plainly():
            return ObjectReader(parse(self.options), to_arrow_schema(schema, timezone="UTC"))


class Bundle(InputPartition):
    """The objects that one task reads. `framing`: of raw files."""

    def __init__(self, framing: Framing, *objects: StoredObject) -> None:
        self.framing = framing
        self.objects = objects


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a query: the record's fields, and those about its object."""

    target: pa.Schema

    @property
    def fields(self) -> pa.StructType:
        """The fields of the records."""
        return pa.struct([each for each in self.target if each.name not in _ALL])

    def batch(self, stored: StoredObject, values: pa.StructArray) -> pa.RecordBatch:
        """Rows of an object."""
        about, given = stored.columns, {each.name: number for number, each in enumerate(values.type)}
        found = []
        for each in self.target:
            if each.name in given:
                found.append(values.field(given[each.name]))
            else:
                found.append(pa.repeat(pa.scalar(about[each.name], each.type), len(values)))
        return pa.RecordBatch.from_arrays(found, schema=self.target)


class ObjectReader(DataSourceReader):
    """Reads what is committed when the query is planned."""

    def __init__(self, options: ObjectOptions, target: pa.Schema) -> None:
        self.options = options
        self.target = target
        self.conditions: tuple[Condition, ...] = ()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take over what the log decides: such objects are never opened."""
        self.conditions, rest = accept(filters, [name for name in _ALL if name in self.target.names])
        return rest

    def partitions(self) -> list[Bundle]:
        """List what is committed."""
        with plainly():
            framing = Framing.of(head_of(self.options).config or {})
            objects = list(committed(self.options, self.conditions))
            return [Bundle(framing, *each) for each in bundles(objects)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In the task: the rows of its objects."""
        with plainly():
            opened, made = store(self.options.data), _Columns(self.target)
            if isinstance(partition, Bundle):
                for stored in partition.objects:
                    for values in arrays(opened, stored, made.fields, partition.framing):
                        yield made.batch(stored, values)


def bundles(objects: list[StoredObject]) -> list[list[StoredObject]]:
    """The objects over tasks, in their order: as many as there is work for."""
    most = min(max(sum(each.size for each in objects) // _PIECES, _SMALL), _LARGE)
    found: list[list[StoredObject]] = []
    size = most
    for each in objects:
        if size + each.size > most:
            found.append([])
            size = 0
        found[-1].append(each)
        size += each.size
    return found


def columns(options: ObjectOptions, objects: Sequence[StoredObject], framing: Framing) -> pa.Schema:
    """The columns of all objects together.

    Raises:
        ConfigError: there are none, their schemas contradict each other, or have a column of ours.
        PenstockError: an object cannot be read.
    """
    try:
        kind = merge(_types(options, objects, framing), or_text=all(kind_of(each.key) == "json" for each in objects))
    except Unmergeable as error:
        msg = f"{FORMAT}: {error}; read these objects one by one with a filter, or name the columns with `.schema(...)`"
        raise ConfigError([msg]) from error
    if pa.types.is_null(kind):
        msg = f"{FORMAT}: nothing is committed yet at {options.url}; run the connector, or correct the path"
        raise ConfigError([msg])
    own = _ALL if options.details else COLUMNS
    taken = [each.name for each in kind if each.name in own]
    if taken:
        msg = f"{FORMAT}: the records have the field `{taken[0]}` themselves; name the columns with `.schema(...)`"
        raise ConfigError([msg])
    return pa.schema([*kind, *(pa.field(name, each) for name, each in own.items())])


def _types(options: ObjectOptions, objects: Sequence[StoredObject], framing: Framing) -> list[pa.DataType]:
    """The types of some objects of each schema. Those that were deleted matter only where there are no others."""
    opened, types, missing = store(options.data), [], None
    for each in _typical(objects):
        try:
            types.append(type_of(opened, each, framing))
        except MissingError as error:
            missing = error
    if missing is not None and not types:
        raise missing
    return types


def _typical(objects: Sequence[StoredObject]) -> Iterable[StoredObject]:
    """The newest object of each schema, and of JSON, which has none, the newest few."""
    newest = {(kind_of(each.key), each.schema): each for each in objects}
    documents = [each for each in objects if kind_of(each.key) == "json"][-_LOOKED_AT:]
    return dict.fromkeys((*newest.values(), *documents))
