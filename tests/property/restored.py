"""Registries and files that a restore reads, in memory."""

import io

import fastavro
import numpy as np
from hypothesis import strategies as st

from penstock.converters.base import Chunk
from penstock.registry import Registered

RICH = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "u", "type": ["null", "string", {"type": "array", "items": "long"}]},
        {"name": "m", "type": {"type": "map", "values": {"type": "bytes", "logicalType": "decimal", "precision": 4}}},
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "d", "type": {"type": "int", "logicalType": "date"}},
        {"name": "f", "type": {"type": "fixed", "name": "f", "size": 2}},
        {"name": "e", "type": {"type": "enum", "name": "e", "symbols": ["A", "B"]}},
        {"name": "x", "type": ["null", "double", "r"]},
    ],
}
LONGS = st.integers(-(2**63), 2**63 - 1)


def no_ids():
    raise AssertionError


class OneSchema:
    """A registry with one version of a subject."""

    def __init__(self, subject, text, schema_id):
        self.held, self.asked = {subject: [(schema_id, Registered(text, "AVRO", 3))]}, []

    def versions(self, subject):
        self.asked.append(subject)
        return self.held.get(subject, [])

    def register(self, subject, text):
        self.held[subject] = [(77, Registered(text, "AVRO", 1))]
        return 77


def written(file_format, schema, data):
    """A file of encoded data."""
    offsets = np.zeros(len(data) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in data], out=offsets[1:])
    encoder = file_format.encoder(schema, "topics/t/key")
    chunk = Chunk(np.frombuffer(b"".join(data), dtype=np.uint8), offsets)
    return b"".join(map(bytes, [*encoder.write(chunk, slice(0, len(data))), *encoder.finish()]))


def encoded(schema, rows):
    data = []
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, row)
        data.append(out.getvalue())
    return data


def decoded(schema, datum):
    return fastavro.schemaless_reader(io.BytesIO(datum), schema, None, return_named_type=True)
