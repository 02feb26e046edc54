"""Block-GZIP: the lengths of the members in the connectors' own tests, members that stand alone, frames with keys."""

import gzip
import json
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laid_out import records, slices
from penstock.converters.base import SCHEMALESS, Chunk
from penstock.converters.bytes import BytesConverter
from penstock.converters.framed import FramedConverter
from penstock.errors import PenstockError
from penstock.formats.blockgzip import BlockGzipFormat
from penstock.frames import Frames
from penstock.model import Records
from penstock.seeking import read_index
from penstock.seeking import records as sought

KEYS = ["byte_length_uncompressed", "num_records", "byte_length", "byte_offset", "first_record_offset"]


def message(number):
    """As the system test of the first connector wrote them."""
    return b'{"foo": "bar", "counter":%d}' % number


def written(lines, start=0, size=64 * 1024 * 1024, steps=(), gaps=1):
    """(the object, its index) of lines whose offsets are `gaps` apart, handed over in batches of `steps`."""
    encoder, out, at = BlockGzipFormat(size).encoder(SCHEMALESS, "k"), [], 0
    for step in (*steps, len(lines)):
        part = lines[at : at + step]
        if part:
            offsets = np.zeros(len(part) + 1, dtype=np.int64)
            np.cumsum([len(each) for each in part], out=offsets[1:])
            positions = start + gaps * (at + np.arange(len(part)))
            chunk = Chunk(np.frombuffer(b"".join(part), dtype=np.uint8), offsets, positions=positions)
            out += [bytes(each) for each in encoder.write(chunk, slice(0, len(part)))]
        at += step
    out += [bytes(each) for each in encoder.finish()]
    return b"".join(out), json.loads(encoder.index())["chunks"]


@pytest.mark.parametrize(
    ("numbers", "start", "raw", "length"),
    [
        (range(100), 0, 2890, 275),
        (range(100, 200), 100, 3000, 272),
        (range(201, 300, 3), 200, 990, 137),
        (range(202, 300, 3), 0, 990, 137),
        (range(200, 300, 3), 0, 1020, 139),
    ],
)
def test_members_have_the_lengths_of_the_connector_s_own_test(numbers, start, raw, length):
    lines = [message(number) + b"\n" for number in numbers]
    body, (member,) = written(lines, start)
    assert [*member][:5] == KEYS
    assert (member["byte_length_uncompressed"], member["num_records"]) == (raw, len(lines))
    assert member["byte_length"] == len(body) == length
    assert (member["byte_offset"], member["first_record_offset"]) == (0, start)
    assert member["next_record_offset"] == start + len(lines)
    assert gzip.decompress(body) == b"".join(lines)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.binary(max_size=30), min_size=1, max_size=40),
    st.integers(1, 60),
    st.lists(st.integers(1, 7), max_size=8),
    st.integers(1, 3),
)
def test_members_tile_the_object_and_each_can_be_read_alone(lines, size, steps, gaps):
    body, index = written(lines, 5, size, steps, gaps)
    assert (body, index) == written(lines, 5, size, (), gaps)
    assert gzip.decompress(body) == b"".join(lines)
    at, row = 0, 0
    for member in index:
        assert member["byte_offset"] == at
        alone = zlib.decompress(body[at : at + member["byte_length"]], 31)
        mine = lines[row : row + member["num_records"]]
        assert alone == b"".join(mine)
        assert member["byte_length_uncompressed"] == len(alone)
        assert member["byte_length_uncompressed"] <= size or member["num_records"] == 1
        assert member["first_record_offset"] == 5 + gaps * row
        row += member["num_records"]
        assert member["next_record_offset"] == 5 + gaps * (row - 1) + 1
        at += member["byte_length"]
    assert (at, row) == (len(body), len(lines))
    full = [member["byte_length_uncompressed"] for member in index]
    for number, member in enumerate(index[:-1]):
        first = sum(each["num_records"] for each in index[: number + 1])
        assert member["num_records"] > 0
        assert full[number] + len(lines[first]) > size


def framed(frames, pairs):
    """The rows that (key, value) pairs become."""
    made = records([value for _, value in pairs])
    keys = slices([key for key, _ in pairs])
    batch = Records(made.tp, made.offsets, made.timestamps, made.values, made.next_offset, keys=keys)
    chunk = FramedConverter(BytesConverter("bytes"), frames).convert(batch).chunk
    return [chunk.data[a:b].tobytes() for a, b in zip(chunk.offsets, chunk.offsets[1:], strict=False)]


