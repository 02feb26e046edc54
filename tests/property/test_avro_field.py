"""The compiled walk to a field against fastavro's decoded values; broken data never make it read elsewhere."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from avro_cases import encoded, record
from penstock.fields.avro import AvroField, warm

warm()


def read(schema, path, data):
    offsets = np.cumsum([0, *(len(each) for each in data)])
    body = np.frombuffer(b"".join(data), dtype=np.uint8)
    return AvroField.compile(schema, path).read(body, offsets, np.arange(len(data)))


def by_row(parts):
    """(type, value) of each row."""
    found = {}
    for part in parts:
        for at, row in enumerate(part.rows.tolist()):
            value = None
            if part.numbers is not None:
                value = part.numbers[at].item()
            elif part.texts is not None:
                value = part.texts[at]
            found[row] = (part.type, value)
    return [found[row] for row in sorted(found)]


def walked(value, steps):
    """The value at a path; KeyError where a record or scalar has no such name."""
    for step in steps:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise KeyError(step)
        value = value.get(step) if step == "k" else value[step]
    return value


def plain(kind, value):
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return int(value) if kind == "boolean" else value


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(record(), st.lists(st.sampled_from(["f0", "f1", "f2"]), min_size=1, max_size=3), st.data())
def test_fields_are_those_that_fastavro_decodes(case, steps, data):
    schema, values = case
    rows = data.draw(st.lists(values, min_size=1, max_size=4))
    found = by_row(read(schema, ".".join(steps), [encoded(schema, row) for row in rows]))
    assert len(found) == len(rows)
    for (kind, value), row in zip(found, rows, strict=True):
        try:
            expected = walked(row, steps)
        except KeyError:
            # A map without that key is null, everything else has no such field.
            assert kind in ("absent", "null")
            continue
        if expected is None:
            assert kind == "null"
        elif isinstance(expected, (dict, list)):
            assert kind in ("record", "map", "array")
        else:
            assert value == plain(kind, expected)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(record(), st.data())
def test_broken_data_are_malformed_or_something_but_never_a_crash(case, data):
    schema, values = case
    whole = encoded(schema, data.draw(values))
    broken = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for _ in range(data.draw(st.integers(0, 3))):
        if broken:
            broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    path = data.draw(st.sampled_from(["f0", "f1", "f3.f0", "f2.k"]))
    # Between two other data, so that a read beyond the row would be seen in their values.
    around = [whole, bytes(broken), whole]
    found = by_row(read(schema, path, around))
    assert found[0] == found[2] == by_row(read(schema, path, [whole]))[0]


def test_any_bits_are_a_number():
    schema = {"type": "record", "name": "r", "fields": [{"name": "f", "type": "float"}]}
    ((kind, value),) = by_row(read(schema, "f", [b"\x01\x00\xa0\x7f"]))
    assert kind == "float"
    assert value != value  # noqa: PLR0124 - not a number


def test_nesting_and_counts_are_bounded():
    tree = {
        "type": "record",
        "name": "t",
        "fields": [{"name": "next", "type": ["null", "t"]}, {"name": "v", "type": "int"}],
    }
    for levels, found in ((500, ("int", 1)), (600, ("malformed", None))):
        deep = b"\x02" * levels + b"\x00" + b"\x02" * (levels + 1)
        assert by_row(read(tree, "v", [deep])) == [found]
    many = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "a", "type": {"type": "array", "items": "null"}}, {"name": "v", "type": "int"}],
    }
    count = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    assert by_row(read(many, "v", [count + b"\x00\x02"])) == [("malformed", None)]
