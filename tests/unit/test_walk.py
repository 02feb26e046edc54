from __future__ import annotations

import itertools

import numpy as np
import pytest

from penstock.kafka import walk
from record_batches import Rec, batch


def scanned(data: bytes, room: int = 100, end: int | None = None) -> tuple[np.ndarray, int, int]:
    table = np.zeros((room, walk.COLUMNS), np.int64)
    found, wrong, at = walk.scan(np.frombuffer(data, np.uint8), 0, len(data) if end is None else end, table)
    return table[:found], wrong, at


def walked(data: bytes, start: int = 0, end: int = 1 << 60, room: int = 100) -> tuple[list[int], np.ndarray, int, int]:
    table, _, _ = scanned(data)
    offsets, timestamps, spans = np.empty(room, np.int64), np.empty(room, np.int64), np.empty((room, 6), np.int64)
    source = np.frombuffer(data, np.uint8)
    count, wrong, at = walk.walk(source, table, start, end, offsets, timestamps, spans)
    return offsets[:count].tolist(), spans[:count], wrong, at


def laid(
    data: bytes, spans: list[list[int]], strip: int = 0, separator: bytes = b""
) -> tuple[list[bytes], list[int], bool]:
    source, table = np.frombuffer(data, np.uint8), np.array(spans, np.int64)
    ends, ids = np.empty(len(spans) + 1, np.int64), np.zeros(len(spans), np.int32)
    walk.lay(source, table, 0, strip, len(separator), ends, ids)
    out = np.zeros(max(int(ends[-1]), 0), np.uint8)
    fits = walk.gather(source, table, 0, np.frombuffer(separator, np.uint8), ends, out)
    return [out[a:b].tobytes() for a, b in itertools.pairwise(ends)], ids.tolist(), fits


def test_scan_reads_every_field_of_a_header():
    table, wrong, at = scanned(batch([Rec(7), Rec(9)], producer_id=12, attributes=16, max_timestamp=99))
    assert (wrong, len(table)) == (walk.FINE, 1)
    row = table[0]
    assert row[[walk.POSITION, walk.END]].tolist() == [0, at]
    assert row[[walk.BASE_OFFSET, walk.LAST_OFFSET, walk.RECORDS]].tolist() == [7, 9, 2]
    assert row[[walk.ATTRIBUTES, walk.PRODUCER_ID]].tolist() == [16, 12]
    assert row[[walk.BASE_TIMESTAMP, walk.MAX_TIMESTAMP]].tolist() == [1_700_000_000_000, 99]
    assert row[[walk.BODY_START, walk.BODY_END]].tolist() == [61, at]


def test_a_batch_cut_off_at_any_byte_ends_the_scan_without_an_error():
    whole = batch([Rec(0)])
    both = whole + batch([Rec(1)])
    for cut in range(len(whole), len(both)):
        table, wrong, at = scanned(both[:cut])
        assert (len(table), wrong, at) == (1, walk.FINE, len(whole))


def test_scan_stops_at_the_end_that_it_is_given():
    both = batch([Rec(0)]) + batch([Rec(1)])
    assert len(scanned(both, end=len(both) - 1)[0]) == 1


def test_scan_writes_no_more_rows_than_there_are():
    assert scanned(batch([Rec(0)]) + batch([Rec(1)]), room=1)[1] == walk.NO_ROOM


@pytest.mark.parametrize(
    ("at", "new", "wrong"),
    [
        (16, b"\x00", walk.OLD_MAGIC),
        (16, b"\x01", walk.OLD_MAGIC),
        (16, b"\x03", walk.NEW_MAGIC),
        (8, b"\x00\x00\x00\x30", walk.BAD_LENGTH),
        (8, b"\xff\xff\xff\xff", walk.BAD_LENGTH),
        (0, b"\xff\xff\xff\xff\xff\xff\xff\xff", walk.BAD_OFFSETS),
        (0, b"\x7f\xff\xff\xff\xff\xff\xff\xff", walk.BAD_OFFSETS),
        (23, b"\xff\xff\xff\xff", walk.BAD_OFFSETS),
        (57, b"\xff\xff\xff\xff", walk.BAD_COUNT),
    ],
)
def test_scan_says_what_is_wrong_with_a_header(at: int, new: bytes, wrong: int):
    data = bytearray(batch([Rec(5), Rec(6)]))
    data[at : at + len(new)] = new
    assert scanned(bytes(data))[1:] == (wrong, 0)


def test_batches_that_go_back_are_refused():
    data = batch([Rec(5), Rec(6)])
    table, wrong, at = scanned(data + batch([Rec(6)]))
    assert (len(table), wrong, at) == (1, walk.BAD_OFFSETS, len(data))


