"""Values in Confluent's wire format laid out as the reader does it, through a converter and back to Python."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import fastavro
import numpy as np

from laid_out import records, rows
from penstock import converters
from penstock.kafka.batches import relaid
from penstock.model import Gather

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.converters.base import Converted, Converter
    from penstock.model import Records


def wired(schema_id: int, body: bytes) -> bytes:
    """A value with its prefix."""
    return b"\x00" + schema_id.to_bytes(4, "big") + body


def batch(values: Sequence[bytes | None]) -> Records:
    """A batch of topic `t`, the prefix taken off."""
    whole = records(values)
    laid, ids = relaid(whole.values, Gather(strip=5))
    return replace(whole, values=laid, schema_ids=ids)


def build(name: str, kind: str, url: str, /, **options: Any) -> Converter:
    """A converter with its registry; of `options` those with a dot are its own."""
    own = {
        key: value
        for key, value in options.items()
        if key not in ("connect_meta_data", "decimals", "optional_map_keys")
    }
    rest = {key: value for key, value in options.items() if key not in own}
    own = {key.replace("_", "."): value for key, value in own.items()}
    return converters.build(name, kind, {"schema.registry.url": url, **own}, converters.ConverterOptions(**rest))


def lines(converter: Converter, values: Sequence[bytes | None]) -> list[Any]:
    """What the values become in JSON; None for nulls and faults."""
    return [None if row is None else json.loads(row) for row in rows(converter.convert(batch(values)))]


def data(converter: Converter, made: Converted) -> list[Any]:
    """Avro data read back by fastavro, without logical types."""
    found = []
    for row, datum in enumerate(rows(made)):
        if datum is None:
            found.append(None)
            continue
        code = 0 if made.chunk.schemas is None else int(made.chunk.schemas[row])
        schema = fastavro.parse_schema(plain(json.loads(converter.schema(code).text)))
        stream = io.BytesIO(datum)
        found.append(fastavro.schemaless_reader(stream, schema, None))
        assert stream.read() == b""
    return found


def plain(schema: Any) -> Any:
    """Without logical types."""
    if isinstance(schema, list):
        return [plain(each) for each in schema]
    if isinstance(schema, dict):
        return {name: plain(each) for name, each in schema.items() if name != "logicalType"}
    return schema


def reasons(converter: Converter, values: Sequence[bytes | None]) -> list[str]:
    """Why values are refused."""
    made = converter.convert(batch(values))
    assert [fault.row for fault in made.faults] == list(range(len(values)))
    return [fault.reason for fault in made.faults]


def field(converter: Converter, values: Sequence[bytes | None], path: str) -> list[tuple[str, Any]]:
    """A field of each value with its type."""
    found: list[tuple[str, Any]] = [("", None)] * len(values)
    for part in converter.field(batch(values), path):
        for at, row in enumerate(part.rows.tolist()):
            value = None if part.numbers is None else part.numbers[at].item()
            found[row] = (part.type, value if part.texts is None else part.texts[at])
    return found


def projected(converter: Converter, values: Sequence[bytes], onto: int) -> Any:
    """All values under the schema of one of them."""
    whole = batch(values)
    codes = converter.convert(whole).chunk.schemas
    return converter.project(whole, np.arange(len(values)), int(codes[onto]))
