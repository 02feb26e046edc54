from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from penstock.errors import DataError
from penstock.kafka.aborted import AbortedTransaction
from penstock.kafka.batches import Fetched, decode, tabulate
from penstock.kafka.decompress import Arena
from penstock.model import Gather, PlannedRange, Records, TopicPartition
from record_batches import (
    ABORT,
    APPEND_TIME,
    COMMIT,
    CONTROL,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    TRANSACTIONAL,
    ZSTD,
    Rec,
    batch,
    header_area,
    marker,
    record,
    resealed,
    xerial,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

TP = TopicPartition("orders", 3)
EVERYTHING = Gather(keys=True, headers=True)
CODECS = [NONE, GZIP, SNAPPY, LZ4, ZSTD]
LIMIT = 32 << 20


def fetched(data: bytes, end: int = 1 << 60, aborted: Sequence[tuple[int, int]] = ()) -> Fetched:
    source = np.frombuffer(data, np.uint8)
    table, error = tabulate(TP, source, 0, len(data), 0)
    assert error is None
    return Fetched(PlannedRange(TP, 0, end), source, table, tuple(AbortedTransaction(*each) for each in aborted))


def read(
    data: bytes,
    start: int = 0,
    end: int = 1 << 60,
    aborted: Sequence[tuple[int, int]] = (),
    gather: Gather = EVERYTHING,
    limit: int = LIMIT,
) -> tuple[list[Records], DataError | None]:
    found: list[Records] = []
    try:
        for records in decode(fetched(data, end, aborted), start, gather, Arena(limit)):
            found.append(records)  # noqa: PERF402 - what came before an error counts
    except DataError as error:
        return found, error
    return found, None


def offsets(found: Sequence[Records]) -> list[int]:
    return [offset for each in found for offset in each.offsets.tolist()]


def recs(found: Sequence[Records]) -> list[tuple]:
    rows = []
    for each in found:
        for row in range(len(each)):
            stamp = int(each.timestamps[row])
            rows.append((int(each.offsets[row]), stamp, each.keys[row], each.values[row], each.headers[row]))
    return rows


def expected(records: Sequence[Rec]) -> list[tuple]:
    return [(r.offset, r.timestamp, r.key, r.value, header_area(r.headers)) for r in records]


MIXED = [
    Rec(10, b"one", b"k", 1_700_000_000_005),
    Rec(11, None, b""),
    Rec(12, b"", None, 1_600_000_000_000),
    Rec(13, b"x" * 300, b"y" * 200, 1_800_000_000_000, ((b"h", b"v"), (b"", None), (b"h", b""))),
]


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_gives_back_keys_values_times_and_headers(codec: int):
    found, error = read(batch(MIXED, codec=codec))
    assert error is None
    assert recs(found) == expected(MIXED)
    assert found[-1].next_offset == 14


def test_javas_snappy_framing_is_read():
    body = b"".join(record(each, 10, MIXED[0].timestamp) for each in MIXED)
    found, error = read(batch(MIXED, codec=SNAPPY, body=xerial(body)))
    assert error is None
    assert recs(found) == expected(MIXED)


@pytest.mark.parametrize(
    "body", [xerial(b"abc" * 90)[:-1], xerial(b"abc" * 90) + b"\x00\x00", xerial(b"a") + b"\xff" * 8]
)
def test_a_snappy_framing_that_is_cut_off_or_lies_is_refused(body: bytes):
    error = read(batch(MIXED, codec=SNAPPY, body=body))[1]
    assert str(error).startswith("orders-3@10: a record batch that cannot be decompressed (snappy)")


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_batches_of_another_writer_are_read(codec: int):
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 20)
    for n in range(20):
        builder.append(n, 1_700_000_000_000 - n, b"k%d" % n, b"v%d" % n * n, [("h", b"x")] if n % 3 else [])
    found, error = read(bytes(builder.build()))
    assert error is None
    assert [(key, value) for _, _, key, value, _ in recs(found)] == [(b"k%d" % n, b"v%d" % n * n) for n in range(20)]
    assert [stamp for _, stamp, *_ in recs(found)] == [1_700_000_000_000 - n for n in range(20)]


