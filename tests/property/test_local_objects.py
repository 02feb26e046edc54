"""Objects as files: the same bytes at every place, by as many requests as pieces; bodies that are sent in pieces."""

import io
from unittest.mock import patch

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_store import MemoryStore

from penstock.errors import PenstockError
from penstock.spool import Budget
from penstock.store import local
from penstock.store.base import Anything, NotFoundError
from penstock.store.sending import Pieces

PIECE = 16
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(0, 40)),
        st.tuples(st.just("seek"), st.integers(0, 120)),
        st.tuples(st.just("from the end"), st.integers(-40, 0)),
        st.tuples(st.just("line"), st.just(0)),
    )
)


def stored(data):
    store = MemoryStore()
    store.put("k", data, Anything())
    return store


@given(st.binary(max_size=100), STEPS, st.booleans())
def test_what_is_fetched_where_it_is_read_is_the_object(data, steps, is_known):
    file = local.ranged(stored(data), "k", len(data) if is_known else None, PIECE)
    same = io.BytesIO(data)
    for what, number in steps:
        if what == "read":
            assert file.read(number) == same.read(number)
        elif what == "line":
            assert file.readline() == same.readline()
        elif what == "seek":
            assert file.seek(number) == same.seek(number)
        else:
            assert file.seek(max(number, -len(data)), io.SEEK_END) == same.seek(max(number, -len(data)), io.SEEK_END)


@given(st.binary(max_size=100))
def test_a_copy_is_the_object_with_its_size_and_checksum(data):
    with patch.object(local, "_PIECE", PIECE), local.copied(stored(data), "k") as copy:
        assert (copy.file.read(), copy.size) == (data, len(data))
        assert copy.crc32c == f"{google_crc32c.value(data):08x}"


def test_a_disk_that_does_not_take_a_copy_is_named(monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/nowhere,/elsewhere")
    monkeypatch.setattr(local, "_PIECE", PIECE)
    with (
        pytest.raises(PenstockError, match=r"`k` does not fit into /nowhere after 16 bytes: .*; make room there"),
        local.copied(stored(b"x" * 3 * PIECE), "k"),
    ):
        pass


@pytest.mark.parametrize("size", [0, PIECE - 1, PIECE, 5 * PIECE + 1])
def test_a_file_read_to_its_end_costs_a_request_for_each_piece(size):
    store = stored(b"x" * size)
    asked = []
    with patch.object(MemoryStore, "get", lambda self, key, *ends: asked.append(ends) or GET(self, key, *ends)):
        file = local.ranged(store, "k", None, PIECE)
        assert sum(map(len, iter(lambda: file.read(PIECE // 2), b""))) == size
    assert [start for start, _ in asked if start < size] == list(range(0, size, PIECE))
    assert len([start for start, end in asked if start < end]) <= size // PIECE + 1


GET = MemoryStore.get


def test_what_is_not_there_is_named():
    for read in (lambda file: file.read(1), lambda file: file.seek(0, io.SEEK_END)):
        with pytest.raises(NotFoundError, match="k"):
            read(local.ranged(MemoryStore(), "k"))


@given(st.lists(st.binary(max_size=200_000), max_size=4))
def test_a_body_in_pieces_can_be_sent_again_and_again(parts):
    spool = Budget().spool()
    for part in parts:
        spool.write(part)
    held, whole = spool.take(), b"".join(parts)
    body = Pieces(held)
    assert (len(body), bytes(held)) == (len(whole), whole)
    for _ in range(2):
        assert b"".join(iter(lambda: bytes(body.read(16)), b"")) == whole
        assert body.tell() == body.seek(0, io.SEEK_END) == len(whole)
        assert body.seek(0) == body.tell() == 0
    if len(whole) > 1:
        with pytest.raises(ValueError, match="is not where a piece begins"):
            body.seek(1)
    held.release()
