import pytest

from penstock.completeness import TimePath, Verdict, complete_until
from penstock.errors import ConfigError
from penstock.model import TopicPartition
from penstock.partitioners.joda import Names, PathFormat
from penstock.partitioners.time import TimePartitioner
from penstock.partitioners.zones import Zone

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
HOUR, DAY = 3_600_000, 86_400_000
JUNE = 1_717_200_000_000  # 2024-06-01T00:00:00Z


def path(pattern, duration=HOUR, zone="UTC", locale="en"):
    return TimePath.of(
        TimePartitioner(duration, PathFormat.parse(pattern, Names.of(locale)), Zone.parse(zone)), delim="/"
    )


HOURLY = "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH"


@pytest.mark.parametrize(
    ("reader", "label", "start", "end"),
    [
        (path(HOURLY), "year=2024/month=06/day=01/hour=00", JUNE, JUNE + HOUR),
        (path(HOURLY), "city=x/year=2024/month=06/day=01/hour=00/schema_name=r", JUNE, JUNE + HOUR),
        (path(HOURLY, DAY), "year=2024/month=06/day=01/hour=00", JUNE, JUNE + DAY),
        (path("yyyy-MM-dd", 600_000), "2024-06-01", JUNE, JUNE + DAY),
        # spans of 90 minutes: the one that begins at 01:30 is the last whose path says 01
        (path("yyyy/MM/dd/HH", 5_400_000), "2024/06/01/01", JUNE + HOUR, JUNE + 3 * HOUR),
        (path("yyyy/MM"), "2024/12", JUNE + 183 * DAY, JUNE + 214 * DAY),
        (path("yyyy"), "2024", JUNE - 152 * DAY, JUNE + 214 * DAY),
        (path("dd. MMMM yyyy", DAY, locale="de"), "01. Juni 2024", JUNE, JUNE + DAY),
        (path("yyyy-MM-dd", DAY, "+02:00"), "2024-06-01", JUNE - 2 * HOUR, JUNE + 22 * HOUR),
        # clocks go back on 2024-10-27: the hour from 02:00 on occurs twice and has ended when the second has
        (path("yyyy-MM-dd/HH", HOUR, "Europe/Berlin"), "2024-10-27/02", JUNE + 148 * DAY, JUNE + 148 * DAY + 2 * HOUR),
    ],
)
def test_a_time_partition_says_between_which_times_it_is(reader, label, start, end):
    period = reader.period(label)
    assert (period.start, period.end) == (start, end)


@pytest.mark.parametrize("label", ["tombstone", "year=2024/month=13/day=01/hour=00", "partition=0"])
def test_what_has_no_time_has_no_period(label):
    assert path(HOURLY).period(label) is None


@pytest.mark.parametrize("pattern", ["MM/dd", "yyyy/dd", "yy/MM", "yyyy/MM/dd/hh", "'all'"])
def test_a_path_that_does_not_say_the_time_is_refused(pattern):
    with pytest.raises(ConfigError, match=r"path\.format: the time of a partition cannot be read"):
        path(pattern)


def never(_tp, _time):
    return False


def test_the_slowest_topic_partition_decides():
    newest = {A: 50, B: 25}
    assert complete_until([B, A], [10, 20, 30, 40], newest, never, 0) == Verdict(20, (B,))
    assert complete_until([B, A], [10, 20, 30, 40], newest, never, 6) == Verdict(10, (B,))
    assert complete_until([A], [10, 20, 30, 40], newest, never, 0) == Verdict(40)
    assert complete_until([A, B], [10], {A: 50}, never, 0) == Verdict(None, (B,))


def test_an_idle_topic_partition_is_asked_about_and_holds_nothing_up():
    asked = []

    def idle(tp, time):
        asked.append((tp, time))
        return time <= 20

    assert complete_until([A, B], [10, 20, 30], {A: 50}, idle, 0) == Verdict(20, (B,))
    assert asked == [(B, 10), (B, 20), (B, 30)]
