"""Columns as Avro data: fastavro reads back what Spark's columns held, whatever their type and however they are cut."""

import datetime as dt
import decimal
import io
import json

import fastavro
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.transform.encoding import encoded
from penstock.transform.types import avro

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
MOMENTS = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 1, 1), timezones=st.just(dt.timezone.utc))  # noqa: DTZ001
LEAVES = [
    (spark.BooleanType(), st.booleans()),
    (spark.ByteType(), st.integers(-128, 127)),
    (spark.IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    (spark.LongType(), st.integers(-(2**63), 2**63 - 1)),
    (spark.FloatType(), st.floats(width=32, allow_nan=False)),
    (spark.DoubleType(), st.floats(allow_nan=False)),
    (spark.StringType(), TEXT),
    (spark.BinaryType(), st.binary(max_size=8)),
    (spark.DateType(), st.dates()),
    (spark.TimestampType(), MOMENTS),
    (
        spark.DecimalType(38, 3),
        st.integers(1 - 10**38, 10**38 - 1).map(lambda n: decimal.Decimal(n).scaleb(-3, decimal.Context(prec=60))),
    ),
    (spark.DecimalType(5, 0), st.integers(-99999, 99999).map(decimal.Decimal)),
]


def optional(pair):
    kind, values = pair
    return kind, st.none() | values


def nested(inner):
    return st.one_of(
        inner.map(lambda pair: (spark.ArrayType(pair[0]), st.lists(optional(pair)[1], max_size=3))),
        inner.map(
            lambda pair: (
                spark.MapType(spark.StringType(), pair[0]),
                st.dictionaries(TEXT, optional(pair)[1], max_size=3),
            )
        ),
        st.lists(inner, min_size=1, max_size=3).map(record),
    )


def record(pairs):
    fields = [spark.StructField(f"f{at}", kind) for at, (kind, _) in enumerate(pairs)]
    return spark.StructType(fields), st.fixed_dictionaries({f"f{at}": optional(p)[1] for at, p in enumerate(pairs)})


TYPES = st.recursive(st.sampled_from(LEAVES), nested, max_leaves=5)


@st.composite
def tables(draw):
    columns, rows = record(draw(st.lists(TYPES, min_size=1, max_size=3)))
    return columns, draw(st.lists(rows, max_size=6)), draw(st.integers(0, 6)), draw(st.integers(0, 6))


@given(tables())
def test_what_is_written_is_read_back(table):
    columns, rows, start, count = table
    batch = pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(columns, timezone="UTC")).slice(start, count)
    made, schema = encoded(batch), fastavro.parse_schema(json.loads(avro(columns)))
    with decimal.localcontext(decimal.Context(prec=60)):
        read = [fastavro.schemaless_reader(io.BytesIO(made[row]), schema, None) for row in range(len(made))]
    assert read == rows[start : start + count]


@given(st.integers(1 - 10**38, 10**38 - 1))
def test_decimals_are_the_bytes_that_java_writes(number):
    batch = pa.RecordBatch.from_pydict({"d": pa.array([decimal.Decimal(number)], pa.decimal128(38, 0))})
    size = (number + (number < 0)).bit_length() // 8 + 1
    assert encoded(batch)[0] == bytes([2, 2 * size]) + number.to_bytes(size, "big", signed=True)
