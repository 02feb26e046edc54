"""Malformed record batches: never a crash, never a read outside of the buffer, always a DataError or the truth."""

import contextlib
import struct

import cramjam
import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fuzzing
from penstock.errors import DataError
from penstock.kafka.aborted import AbortedTransaction
from penstock.kafka.batches import Fetched, decode, tabulate
from penstock.kafka.decompress import Arena
from penstock.model import Gather, PlannedRange, TopicPartition

TP = TopicPartition("t", 0)
GATHER = Gather(strip=5, separator=b"\n", keys=True, headers=True)


def varint(number):
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 127:
        out.append((number & 127) | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def sized(data):
    return varint(-1) if data is None else varint(len(data)) + data


def record(delta, key, value, headers=()):
    area = varint(len(headers)) + b"".join(sized(name) + sized(content) for name, content in headers)
    body = b"\x00" + varint(delta * 3) + varint(delta) + sized(key) + sized(value) + area
    return varint(len(body)) + body


def batch(base, records, *, attributes=0, producer=-1, last=None, count=None, body=None):
    body = b"".join(records) if body is None else body
    last = len(records) - 1 if last is None else last
    count = len(records) if count is None else count
    tail = struct.pack(">hiqqqhii", attributes, last, 1000, 2000, producer, 0, 0, count) + body
    head = struct.pack(">ibI", 0, 2, google_crc32c.value(tail))
    return struct.pack(">qi", base, len(head) + len(tail)) + head + tail


GOOD = batch(7, [record(n, b"k", b"\x00\x00\x00\x00\x05v%d" % n, [(b"h", None)]) for n in range(5)])


ARENA = Arena(1 << 20)


def read(data, gather=GATHER, aborted=()):
    """The records of a response that is read in one piece, as long as these are."""
    buffer = np.frombuffer(data, np.uint8)
    table, fault = tabulate(TP, buffer, 0, len(buffer), 0)
    found = list(decode(Fetched(PlannedRange(TP, 0, 1000), buffer, table, tuple(aborted)), 0, gather, ARENA))
    if fault is not None:
        raise fault
    assert len(found) <= 1
    return found[0] if found else None


def test_a_good_batch_is_read():
    records = read(GOOD)
    assert records.offsets.tolist() == [7, 8, 9, 10, 11]
    assert records.timestamps.tolist() == [1000, 1003, 1006, 1009, 1012]
    assert records.values[3] == b"v3\n"
    assert records.next_offset == 12


def test_a_batch_whose_last_records_were_compacted_away_still_ends():
    assert read(batch(0, [record(0, None, b"")], last=9)).next_offset == 10


def test_every_truncation_is_a_partial_batch_without_records():
    for size in range(len(GOOD)):
        assert read(GOOD[:size]) is None


def test_a_wrong_crc_names_the_batch():
    broken = bytearray(GOOD)
    broken[-1] ^= 1
    with pytest.raises(DataError, match=r"t-0@7: .*checksum"):
        read(bytes(broken))


@pytest.mark.parametrize("magic", [0, 1, 3])
def test_another_message_format_is_named(magic):
    broken = bytearray(GOOD)
    broken[16] = magic
    with pytest.raises(DataError, match=r"message format|unknown version"):
        read(bytes(broken))


@pytest.mark.parametrize("codec", [1, 2, 3, 4, 5, 6, 7])
def test_a_body_that_is_not_compressed_as_it_says_is_an_error(codec):
    with pytest.raises(DataError, match="compress"):
        read(batch(0, [record(0, None, b"x")], attributes=codec))


def test_snappy_in_the_java_producer_s_frames():
    body = record(0, None, b"\x00\x00\x00\x00\x05abc")
    raw = bytes(cramjam.snappy.compress_raw(body))
    framed = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + struct.pack(">i", len(raw)) + raw
    for content in (framed, raw):
        assert read(batch(0, [body], attributes=2, body=content)).values[0] == b"abc\n"


def test_aborted_transactions_are_left_out_and_commits_end_them():
    abort = batch(2, [record(0, b"\x00\x00\x00\x00", b"\x00\x00\x00\x00\x00\x00")], attributes=0x30, producer=9)
    data = (
        batch(0, [record(0, None, b"a")], attributes=0x10, producer=9)
        + batch(1, [record(0, None, b"other")], attributes=0x10, producer=8)
        + abort
        + batch(3, [record(0, None, b"b")], attributes=0x10, producer=9)
    )
    records = read(data, Gather(), [AbortedTransaction(9, 0)])
    assert records.offsets.tolist() == [1, 3]
    assert records.next_offset == 4


def test_mutated_batches_are_errors_or_the_very_records_of_a_slow_reader():
    tally = fuzzing.fuzz(6_000, seed=1)
    assert tally.errors > 1000
    assert tally.compared > 500


def test_every_truncation_of_a_valid_batch_is_partial_or_an_error():
    tally = fuzzing.truncated()
    assert tally.errors > 10_000
    assert tally.records == 0


@given(st.binary(max_size=300))
def test_noise_is_no_batch(noise):
    with contextlib.suppress(DataError):
        assert read(noise) is None


@given(st.lists(st.tuples(st.none() | st.binary(max_size=20), st.none() | st.binary(max_size=20)), max_size=30))
def test_what_was_put_in_comes_out(pairs):
    data = batch(0, [record(n, key, value) for n, (key, value) in enumerate(pairs)], last=len(pairs))
    records = read(data, Gather(keys=True))
    assert [(records.keys[n], records.values[n]) for n in range(len(records))] == pairs
