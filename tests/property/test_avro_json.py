"""Compiled Avro to JSON lines against Python (fastavro, `rendering`, msgspec): the same bytes, the same faults."""

import itertools
import json
import os
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from penstock.compiled import compiled
from penstock.converters import avro_json_walk as walk
from penstock.converters.avro_json import AvroLines, python_lines
from penstock.converters.avro_json_numbers import floating
from penstock.converters.base import excerpt
from penstock.converters.compatibility import learn
from penstock.converters.java_numbers import double_text, float_text
from penstock.converters.projection import UNREADABLE, words
from penstock.model import Slices

walk.warm()
CHECKED = settings(
    max_examples=30 if "NUMBA_BOUNDSCHECK" in os.environ else 100,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TEXTS = st.text(max_size=20) | st.text(alphabet='ab"\\\n\x00\x1fé中😀\x7f', max_size=30) | st.just("x" * 100)
VALUES = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats() | st.integers(-(2**60), 2**60).map(float) | st.decimals(-9999, 9999, places=2).map(float),
    "bytes": st.binary(max_size=20),
    "string": TEXTS,
}
LOGICAL = {
    "bytes": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    "int": {"type": "int", "logicalType": "date"},
    "long": {"type": "long", "logicalType": "timestamp-micros"},
    "string": {"type": "string", "avro.java.string": "String"},
}
DEFAULTS = {"int": 4, "long": -5, "string": 'x\n"', "double": 1e10, "float": 2.5, "boolean": True, "bytes": "\xff"}
IN_UNIONS = [*(set(VALUES) - {"null"}), "enum", "fixed", "map", "array", "record", "another record"]


class Types:
    """Draws schemas with strategies for their values; `names`: the named types so far, to be used again."""

    def __init__(self, draw):
        self.draw, self.count, self.names = draw, 0, {}
        self.spaces = draw(st.sampled_from([[""], ["a.", "a.b."]]))

    def name(self):
        self.count += 1
        return f"{self.draw(st.sampled_from(self.spaces))}n{self.count}"

    def any(self, depth):
        nested = ["array", "map", "record", "enum", "fixed", "union", "again"] if depth < 3 else []
        kind = self.draw(st.sampled_from([*VALUES, *nested]))
        if kind == "union":
            return self.union(depth)
        if kind == "again":
            kind = self.draw(st.sampled_from(["int", *self.names]))
            return (kind, self.names[kind]) if kind in self.names else (kind, VALUES[kind])
        return self.one(kind, depth)

    def one(self, kind, depth):
        if kind in VALUES:
            logical = kind in LOGICAL and self.draw(st.booleans())
            return (LOGICAL[kind] if logical else kind), VALUES[kind]
        if kind == "enum":
            symbols = ["A", "B", "LONG_" * 10]
            return self.named({"type": "enum", "name": self.name(), "symbols": symbols}, st.sampled_from(symbols))
        if kind == "fixed":
            size = self.draw(st.integers(0, 5))
            return self.named(
                {"type": "fixed", "name": self.name(), "size": size}, st.binary(min_size=size, max_size=size)
            )
        if kind == "record":
            return self.record(depth + 1)
        schema, values = self.any(depth + 1)
        if kind == "array":
            return {"type": "array", "items": schema}, st.lists(values, max_size=4)
        return {"type": "map", "values": schema}, st.dictionaries(TEXTS, values, max_size=4)

    def named(self, schema, values):
        self.names[schema["name"]] = values
        return schema, values

    def union(self, depth):
        kinds = self.draw(st.lists(st.sampled_from(sorted(IN_UNIONS)), unique=True, max_size=3))
        made = [self.one(kind.rpartition(" ")[2], depth) for kind in kinds]
        if not kinds or self.draw(st.booleans()):
            made.insert(self.draw(st.integers(0, len(made))), ("null", st.none()))
        branches = [st.tuples(st.just(at), values) for at, (_, values) in enumerate(made)]
        return [schema for schema, _ in made], st.one_of(branches).map(Branch)

    def record(self, depth):
        name, fields, values = self.name(), [], {}
        for at in range(self.draw(st.integers(0 if depth > 1 else 1, 4))):
            schema, of_field = self.any(depth)
            each = {"name": f"f{at}", "type": schema}
            if isinstance(schema, list) and "null" in schema and self.draw(st.booleans()):
                kinds = [branch if isinstance(branch, str) else branch["type"] for branch in schema]
                each["default"] = self.draw(st.sampled_from([None, *(DEFAULTS[k] for k in kinds if k in DEFAULTS)]))
            fields.append(each)
            values[f"f{at}"] = of_field
        return self.named({"type": "record", "name": name, "fields": fields}, st.fixed_dictionaries(values))


