"""Zones as arithmetic, and the instants of scheduled rotation (reference s3-sink-connector 2.2 and 3)."""

import datetime as dt
import zoneinfo

import numpy as np
import pytest

from penstock.partitioners.zones import FIRST_MS, LAST_MS, Zone, _changes

HOUR, DAY = 3_600_000, 86_400_000


def ms(text):
    return int(dt.datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("UTC", 0),
        ("GMT", 0),
        ("CET", 2),
        ("EST", -5),
        ("MST7MDT", -6),
        ("America/Los_Angeles", -7),
        ("Asia/Kathmandu", 5.75),
        ("+02:00", 2),
        ("-0830", -8.5),
        ("+9", 9),
        ("+02:00:30", 2 + 30 / 3600),
    ],
)
def test_offsets_in_may_2024(text, hours):
    zone = Zone.parse(text)
    at = ms("2024-05-31T12:00+00:00")
    assert zone.offset(at) == hours * HOUR
    assert zone.offsets(np.array([at, at])).tolist() == [hours * HOUR] * 2


@pytest.mark.parametrize("text", ["Europe/Berlim", "+25:00", "nowhere", "", "+", "../etc/passwd", "PST8"])
def test_what_is_no_zone(text):
    with pytest.raises(ValueError, match="must be a time zone such as America/Los_Angeles, UTC or"):
        Zone.parse(text)


@pytest.mark.parametrize(
    ("zone", "local", "utc"),
    [
        # skipped: read with the offset before the gap
        ("America/New_York", "2024-03-10T02:30", "2024-03-10T07:30+00:00"),
        ("Europe/Berlin", "2024-03-31T02:30", "2024-03-31T01:30+00:00"),
        # twice: the later one in the east, the earlier one in the west, as Joda has it
        ("America/New_York", "2024-11-03T01:30", "2024-11-03T05:30+00:00"),
        ("Europe/Berlin", "2024-10-27T02:30", "2024-10-27T01:30+00:00"),
        ("UTC", "2024-03-10T02:30", "2024-03-10T02:30+00:00"),
        ("+05:30", "2024-03-10T02:30", "2024-03-09T21:00+00:00"),
    ],
)
def test_local_times_to_instants(zone, local, utc):
    assert Zone.parse(zone).to_utc(ms(f"{local}+00:00")) == ms(utc)


@pytest.mark.parametrize(
    ("zone", "now", "interval", "last", "following"),
    [
        ("UTC", "2024-05-31T16:08+00:00", 600_000, "2024-05-31T16:00+00:00", "2024-05-31T16:10+00:00"),
        ("UTC", "2024-05-31T16:00+00:00", 600_000, "2024-05-31T16:00+00:00", "2024-05-31T16:10+00:00"),
        ("UTC", "2024-05-31T00:00+00:00", DAY, "2024-05-31T00:00+00:00", "2024-06-01T00:00+00:00"),
        # the last slot of a day ends with it: 7 h from midnight are 00, 07, 14, 21
        ("UTC", "2024-05-31T22:00+00:00", 7 * HOUR, "2024-05-31T21:00+00:00", "2024-06-01T00:00+00:00"),
        ("Asia/Kolkata", "2024-05-31T16:08+00:00", HOUR, "2024-05-31T15:30+00:00", "2024-05-31T16:30+00:00"),
        # a day of 23 hours in New York: slots go on from midnight, an hour each
        ("America/New_York", "2024-03-10T07:30+00:00", HOUR, "2024-03-10T07:00+00:00", "2024-03-10T08:00+00:00"),
        ("America/New_York", "2024-03-10T20:00+00:00", DAY, "2024-03-10T05:00+00:00", "2024-03-11T04:00+00:00"),
        # a day of 25 hours has a slot more
        ("America/New_York", "2024-11-03T12:00+00:00", DAY, "2024-11-03T04:00+00:00", "2024-11-04T04:00+00:00"),
        ("America/New_York", "2024-11-04T04:30+00:00", DAY, "2024-11-04T04:00+00:00", "2024-11-04T05:00+00:00"),
        # midnight does not exist: the day begins at one o'clock
        ("America/Sao_Paulo", "2018-11-04T04:00+00:00", 5 * HOUR, "2018-11-04T03:00+00:00", "2018-11-04T08:00+00:00"),
        ("Asia/Beirut", "2022-03-27T00:00+00:00", 5 * HOUR, "2022-03-26T22:00+00:00", "2022-03-27T03:00+00:00"),
        # half an hour of summer time
        ("Australia/Lord_Howe", "2024-04-07T12:00+00:00", DAY, "2024-04-06T13:00+00:00", "2024-04-07T13:00+00:00"),
    ],
)  # fmt: skip
def test_instants_of_a_schedule(zone, now, interval, last, following):
    zone = Zone.parse(zone)
    assert zone.scheduled(ms(now), interval) == ms(last)
    assert zone.next_scheduled(ms(now), interval) == ms(following)


def test_times_without_a_calendar_do_no_harm():
    zone = Zone.parse("Europe/Berlin")
    for far in (-(2**62), FIRST_MS - 1, LAST_MS + 1, 2**62):
        assert zone.offsets(np.array([far])).shape == (1,)
        assert isinstance(zone.offset(far), int)


def test_the_machine_s_own_data_do_not_count(tmp_path):
    (tmp_path / "Europe").mkdir()
    (tmp_path / "Europe" / "Oslo").write_bytes(b"no zone")
    (tmp_path / "Nowhere").write_bytes(b"no zone")
    before = zoneinfo.TZPATH
    try:
        zoneinfo.reset_tzpath(to=[str(tmp_path)])
        assert Zone.parse("Europe/Oslo").offset(ms("2024-05-31T12:00+00:00")) == 2 * HOUR
        with pytest.raises(ValueError, match="must be a time zone"):
            Zone.parse("Nowhere")
    finally:
        zoneinfo.reset_tzpath(to=before)


@pytest.mark.parametrize("wrong", [FIRST_MS - 1, FIRST_MS, LAST_MS, 10**18])
def test_one_wrong_clock_asks_for_the_tables_of_two_years_only(wrong):
    zone = Zone.parse("Europe/Vilnius")
    before = _changes.cache_info().misses
    found = zone.offsets(np.array([1_700_000_000_000, wrong, 1_720_000_000_000]))
    assert found.tolist() == [7_200_000, zone.offset(wrong), 10_800_000]
    assert _changes.cache_info().misses - before <= 3