def test_walk_keeps_only_the_offsets_asked_for():
    data = batch([Rec(n) for n in range(5)]) + batch([Rec(n) for n in range(5, 9)])
    assert walked(data, 3, 7)[0] == [3, 4, 5, 6]


def test_a_record_may_not_leave_its_batch():
    data = bytearray(batch([Rec(0, b"v" * 10)]))
    data[61] += 2  # its length, one more
    assert walked(bytes(data))[2:] == (walk.BAD_RECORD, 0)


def test_bytes_behind_the_last_record_are_refused():
    assert walked(batch([Rec(0), Rec(1)], count=1))[2] == walk.TRAILING_BYTES


def test_more_records_claimed_than_there_are_is_refused():
    assert walked(batch([Rec(0), Rec(1)], count=2**31 - 1))[2] == walk.BAD_RECORD


def test_records_whose_offsets_do_not_ascend_are_refused():
    for offsets in ((0, 0), (1, 0), (0, 7)):
        data = batch([Rec(n) for n in offsets], base_offset=0, last_offset=5)
        assert walked(data)[2] == walk.BAD_RECORD_OFFSET


def test_headers_must_fill_their_record():
    data = bytearray(batch([Rec(0, headers=((b"a", b"b"),))]))
    data[-5] = 4  # two headers instead of one
    assert walked(bytes(data))[2] == walk.BAD_HEADERS


def test_nothing_of_a_malformed_batch_is_handed_over():
    bad = bytearray(batch([Rec(2), Rec(3)]))
    bad[-1] = 2  # the last record claims a header
    offsets, _, wrong, at = walked(batch([Rec(0), Rec(1)]) + bytes(bad))
    assert (offsets, wrong, at) == ([0, 1], walk.BAD_HEADERS, 1)


def test_walk_writes_no_more_records_than_there_is_room_for():
    assert walked(batch([Rec(0), Rec(1)]), room=1)[2] == walk.NO_ROOM


def test_a_table_that_points_outside_of_the_data_is_refused():
    source = np.frombuffer(batch([Rec(0)]), np.uint8)
    for start, end in ((-1, 10), (0, len(source) + 1), (20, 10)):
        table = np.zeros((1, walk.COLUMNS), np.int64)
        table[0, [walk.BODY_START, walk.BODY_END, walk.RECORDS]] = start, end, 1
        numbers = np.empty(1, np.int64)
        assert walk.walk(source, table, 0, 9, numbers, numbers, np.empty((1, 6), np.int64))[1] == walk.BAD_BODY


def test_values_are_copied_side_by_side_with_a_separator_behind_each_that_is_not_null():
    values, _, fits = laid(
        b"abcdef", [[0, 2, 0, 0, 0, 0], [2, -1, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0], [3, 3, 0, 0, 0, 0]], 0, b"\r\n"
    )
    assert fits
    assert values == [b"ab\r\n", b"", b"\r\n", b"def\r\n"]


def test_the_wire_prefix_is_dropped_and_its_schema_id_read():
    data = b"\x00\x00\x01\x00\x02payload" + b"\x01\x00\x00\x00\x02x" + b"\x00\x00\x00\x01" + b"\x00\xff\xff\xff\xffy"
    spans = [[0, 12, 0, 0, 0, 0], [12, 6, 0, 0, 0, 0], [18, 4, 0, 0, 0, 0], [0, -1, 0, 0, 0, 0], [22, 6, 0, 0, 0, 0]]
    values, ids, fits = laid(data, spans, 5)
    assert fits
    assert ids == [65538, walk.NOT_WIRE, walk.NOT_WIRE, walk.NULL_VALUE, walk.NOT_WIRE]
    assert values == [b"payload", data[12:18], data[18:22], b"", data[22:]]


@pytest.mark.parametrize("span", [[-1, 3], [4, 3], [7, 1], [0, 1 << 62], [1 << 62, 3]])
def test_gather_copies_nothing_from_outside_of_its_buffer(span: list[int]):
    source, out = np.frombuffer(b"abcdef", np.uint8), np.zeros(3, np.uint8)
    ends = np.array([0, min(span[1], 1 << 61)], np.int64)
    assert not walk.gather(source, np.array([[*span, 0, 0, 0, 0]], np.int64), 0, source[:0], ends, out)
    assert not out.any()


def test_gather_copies_nothing_beyond_its_target():
    source, out = np.frombuffer(b"abcdef", np.uint8), np.zeros(3, np.uint8)
    assert not walk.gather(source, np.array([[0, 4, 0, 0, 0, 0]], np.int64), 0, source[:0], np.array([0, 4]), out)
    assert not out.any()