class Branch(tuple):
    """(which branch of a union, its value): written by hand, so that the value decides nothing."""

    __slots__ = ()


@st.composite
def cases(draw):
    schema, values = Types(draw).any(0)
    return schema, draw(st.lists(values, min_size=1, max_size=4))


def datum_of(schema, value):
    """The datum, by the specification's text: fastavro would choose a union's branch itself."""
    known = {}
    learn(schema, "", known)
    return written(schema, value, known)


def written(schema, value, known):
    if isinstance(schema, str) and schema in known:
        schema = known[schema]
    if isinstance(schema, list):
        return long(value[0]) + written(schema[value[0]], value[1], known)
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "record":
        return b"".join(written(each["type"], value[each["name"]], known) for each in schema["fields"])
    if kind == "array":
        return blocks([written(schema["items"], item, known) for item in value])
    if kind == "map":
        return blocks(
            [written("string", key, known) + written(schema["values"], each, known) for key, each in value.items()]
        )
    if kind == "enum":
        return long(schema["symbols"].index(value))
    plain = {"null": lambda _: b"", "boolean": lambda v: bytes([v]), "int": long, "long": long, "fixed": bytes}
    plain |= {"float": struct.Struct("<f").pack, "double": struct.Struct("<d").pack}
    plain |= {"bytes": lambda v: long(len(v)) + v, "string": lambda v: long(len(v.encode())) + v.encode()}
    return plain[kind](value)


def long(value):
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def blocks(items):
    """The first item in a block that says its size, the others in one that does not."""
    first, rest = items[:1], items[1:]
    sized = long(-1) + long(len(first[0])) + first[0] if first else b""
    return sized + (long(len(rest)) + b"".join(rest) if rest else b"") + long(0)


def slices(data):
    offsets = np.zeros(len(data) + 1, dtype=np.int64)
    np.cumsum([len(datum) for datum in data], out=offsets[1:])
    return Slices(np.frombuffer(b"".join(data), dtype=np.uint8), offsets)


def by_compiled(schemas, data, codes=None, without=None):
    """(lines, {row: reason}) of one batch."""
    codes = np.zeros(len(data), dtype=np.int32) if codes is None else np.array(codes, dtype=np.int32)
    without = np.zeros(len(data), dtype=np.bool_) if without is None else np.array(without)
    printer = AvroLines()
    for code in set(codes[~without].tolist()):
        printer.learn(code, json.dumps(schemas[code]))
    chunk, faults = printer.lines(slices(data), codes, without)
    raw, ends = chunk.data.tobytes(), chunk.offsets.tolist()
    return [raw[a:b] for a, b in itertools.pairwise(ends)], {fault.row: fault.reason for fault in faults}


def by_python(schemas, data, codes=None):
    lines, faults = [], {}
    for row, datum in enumerate(data):
        try:
            lines.append(python_lines(schemas[codes[row] if codes else 0], "BASE64")(datum))
        except UNREADABLE as error:
            lines.append(b"\n")
            faults[row] = f"its value does not fit the schema it names ({words(error)}); it is {excerpt(datum)}"
    return lines, faults


def left_to_python(schema, data):
    """Which rows compiled code does not take."""
    printer = AvroLines()
    printer.learn(0, json.dumps(schema))
    nothing = np.zeros(len(data), dtype=np.bool_)
    return np.flatnonzero(printer._transcoded(slices(data), nothing.astype(np.int32), nothing)[1]).tolist()