def test_batches_of_different_codecs_in_one_answer_stay_in_order():
    data = b"".join(batch([Rec(n, b"%d" % n)], codec=n % 5) for n in range(50))
    found, error = read(data)
    assert error is None
    assert [row[3] for row in recs(found)] == [b"%d" % n for n in range(50)]


def test_the_brokers_time_counts_for_all_records_of_a_log_append_time_batch():
    found, _ = read(batch(MIXED, attributes=APPEND_TIME, max_timestamp=77))
    assert found[0].timestamps.tolist() == [77] * 4


def test_only_offsets_of_the_range_are_handed_over_and_next_offset_ends_there():
    data = b"".join(batch([Rec(n + i) for i in range(5)], codec=LZ4) for n in range(0, 50, 5))
    found, error = read(data, 12, 33)
    assert error is None
    assert offsets(found) == list(range(12, 33))
    assert found[-1].next_offset == 33


def test_a_compacted_batch_counts_up_to_its_last_offset():
    found, _ = read(batch([Rec(10), Rec(15)], base_offset=8, last_offset=40))
    assert offsets(found) == [10, 15]
    assert found[-1].next_offset == 41


def test_a_batch_that_compaction_left_empty_moves_the_position():
    found, _ = read(batch([], base_offset=8, last_offset=40, producer_id=5))
    assert offsets(found) == []
    assert found[-1].next_offset == 41


def test_control_batches_are_never_seen_but_move_the_position():
    found, _ = read(batch([Rec(0)], attributes=TRANSACTIONAL, producer_id=1) + marker(1, 1, COMMIT))
    assert offsets(found) == [0]
    assert found[-1].next_offset == 2


def test_aborted_transactions_are_hidden_by_producer_from_their_first_offset_to_their_marker():
    data = (
        batch([Rec(0)], attributes=TRANSACTIONAL, producer_id=1)
        + batch([Rec(1)], attributes=TRANSACTIONAL, producer_id=2)
        + batch([Rec(2)])
        + batch([Rec(3)], attributes=TRANSACTIONAL, producer_id=1, codec=GZIP)
        + marker(4, 1, ABORT)
        + batch([Rec(5)], attributes=TRANSACTIONAL, producer_id=1)
        + marker(6, 2, COMMIT)
        + marker(7, 1, COMMIT)
        + batch([Rec(8)], attributes=TRANSACTIONAL, producer_id=1)
        + marker(9, 1, ABORT)
    )
    found, error = read(data, aborted=[(1, 8), (1, 0)])
    assert error is None
    assert offsets(found) == [1, 2, 5]
    assert found[-1].next_offset == 10
    assert offsets(read(data)[0]) == [0, 1, 2, 3, 5, 8]


def test_records_of_the_same_producer_without_a_transaction_stay_visible():
    data = batch([Rec(0)], producer_id=1) + batch([Rec(1)], attributes=TRANSACTIONAL, producer_id=1)
    assert offsets(read(data, aborted=[(1, 0)])[0]) == [0]


def test_a_control_batch_without_records_is_no_abort_marker():
    empty = batch([], base_offset=1, last_offset=1, attributes=TRANSACTIONAL | CONTROL, producer_id=1)
    data = batch([Rec(0)], attributes=TRANSACTIONAL, producer_id=1) + empty
    assert offsets(read(data + batch([Rec(2)], attributes=TRANSACTIONAL, producer_id=1), aborted=[(1, 0)])[0]) == []


def test_a_malformed_marker_is_named():
    bad = batch([Rec(1, key=b"ab")], attributes=TRANSACTIONAL | CONTROL, producer_id=1)
    found, error = read(batch([Rec(0)]) + bad + batch([Rec(2)]), aborted=[(1, 0)])
    assert offsets(found) == [0]
    assert found[-1].next_offset == 1
    assert str(error).startswith("orders-3@1: a malformed control batch;")


