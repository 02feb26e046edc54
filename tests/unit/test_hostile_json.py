"""JSON that is made to break its reader: the record is refused, and the others of its batch are read."""

import numpy as np
import pytest

from penstock.converters import ConverterOptions, build
from penstock.model import Records, Slices, TopicPartition

DEEP = 50_000


def envelope(payload, schema=b'{"type":"string"}'):
    return b'{"schema":%s,"payload":%s}' % (schema, payload)


def nested(depth, inner):
    return b'{"type":"array","items":' * depth + inner + b"}" * depth


GOOD = envelope(b'"good"')
HOSTILE = {
    "a schema nested without end": (envelope(b"[]", nested(DEEP, b'{"type":"int32"}')), "nested too deeply"),
    "a payload nested without end": (
        envelope(b"[" * DEEP + b"]" * DEEP, b"null"),
        "nested too deeply|its schema is null",
    ),
    "a payload that is not UTF-8": (envelope(b'"\xff\xfe"'), "can't decode byte 0xff"),
    "a schema that is no schema": (
        envelope(b"{}", b'{"type":"struct","fields":[],"name":{"a":[1]}}'),
        "cannot be used",
    ),
    "a scale that is no number": (
        envelope(
            b'"AQ=="', b'{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"x"}}'
        ),
        "cannot be used",
    ),
    "half an envelope": (GOOD[:-1], "requires"),
}


def records(*values):
    ends = np.cumsum([0, *map(len, values)]).astype(np.int64)
    data = np.frombuffer(b"".join(values), np.uint8)
    numbers = np.arange(len(values))
    return Records(TopicPartition("t", 0), numbers, numbers, Slices(data, ends), len(values))


@pytest.mark.parametrize("kind", ["json", "avro"])
@pytest.mark.parametrize(("value", "why"), HOSTILE.values(), ids=HOSTILE)
def test_json_with_a_schema(kind, value, why):
    converted = build("json_envelope", kind, {}, ConverterOptions()).convert(records(GOOD, value, GOOD))
    (fault,) = converted.faults
    assert fault.row == 1
    assert any(words in fault.reason for words in why.split("|"))
    assert "\n" not in fault.reason
    chunk = converted.chunk
    assert chunk.offsets[2] == chunk.offsets[1] > 0
    assert chunk.offsets[3] == 2 * chunk.offsets[1]


@pytest.mark.parametrize("value", [b"[" * DEEP, b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP])
def test_json_without_a_schema(value):
    converter = build("json", "json", {}, ConverterOptions())
    lines = [each + converter.gather.separator for each in (b'{"n":1}', value)]
    (fault,) = converter.convert(records(*lines)).faults
    assert fault.row == 1
    assert "nested too deeply" in fault.reason
