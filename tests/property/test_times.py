"""Vectorised times against the calendar of the standard library, one by one."""

import datetime as dt
import zoneinfo
from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.extractors.iso import parse_text, parse_texts
from penstock.model import Slices
from penstock.partitioners.base import Times
from penstock.partitioners.joda import Names, PathFormat
from penstock.partitioners.time import HOURLY_MS, TimePartitioner, hourly_format
from penstock.partitioners.zones import Zone

ZONES = ["UTC", "Europe/Berlin", "America/Los_Angeles", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Sao_Paulo"]
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
instants = st.integers(-2_208_988_800_000, 4_102_444_800_000)  # 1900 to 2100


def real_offset(name, utc_ms):
    at = EPOCH + dt.timedelta(milliseconds=utc_ms)
    return at.astimezone(zoneinfo.ZoneInfo(name)).utcoffset() // dt.timedelta(milliseconds=1)


near = st.integers(1_600_000_000_000, 1_800_000_000_000)


@given(st.sampled_from(ZONES), st.lists(near, min_size=1, max_size=20) | st.lists(instants, min_size=1, max_size=20))
def test_offsets_of_arrays_are_those_of_the_standard_library(name, times):
    found = Zone.parse(name).offsets(np.array(times, dtype=np.int64))
    assert found.tolist() == [real_offset(name, each) for each in times]


@given(st.sampled_from(ZONES), instants, st.integers(1, 100_000_000))
def test_instants_of_a_schedule_divide_time(name, now, interval):
    zone = Zone.parse(name)
    last, following = zone.scheduled(now, interval), zone.next_scheduled(now, interval)
    assert last <= now < following <= last + interval


@given(st.sampled_from(ZONES), st.lists(instants, min_size=1, max_size=30), st.data())
def test_labels_do_not_depend_on_batches(name, times, data):
    partitioner = TimePartitioner(HOURLY_MS, PathFormat.parse(hourly_format("/"), Names()), Zone.parse(name))

    def labels(part):
        found = partitioner.encode(SimpleNamespace(times=Times(np.array(part, dtype=np.int64))))
        return [found.names[0]] * len(part) if found.codes is None else [found.names[code] for code in found.codes]

    at = data.draw(st.integers(0, len(times)))
    apart = [label for part in (times[:at], times[at:]) if part for label in labels(part)]
    assert labels(times) == apart


@given(st.sampled_from(ZONES), st.integers(2 * 86_400_000, 4_102_444_800_000))
def test_an_hour_s_label_is_the_local_hour(name, at):
    partitioner = TimePartitioner(HOURLY_MS, PathFormat.parse("yyyy-MM-dd-HH", Names()), Zone.parse(name))
    labels = partitioner.encode(SimpleNamespace(times=Times(np.array([at]))))
    local = (EPOCH + dt.timedelta(milliseconds=at)).astimezone(zoneinfo.ZoneInfo(name))
    if local.utcoffset() % dt.timedelta(hours=1) == dt.timedelta(0):
        hour = local.replace(minute=0, second=0, microsecond=0)
        # In the hour in which a clock is set, the connector's arithmetic counts.
        if real_offset(name, at - HOURLY_MS) == real_offset(name, at + HOURLY_MS):
            assert labels.names == (hour.strftime("%Y-%m-%d-%H"),)


texts = st.one_of(
    st.datetimes().map(lambda each: each.isoformat(timespec="seconds")),
    st.datetimes().map(lambda each: each.isoformat(timespec="milliseconds") + "Z"),
    st.datetimes().map(lambda each: each.isoformat(timespec="milliseconds") + "-08:30"),
    st.from_regex(r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|\.[0-9]{3})?\Z"),
    st.text(alphabet="0123456789-:.TZW+", max_size=24),
)


@settings(max_examples=40)
@given(st.sampled_from(ZONES), st.lists(texts, min_size=1, max_size=12))
def test_columns_of_texts_are_read_as_each_text_is(name, given_texts):
    zone = Zone.parse(name)
    raw = [text.encode() for text in given_texts]
    offsets = np.cumsum([0, *(len(each) for each in raw)])
    times, good = parse_texts(Slices(np.frombuffer(b"".join(raw), dtype=np.uint8), offsets), zone)
    expected = [parse_text(text, zone) for text in given_texts]
    assert [int(ms) if ok else None for ms, ok in zip(times, good, strict=True)] == expected