@CHECKED
@given(cases())
def test_the_bytes_are_python_s_and_python_is_not_asked(case):
    schema, values = case
    data = [datum_of(schema, value) + b"behind"[: at % 7] for at, value in enumerate(values)]
    assert by_compiled([schema], data) == by_python([schema], data)
    assert left_to_python(schema, data) == []


@CHECKED
@given(cases(), st.data())
def test_broken_data_have_python_s_faults_and_python_s_lines(case, data):
    schema, values = case
    broken = []
    for value in values:
        datum = bytearray(datum_of(schema, value))
        for _ in range(data.draw(st.integers(0, 3))):
            if datum:
                at = data.draw(st.integers(0, len(datum) - 1))
                datum[at : at + 1] = data.draw(st.binary(max_size=2))
        broken.append(bytes(datum[: data.draw(st.integers(0, len(datum)))]))
    assert by_compiled([schema], broken) == by_python([schema], broken)


@CHECKED
@given(cases(), cases(), st.data())
def test_no_batching_changes_a_line(one, other, data):
    schemas = [one[0], other[0]]
    rows = [(0, datum_of(one[0], value)) for value in one[1]] + [(1, datum_of(other[0], v)) for v in other[1]]
    rows = data.draw(st.permutations(rows))
    codes, every = [code for code, _ in rows], [datum for _, datum in rows]
    whole = by_compiled(schemas, every, codes)
    assert whole == by_python(schemas, every, codes)
    for row, (code, datum) in enumerate(rows):
        assert by_compiled(schemas, [datum], [code])[0] == [whole[0][row]]
    without = [data.draw(st.booleans()) for _ in rows]
    expected = [b"\n" if out else line for out, line in zip(without, whole[0], strict=True)]
    assert by_compiled(schemas, every, codes, without)[0] == expected


@compiled
def _floats(bits, size, out, ends):
    to = 0
    for row in range(len(bits)):
        to = floating(out, to, bits[row], size)
        ends[row + 1] = to


def texts_of(bits, size):
    out, ends = np.zeros(26 * len(bits) + 16, dtype=np.uint8), np.zeros(len(bits) + 1, dtype=np.int64)
    _floats(np.array(bits, dtype=np.uint64), size, out, ends)
    return [out[a:b].tobytes().decode() for a, b in itertools.pairwise(ends)]


EDGES = [0, 1, 2, 3, 2**52 - 1, 2**52, 2**52 + 1]
DOUBLES = [edge + (power << 52) for power in range(2047) for edge in (0, 1, 2**52 - 1)] + list(range(300))
FLOATS = [edge + (power << 23) for power in range(256) for edge in (0, 1, 2**23 - 1)] + list(range(300))


def test_floating_point_numbers_at_the_edges():
    tens = [
        struct.unpack("<Q", struct.pack("<d", float(f"{digits}e{p}")))[0] for p in range(-324, 309) for digits in (1, 9)
    ]
    doubles = [*DOUBLES, *tens, *(bits | 1 << 63 for bits in tens)]
    assert texts_of(doubles, 8) == [double_text(struct.unpack("<d", struct.pack("<Q", bits))[0]) for bits in doubles]
    assert texts_of(FLOATS, 4) == [float_text(struct.unpack("<f", struct.pack("<I", bits))[0]) for bits in FLOATS]


@CHECKED
@given(st.lists(st.integers(0, 2**64 - 1), min_size=100, max_size=100))
def test_floating_point_numbers_of_any_bits(bits):
    doubles = [struct.unpack("<d", struct.pack("<Q", each))[0] for each in bits]
    assert texts_of(bits, 8) == [double_text(each) for each in doubles]
    halves = [each >> 32 for each in bits]
    floats = [struct.unpack("<f", struct.pack("<I", each))[0] for each in halves]
    assert texts_of(halves, 4) == [float_text(each) for each in floats]


TREE = {
    "type": "record",
    "name": "s.t",
    "fields": [{"name": "v", "type": "double"}, {"name": "next", "type": ["null", "t"], "default": None}],
}
ZERO = struct.pack("<d", 0.5)


