"""What open files hold: in memory within one budget, beyond it on disk; 500 of them fit in a megabyte."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_store import MemoryStore

from laid_out import TP
from penstock import cutter
from penstock.converters.bytes import BytesConverter
from penstock.formats import FORMATS, FormatOptions
from penstock.keys import Layout
from penstock.model import PlannedRange, Records, Slices
from penstock.partitioners.base import Labels
from penstock.rangewriter import Pipeline, RangeWriter
from penstock.sifting import Sieve
from penstock.spool import BLOCK_SIZE, Budget
from penstock.store.ownership import Owner
from penstock.store.upload import Uploads


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["write", "take", "clear"]), st.integers(0, 200_000))))
def test_bytes_come_out_as_they_went_in_wherever_they_waited(steps):
    budget = Budget(150_000)
    spools, expected = [budget.spool() for _ in range(4)], [b"" for _ in range(4)]
    for number, what, size in steps:
        if what == "write":
            data = random.Random(size).randbytes(size)
            spools[number].write(data)
            expected[number] += data
        elif what == "take":
            held = spools[number].take()
            assert b"".join(held.pieces) == expected[number]
            held.release()
            expected[number] = b""
        else:
            spools[number].clear()
            expected[number] = b""
        assert [len(each) for each in spools] == [len(each) for each in expected]
        assert budget.used == sum(each.in_memory for each in spools) <= budget.limit
    for spool, data in zip(spools, expected, strict=True):
        assert spool.reader().read() == data
    assert budget.used == 0
    budget.close()


def test_blocks_on_disk_are_used_again():
    budget = Budget(BLOCK_SIZE)
    spool = budget.spool()
    for _ in range(50):
        spool.write(b"x" * 3 * BLOCK_SIZE)
        held = spool.take()
        assert len(held) == 3 * BLOCK_SIZE
        held.release()
    assert budget.spilled == 150
    assert budget._blocks == 3
    budget.close()


class ByNumber:
    """500 encoded partitions."""

    def encode(self, batch):
        codes = np.asarray(batch.records.offsets % 500, dtype=np.int32)
        return Labels(tuple(f"p={number}" for number in range(500)), codes)


@pytest.mark.parametrize("name", ["bytes", "avro", "parquet"])
def test_five_hundred_open_partitions_share_a_megabyte(name):
    budget, store = Budget(1024 * 1024), MemoryStore()
    uploads = Uploads(store, Owner("c", 1, "fail"), 5 * 1024 * 1024, budget=budget)
    made = FORMATS[name](FormatOptions(budget=budget))
    kind = "bytes" if name == "bytes" else "avro"
    rules = cutter.Rules(40_000, -1, -1, on_partition_change=False, max_open_files=-1)
    sieve = Sieve(BytesConverter(kind, made.separator), ByNumber())
    pipeline = Pipeline(sieve, made, Layout(extension=made.extension), rules, uploads.open, budget=budget)
    writer = RangeWriter(PlannedRange(TP, 0, 40_000), pipeline, 0)
    row, size = b"v" * 99 + made.separator.ljust(1, b"v")[:1], 4_000
    most = 0
    for start in range(0, 40_000, size):
        data = np.frombuffer(bytearray(row * size), dtype=np.uint8)
        values = Slices(data, np.arange(size + 1, dtype=np.int64) * 100)
        offsets = np.arange(start, start + size, dtype=np.int64)
        writer.write(Records(TP, offsets, offsets, values, start + size))
        most = max(most, budget.used)
    receipt = writer.finish()
    budget.close()
    assert (len(receipt.commit.objects), receipt.fault) == (500, None)
    assert sum(each.records for each in receipt.commit.objects) == 40_000
    assert most <= budget.limit
    assert budget.used == 0
    assert budget.spilled > 0
