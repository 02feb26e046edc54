"""Properties of the connector that do nothing yet, each declared once, so that the reference is whole.

A value that would change something is refused by name. A property that comes to work moves into `SinkConfig`.
"""

from __future__ import annotations

from penstock.config.declare import Property
from penstock.config.kinds import Bool, Choice

CONTENTS = (
    Property(
        name="allow.optional.map.keys",
        kind=Bool(),
        default="false",
        shapes=True,
        supported=(False,),
        doc="Whether a map with optional text keys becomes an Avro map.",
    ),
    Property(
        name="json.decimal.format",
        kind=Choice(("BASE64", "NUMERIC"), any_case=True),
        default="BASE64",
        shapes=True,
        supported=("BASE64",),
        doc="How decimals are written in JSON.",
    ),
    Property(
        name="parquet.codec",
        kind=Choice(("none", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4_raw")),
        default="snappy",
        shapes=True,
        only_with=("format.class", ("parquet",)),
        doc="Compression of Parquet files.",
    ),
)

PENDING = CONTENTS