def test_a_type_within_itself():
    data = [ZERO + b"\x00", ZERO + b"\x02" + ZERO + b"\x00"]
    assert by_compiled([TREE], data) == by_python([TREE], data)
    assert left_to_python(TREE, data) == []


def test_nesting_without_end_is_a_fault_and_no_crash():
    lines, faults = by_compiled([TREE], [(ZERO + b"\x02") * 100_000 + ZERO + b"\x00", ZERO + b"\x00"])
    assert lines[1] == b'{"v":0.5,"next":null}\n'
    assert list(faults) == [0]
    assert "nested more than 512 levels deep" in faults[0]


def test_items_without_bytes_are_bounded():
    nulls = {"type": "array", "items": "null"}
    lines, faults = by_compiled([nulls], [long(3) + long(0), long(2**40) + long(0), (long(2**19) * 3) + long(0)])
    assert lines[0] == b"[null,null,null]\n"
    assert list(faults) == [1, 2]
    assert "items of arrays without any bytes" in faults[1]


def test_of_a_key_that_comes_twice_the_last_value_counts():
    schema = {"type": "map", "values": {"type": "map", "values": "int"}}
    inner = long(2) + b"\x02a\x02" + b"\x02b\x04" + long(0)
    twice = long(3) + b"\x02k" + inner + b"\x02l" + inner + b"\x02k" + long(0) + long(0)
    same_in_two = long(2) + b"\x02a" + inner + b"\x02b" + inner + long(0)
    assert by_compiled([schema], [twice, same_in_two]) == by_python([schema], [twice, same_in_two])
    assert left_to_python(schema, [twice, same_in_two]) == [0]
    assert by_compiled([schema], [twice])[0] == [b'{"k":{},"l":{"a":1,"b":2}}\n']


def test_a_map_of_more_keys_than_are_noted():
    schema = {"type": "map", "values": "int"}
    many = long(5000) + b"".join(long(len(key)) + key + b"\x02" for key in (b"%d" % at for at in range(5000))) + long(0)
    assert by_compiled([schema], [many]) == by_python([schema], [many])


def test_a_line_much_longer_than_its_datum():
    symbols = {"type": "enum", "name": "e", "symbols": ["A" * 10_000]}
    data = [long(50) + b"\x00" * 50 + long(0)] * 20
    schema = {"type": "array", "items": symbols}
    assert by_compiled([schema], data) == by_python([schema], data)
    assert by_compiled(["string"], [long(20_000) + b"\x01" * 20_000])[0] == [b'"' + b"\\u0001" * 20_000 + b'"\n']


@pytest.mark.parametrize("kind", ["string", "bytes"])
def test_room_may_end_anywhere_in_a_value(kind):
    schema = {"type": "record", "name": "r", "fields": [{"name": "n" * 90, "type": kind}]}
    data = [long(at % 89) + b"x" * (at % 89) for at in range(3000)]
    assert by_compiled([schema], data) == by_python([schema], data)


@pytest.mark.parametrize("index", [2, 3, 1000, 2**62, -1, -2, -3, -(2**63)])
def test_branches_and_symbols_that_are_not_there(index):
    for schema in (["null", "int"], ["int", "string"], {"type": "enum", "name": "e", "symbols": ["A", "B"]}):
        data = [long(index) + b"\x02a"]
        assert by_compiled([schema], data) == by_python([schema], data)


@pytest.mark.parametrize("code", range(256))
def test_every_byte_of_a_string(code):
    data = [long(len(text)) + text for text in (bytes([code]), b"abcdefgh" + bytes([code]) + b"ijklmnop")]
    assert by_compiled(["string"], data) == by_python(["string"], data)


@CHECKED
@given(st.lists(st.binary(max_size=12) | st.text(max_size=6).map(str.encode), max_size=20))
@example([b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe0\x9f\xbf", b"\xc1\xbf", b"\xf0\x8f\xbf\xbf", b"\xf4\x8f\xbf\xbf"])
def test_utf_8_is_what_python_takes_for_it(values):
    data = [long(len(value)) + value for value in values]
    assert by_compiled(["string"], data) == by_python(["string"], data)
