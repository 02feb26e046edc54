"""Objects to records: merged by offset, cut at edges, fetched ahead, in little memory; and the map's own objects."""

import json
import tracemalloc

import google_crc32c
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_store import MemoryStore

from penstock.errors import PenstockError, StateError
from penstock.model import CommittedObject, TopicPartition
from penstock.restore.ahead import LARGE, ahead
from penstock.restore.maps import Maps
from penstock.restore.offsets import MOST_METADATA, Position, Row
from penstock.restore.payloads import SeparatedFile
from penstock.restore.plan import Bundle, Leniency, segments
from penstock.restore.reading import PlainValues, Readers, Reading
from penstock.restore.records import Record
from penstock.restore.selection import Span
from penstock.statelog.names import Names
from penstock.store.base import Anything

TP = TopicPartition("t", 0)


class WithOffsets:
    """Lines of `[offset, timestamp, text]`: records that carry what they had in Kafka."""

    carried = frozenset({"offset", "timestamp"})

    def read(self, file, key, topic):  # noqa: ARG002 - as the others
        for line in file:
            offset, timestamp, text = json.loads(line)
            yield Record(text.encode(), timestamp=timestamp, offset=offset)


LINES = Readers(PlainValues(SeparatedFile(b"\n", "value")), None, frozenset({"value"}))


def stored(store, label, start, end, body, records, times=(0, 0)):
    """An object in the store, as a commit names it."""
    key = f"{label}/{start}"
    store.put(key, body, Anything())
    crc = google_crc32c.Checksum(body).hexdigest().decode()
    return CommittedObject(key, start, end, records, len(body), "e", crc, label, "", *times, "flush.size")


@given(
    rows=st.lists(st.tuples(st.integers(0, 40), st.sampled_from("abc")), unique_by=lambda row: row[0], min_size=1),
    start=st.integers(0, 40),
    length=st.integers(0, 40),
    from_ms=st.none() | st.integers(0, 40),
)
def test_records_that_carry_their_offsets_come_in_order_whatever_object_they_are_in(rows, start, length, from_ms):
    store, found = MemoryStore(), []
    for label in "abc":
        mine = sorted(offset for offset, where in rows if where == label)
        if mine:
            body = b"".join(b'[%d,%d,"%s"]\n' % (offset, offset, label.encode()) for offset in mine)
            times = (mine[0], mine[-1])
            held = stored(store, label, mine[0], mine[-1] + 1, body, len(mine), times)
            found.append(Bundle(TP, held, None, None, 0, WithOffsets.carried))
    reading = Reading(store, lambda _: Readers(WithOffsets()))
    came = []
    for segment in segments(found, Span(start, start + length, from_ms), Leniency()):
        with reading.open(segment) as opened:
            came += [(record.offset, record.value.decode()) for record in opened.records]
    assert came == sorted(row for row in rows if start <= row[0] < start + length and row[0] >= (from_ms or 0))


def lines(store, start, texts):
    body = b"".join(b"%s\n" % text.encode() for text in texts)
    return Bundle(TP, stored(store, "p", start, start + len(texts), body, len(texts)), None, None, 0)


def test_an_object_far_larger_than_its_memory_is_read():
    store = MemoryStore()
    (segment,) = segments([lines(store, 0, ["x" * 1000] * 40_000)], Span(), Leniency())
    tracemalloc.start()
    try:
        with Reading(store, lambda _: LINES).open(segment) as opened:
            count = sum(1 for _ in opened.records)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (count, segment.size) == (40_000, 40_040_000)
    assert peak < 26 << 20  # two pieces of 8 MiB on their way to disk, and one in the file's buffer


def test_segments_are_opened_ahead_in_order_and_a_bad_one_is_told_at_its_turn():
    store = MemoryStore()
    found = [lines(store, start, ["a", "b"]) for start in range(0, 80, 2)]
    store.delete("p/50")
    left = [(segment, 0) for segment in segments(found, Span(), Leniency())]
    coming, came = ahead(Reading(store, lambda _: LINES), left), []
    for segment, _, opening in coming:
        if segment.start == 50:
            with pytest.raises(PenstockError, match="`p/50` is named by the state log but is not in the bucket"):
                opening.result()
            break
        with opening.result() as opened:
            came += [record.offset for record in opened.records]
    coming.close()
    assert came == list(range(50))


def test_large_segments_are_not_opened_beside_another():
    store = MemoryStore()
    found = [lines(store, start, ["x" * (LARGE // 2)]) for start in range(6)]
    store.requests = 0
    coming = ahead(Reading(store, lambda _: LINES), [(s, 0) for s in segments(found, Span(), Leniency())])
    next(coming)[2].result().__exit__(None, None, None)
    coming.close()
    assert store.requests <= 2 * 3  # two requests for each of the one that is read and the two beside it


@given(st.lists(st.integers(1, 40), max_size=30))
def test_rows_that_do_not_fit_beside_a_position_are_kept_in_objects(sizes):
    maps, position, written, at = Maps(MemoryStore(), Names("s/"), "again"), Position("{}", 0, 0), [], 10**12
    for size in sizes:
        more = [Row(at + n, at + n + 1, at + 2 * n, at + 2 * n + 1, 1) for n in range(size)]
        at += 100
        written += more
        position = maps.fitted(msgspec.structs.replace(position, rows=(*position.rows, *more)))
        assert len(position.metadata) <= MOST_METADATA
    assert maps.rows(Position.read(position.metadata, "g")) == written


@pytest.mark.parametrize("body", [None, b"{", b'{"rows":1}'])
def test_a_part_of_the_map_that_is_gone_or_broken_is_named(body):
    store = MemoryStore()
    if body is not None:
        store.put("s/restore/again/part.json", body, Anything())
    with pytest.raises(StateError, match=r"`s/restore/again/part\.json`, a part of the map of offsets"):
        Maps(store, Names("s/"), "again").rows(Position("{}", 0, 0, moved="part"))