PAIRS = [(b"k", b"value"), (None, b""), (b"", b"x\n"), (b"key two", b"\x00\xff")]


def test_text_with_keys():
    rows = framed(Frames(keys=True, key_delimiter=b"\t"), PAIRS)
    assert rows == [b"k\tvalue\n", b"\t\n", b"\tx\n\n", b"key two\t\x00\xff\n"]


def test_the_delimiter_once():
    assert framed(Frames(once=True), PAIRS) == [b"value\n", b"\n", b"x\n", b"\x00\xff\n"]


def test_binary_with_and_without_keys():
    def sized(data):
        return struct.pack(">I", len(data)) + data

    assert framed(Frames(lengths=True), PAIRS) == [sized(value) for _, value in PAIRS]
    assert framed(Frames(keys=True, lengths=True), PAIRS) == [sized(key or b"") + sized(value) for key, value in PAIRS]


class Counting:
    """A store of two objects that notes every request."""

    def __init__(self, body, index):
        self.objects, self.asked = {"a.gz": body, "a.index.json": index}, []

    def get(self, key, start=None, end=None):
        self.asked.append((key, start, end))
        return self.objects[key][start:end]


LINES = [message(number) + b"\n" for number in range(1000)]


def stored_lines(**options):
    body, index = written(LINES, 40, 500, **options)
    return Counting(body, json.dumps({"chunks": index}).encode())


def found(store, start, limit=None, frames=None):
    index = read_index(store, "a.gz")
    return [(each.offset, each.value) for each in sought(store, "a.gz", index, frames or Frames(), start, limit)]


@pytest.mark.parametrize(("start", "limit"), [(0, 3), (40, 1), (57, 2), (500, 40), (1039, 5)])
def test_an_offset_costs_one_request_for_the_index_and_one_for_the_bytes(start, limit):
    store = stored_lines()
    first = max(start, 40)
    expected = [(at, message(at - 40)) for at in range(first, min(first + limit, 1040))]
    assert found(store, start, limit) == expected
    assert [key for key, _, _ in store.asked] == ["a.index.json", "a.gz"]
    _, begin, end = store.asked[1]
    assert end - begin < 300 + 10 * limit


def test_everything_from_an_offset_on_and_nothing_behind_the_end():
    assert found(stored_lines(), 1000) == [(at, message(at - 40)) for at in range(1000, 1040)]
    empty = stored_lines()
    assert found(empty, 1040) == []
    assert [key for key, _, _ in empty.asked] == ["a.index.json"]


def test_where_offsets_are_missing_records_have_none():
    rows = found(stored_lines(gaps=3), 1000, 5)
    assert all(offset is None for offset, _ in rows)
    assert len(rows) == 5


def test_keys_and_lengths_are_read_back():
    for frames in (Frames(keys=True, key_delimiter=b"\t"), Frames(keys=True, lengths=True), Frames(lengths=True)):
        lines = framed(frames, [(b"k", b"value"), (b"", b""), (b"key two", b"\x00\xff")])
        body, index = written(lines)
        store = Counting(body, json.dumps({"chunks": index}).encode())
        rows = list(sought(store, "a.gz", read_index(store, "a.gz"), frames))
        keys = [b"k", b"", b"key two"] if frames.keys else [None] * 3
        assert [(each.key, each.value) for each in rows] == list(zip(keys, [b"value", b"", b"\x00\xff"], strict=True))


@pytest.mark.parametrize(
    ("body", "index", "words"),
    [
        (None, b"{", "`a.index.json` is no index"),
        (None, b'{"chunks":[{"byte_offset":7}]}', "is no index"),
        (lambda body: body[:-1], None, "does not end where its index says"),
        (lambda body: body[:10] + bytes([body[10] ^ 0xFF]) + body[11:], None, "`a.gz` is damaged"),
        (None, lambda index: index.replace(b'"byte_offset": 0', b'"byte_offset": 1'), "`a.index.json` is damaged"),
        (None, lambda index: index.replace(b'"num_records": ', b'"num_records": 1'), "records at byte 0"),
    ],
)
def test_what_is_damaged_is_told(body, index, words):
    store = stored_lines()
    if body is not None:
        store.objects["a.gz"] = body(store.objects["a.gz"])
    if index is not None:
        store.objects["a.index.json"] = index if isinstance(index, bytes) else index(store.objects["a.index.json"])
    with pytest.raises(PenstockError, match=words):
        found(store, 0)