@pytest.mark.parametrize("codec", CODECS)
def test_every_flipped_bit_that_the_checksum_covers_is_found(codec: int):
    good, data = batch([Rec(0)]), batch(MIXED, codec=codec)
    for at in range(21, len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 8
        source = np.frombuffer(good + bytes(damaged), np.uint8)
        table, header = tabulate(TP, source, 0, len(source), 0)
        found = []
        with pytest.raises(DataError) as caught:  # noqa: PT012 - an error behind what is sound
            for each in decode(Fetched(PlannedRange(TP, 0, 99), source, table), 0, EVERYTHING, Arena(LIMIT)):
                found.append(each)  # noqa: PERF402 - what came before an error counts
            if header:
                raise header
        assert offsets(found) == [0]
        assert caught.value.offset in (1, 10)


def test_a_wrong_checksum_is_passed_over_only_if_nobody_asked_for_it():
    data = bytearray(batch([Rec(0, b"a")]))
    data[20] ^= 1
    source = fetched(bytes(data))
    assert offsets(list(decode(source, 0, EVERYTHING, Arena(LIMIT), check_crcs=False))) == [0]
    with pytest.raises(DataError, match="orders-3@0: a record batch with a wrong checksum"):
        list(decode(source, 0, EVERYTHING, Arena(LIMIT)))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("cut", [100, 17])
def test_message_sets_of_old_producers_are_named_with_their_offset(magic: int, cut: int):
    old = struct.pack(">qiIbb", 7, 14 + 40, 0, magic, 0) + bytes(60)
    source = np.frombuffer(batch([Rec(6)]) + old[:cut], np.uint8)
    table, error = tabulate(TP, source, 0, len(source), 0)
    assert len(table) == 1
    assert str(error).startswith("orders-3@7: written by a producer older than Kafka 0.11")


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD, SNAPPY])
def test_a_batch_that_decompresses_to_more_than_the_limit_is_refused(codec: int):
    bomb = batch([Rec(5, bytes(3 << 20))], codec=codec)
    found, error = read(batch([Rec(4)]) + bomb, limit=1 << 20)
    assert offsets(found) == [4]
    assert str(error).startswith("orders-3@5: a record batch that cannot be decompressed")
    assert "`1048576` bytes" in str(error)
    assert offsets(read(bomb, limit=4 << 20)[0]) == [5]


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD, SNAPPY])
def test_bodies_larger_than_the_first_buffer_are_read_among_small_ones(codec: int):
    sizes = [10, 9 << 20, 10, 20 << 20, 17 << 20, 10]
    data = b"".join(batch([Rec(n, bytes(size))], codec=codec) for n, size in enumerate(sizes))
    found, error = read(data)
    assert error is None
    assert [len(row[3]) for row in recs(found)] == sizes


def test_an_unknown_codec_is_refused():
    error = read(resealed(batch(MIXED, attributes=5, codec=NONE)))[1]
    assert "orders-3@10: a record batch that cannot be decompressed (codec 5)" in str(error)


def test_a_body_that_is_no_compressed_data_is_refused_behind_what_is_sound():
    for codec in (GZIP, SNAPPY, LZ4, ZSTD):
        found, error = read(batch([Rec(0)], codec=codec) + batch(MIXED, codec=codec, body=b"\x01nonsense"))
        assert offsets(found) == [0]
        assert error is not None
        assert error.offset == 10


def test_a_hundred_thousand_batches_of_one_record_are_one_chunk():
    one = bytearray(batch([Rec(0)]))
    data = bytearray()
    for n in range(100_000):
        one[0:8] = struct.pack(">q", n)  # the checksum does not cover it
        data += one
    found, error = read(bytes(data))
    assert error is None
    assert len(found) == 1
    assert offsets(found) == list(range(100_000))


def test_a_chunk_of_decompressed_records_is_bounded():
    data = b"".join(batch([Rec(n, bytes(1 << 20))], codec=ZSTD) for n in range(40))
    found, _ = read(data)
    assert offsets(found) == list(range(40))
    assert max(len(each.values.data) for each in found) < 10 << 20
    assert [each.next_offset for each in found[:-1]] == [int(each.offsets[-1]) + 1 for each in found[:-1]]


def test_schema_ids_are_read_only_where_the_prefix_is_stripped():
    data = batch([Rec(0, b"\x00\x00\x00\x00\x07abc"), Rec(1, b"abc"), Rec(2, None)])
    (records,), _ = read(data, gather=Gather(strip=5, separator=b"\n"))
    assert records.schema_ids.tolist() == [7, -1, -2]
    assert [records.values[row] for row in range(3)] == [b"abc\n", b"abc\n", None]
    assert records.keys is records.headers is None
    assert read(data, gather=Gather())[0][0].schema_ids is None
