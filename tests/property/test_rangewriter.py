"""A range's way into files: the same objects, byte for byte, in whatever batches, and from whatever cut on."""

import json
from concurrent.futures import Future
from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from laid_out import TP, pair, slices
from penstock import cutter
from penstock.companions import Keys
from penstock.extractors import EXTRACTORS
from penstock.keys import Layout
from penstock.model import PlannedRange, Records
from penstock.partitioners import PartitionerOptions
from penstock.partitioners import build as partitioner
from penstock.partitioners.zones import Zone
from penstock.rangewriter import Pipeline, RangeWriter
from penstock.rejects import ErrorPolicy
from penstock.sifting import Sieve
from penstock.store.create import StoredObject

T, STEP = 1_717_171_200_000, 700_000
OPTIONS = PartitionerOptions(fields=("c",), locale="en", timezone="Europe/Berlin")


class Writer:
    """Keeps an object instead of sending it."""

    def __init__(self, objects, key):
        self.objects, self.key, self.body = objects, key, bytearray()

    def write(self, buffer):
        self.body += buffer

    def close(self, _metadata, _end=None):
        assert self.key not in self.objects
        self.objects[self.key] = bytes(self.body)
        done = Future()
        done.set_result(StoredObject(len(self.body), "etag", "crc"))
        return done

    def abandon(self):
        self.body = None


def pipeline(objects, kind, rules):
    converter, made = pair("json", "json")
    key_converter, key_format = pair("string", "avro")
    open_object = lambda key, _first: Writer(objects, key)  # noqa: E731
    sieve = Sieve(
        converter,
        partitioner(kind, OPTIONS),
        EXTRACTORS["record"]("", Zone.parse("UTC")) if kind == "hourly" else None,
        (Keys(key_converter, "avro", key_format),),
        "write",
    )
    errors = ErrorPolicy(
        tolerate=True, open_object=lambda tp, at: (f"bad/{tp}+{at}", open_object(f"bad/{tp}+{at}", at))
    )
    return Pipeline(sieve, made, Layout(extension=made.extension), rules, open_object, errors=errors, keys=True)


def records(rows, start):
    """Rows of (letter, hours, kind) as the reader lays them out, from offset `start`."""
    values = []
    for n, (letter, _, kind) in enumerate(rows):
        good = json.dumps({"n": start + n, "c": letter}).encode()
        values.append({"good": good, "null": None, "bad": b"{", "unlabelled": b'{"c": []}'}[kind])
    count = len(rows)
    return Records(
        TP,
        np.arange(start, start + count),
        np.array([T + hours * STEP for _, hours, _ in rows], dtype=np.int64),
        slices(values, b"\n"),
        start + count,
        keys=slices([None if (start + n) % 5 == 0 else b"k%d" % (start + n) for n in range(count)]),
    )


def written(rows, sizes, kind, rules, start=0):
    """(objects, receipt, cuts) of a range that begins at `start`, its records handed over in batches of `sizes`."""
    objects, at = {}, start
    writer = RangeWriter(PlannedRange(TP, start, len(rows), "flush"), pipeline(objects, kind, rules), T)
    for size in (*sizes, len(rows)):
        part = rows[at : at + size]
        if part:
            writer.write(records(part, at))
        at += len(part)
    receipt = writer.finish()
    return objects, receipt, [cut.end for cut in writer._cuts if cut.reason not in ("flush", "errors")]


rows = st.lists(
    st.tuples(
        st.sampled_from("aab"), st.integers(0, 12), st.sampled_from(["good"] * 6 + ["null", "bad", "unlabelled"])
    ),
    max_size=25,
)
rules = st.builds(
    cutter.Rules,
    flush_size=st.integers(1, 9),
    flush_bytes=st.sampled_from([-1, -1, 40]),
    interval_ms=st.sampled_from([-1, 3_600_000]),
    on_partition_change=st.booleans(),
    max_open_files=st.sampled_from([-1, 1, 2]),
)
kinds = st.sampled_from(["default", "field", "hourly"])


def fitting(kind, the_rules):
    """As the pipeline has it: without times there is no interval."""
    return the_rules if kind == "hourly" else replace(the_rules, interval_ms=-1)


@settings(suppress_health_check=[HealthCheck.too_slow])
@example(
    [("a", 0, "null"), ("a", 0, "good")],
    [1],
    "hourly",
    cutter.Rules(2, interval_ms=3_600_000, on_partition_change=True),
)
@given(rows, st.lists(st.integers(1, 6), max_size=8), kinds, rules)
def test_objects_do_not_depend_on_batches_and_hold_every_record_once(the_rows, sizes, kind, the_rules):
    the_rules = fitting(kind, the_rules)
    whole, receipt, _ = written(the_rows, [], kind, the_rules)
    apart, other, _ = written(the_rows, sizes, kind, the_rules)
    assert apart == whole
    assert other == receipt
    assert receipt.fault is None
    assert receipt.commit.position == len(the_rows) or not the_rows
    # Without a field partitioner a list is as good as any other value.
    good = {"good", "unlabelled"} if kind != "field" else {"good"}
    values = [json.loads(line) for key, body in whole.items() if key.endswith(".json") for line in body.splitlines()]
    expected = [n for n, (_, _, what) in enumerate(the_rows) if what == "good"]
    assert sorted(value["n"] for value in values if "n" in value) == expected
    assert len(values) == sum(what in good for _, _, what in the_rows)
    errors = [
        json.loads(line)["offset"]
        for key, body in whole.items()
        if key.startswith("bad/")
        for line in body.splitlines()
    ]
    assert sorted(errors) == [n for n, (_, _, what) in enumerate(the_rows) if what not in good and what != "null"]
    assert (receipt.commit.skipped, receipt.commit.hidden) == (len(errors), 0)
    kept = [each for each in receipt.commit.objects if each.view == "keys"]
    assert sum(each.records for each in kept) == len(the_rows) - len(errors)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(rows, kinds, rules, st.data())
def test_resuming_at_any_cut_gives_the_same_later_objects(the_rows, kind, the_rules, data):
    the_rules = fitting(kind, the_rules)
    whole, receipt, cuts = written(the_rows, [], kind, the_rules)
    if cuts:
        start = data.draw(st.sampled_from(cuts))
        resumed, _, _ = written(the_rows, [], kind, the_rules, start)
        assert resumed == {each.key: whole[each.key] for each in receipt.commit.objects if each.start >= start}
