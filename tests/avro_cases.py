"""Avro schemas with values that fit them, for Hypothesis."""

import io

import fastavro
from hypothesis import strategies as st

SCALARS = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
VALUES = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=20),
    "string": st.text(max_size=20),
}


@st.composite
def typed(draw, depth=0, counter=None):
    """A schema and a strategy for its values."""
    counter = counter if counter is not None else [0]
    kind = draw(
        st.sampled_from([*SCALARS, *(["array", "map", "record", "optional", "enum", "fixed"] if depth < 3 else [])])
    )
    if kind in SCALARS:
        return kind, VALUES[kind]
    counter[0] += 1
    if kind == "enum":
        name = f"e{counter[0]}"
        return {"type": "enum", "name": name, "symbols": ["A", "B", "CC"]}, st.sampled_from(["A", "B", "CC"])
    if kind == "fixed":
        return {"type": "fixed", "name": f"x{counter[0]}", "size": 3}, st.binary(min_size=3, max_size=3)
    if kind == "record":
        return draw(record(depth + 1, counter))
    schema, values = draw(typed(depth + 1, counter))
    if kind == "array":
        return {"type": "array", "items": schema}, st.lists(values, max_size=4)
    if kind == "map":
        return {"type": "map", "values": schema}, st.dictionaries(st.sampled_from(["f0", "k"]), values, max_size=3)
    if schema == "null" or isinstance(schema, list):
        return schema, values
    return ["null", schema], st.one_of(st.none(), values)


@st.composite
def record(draw, depth=0, counter=None):
    counter = counter if counter is not None else [0]
    counter[0] += 1
    name = f"r{counter[0]}"
    fields = [draw(typed(depth, counter)) for _ in range(draw(st.integers(1, 4)))]
    schema = {
        "type": "record",
        "name": name,
        "fields": [{"name": f"f{n}", "type": s} for n, (s, _) in enumerate(fields)],
    }
    return schema, st.fixed_dictionaries({f"f{n}": values for n, (_, values) in enumerate(fields)})


def encoded(schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()
