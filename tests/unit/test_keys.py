import pytest

from penstock.keys import Layout, ParsedKey
from penstock.model import TopicPartition

QUICKSTART = Layout(extension=".avro")


@pytest.mark.parametrize(
    ("layout", "tp", "encoded", "start", "key"),
    [
        (QUICKSTART, TopicPartition("t", 0), "partition=0", 3, "topics/t/partition=0/t+0+0000000003.avro"),
        (Layout("", extension=".json"), TopicPartition("t", 7), "partition=7", 0, "t/partition=7/t+7+0000000000.json"),
        (Layout("a/b", "/", "-", 3, ".bin"), TopicPartition("x", 1), "f=a/g=b", 12345, "a/b/x/f=a/g=b/x-1-12345.bin"),
        (Layout("d", "|", "_", 1, ".avro"), TopicPartition("p.q", 0), "year=2015", 7, "d|p.q|year=2015|p.q_0_7.avro"),
    ],
)
def test_a_key_is_rendered_as_the_connector_does_and_parsed_back(layout, tp, encoded, start, key):
    assert layout.key(tp, encoded, start) == key
    assert layout.parse(key) == ParsedKey(tp, encoded, start)


@pytest.mark.parametrize(
    "key",
    [
        "topics/s3_topic/partition=0/s3_topic+0+0000000003.json",
        "topics/other/partition=0/s3_topic+0+0000000003.avro",
        "topics/s3_topic/partition=0/s3_topic+0+3.avro",
        "topics/s3_topic/partition=0/s3_topic+0.avro",
        "topics/s3_topic/partition=0/readme.avro",
        "elsewhere/s3_topic/partition=0/s3_topic+0+0000000003.avro",
        "",
    ],
)
def test_a_foreign_key_is_not_taken_for_one_of_ours(key):
    assert QUICKSTART.parse(key) is None


def test_an_extension_inside_the_topic_name_does_not_break_the_key():
    tp = TopicPartition("logs.avro+1", 0)
    key = QUICKSTART.key(tp, "partition=0", 9)
    assert QUICKSTART.parse(key) == ParsedKey(tp, "partition=0", 9)
