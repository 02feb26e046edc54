"""A format of the user's own, named in the connector's file."""

from __future__ import annotations

import pytest

from connecting import Rec
from penstock.errors import ConfigError
from penstock.loading import load
from penstock.pipeline import check

pytestmark = pytest.mark.stack

OWN = {"format.class": "own_formats:Framed", "value.converter.schemas.enable": None, "flush.size": "2"}


def test_it_writes_the_objects(connect, s3, bucket):
    properties = {**OWN, "value.converter": "string", "format.option.width": "2"}
    outcome = connect([Rec(b"one"), Rec(b"three")], properties)
    assert [*outcome.objects] == ["partition=0/0+0000000000.framed"]
    (listed,) = s3.list_objects_v2(Bucket=bucket, Prefix="topics/")["Contents"]
    assert s3.get_object(Bucket=bucket, Key=listed["Key"])["Body"].read() == b"\x00\x03one\x00\x05three"


@pytest.fixture
def checked(describe):
    """What `penstock validate` and a start do with a configuration."""

    def check_it(properties):
        worker = {"bootstrap.servers": "127.0.0.1:9"}
        check(load(describe("t", {**OWN, "format.option.width": "2", **properties}), worker, None)[0])

    return check_it


def test_a_converter_that_it_does_not_take_is_told_at_start(checked):
    with pytest.raises(ConfigError, match="`own_formats:Framed`; this format takes the converters"):
        checked({"value.converter": "json", "value.converter.schemas.enable": "false"})


def test_one_that_is_not_there_is_told_at_start(checked):
    with pytest.raises(ConfigError, match="`nowhere:Framed` cannot be imported"):
        checked({"format.class": "nowhere:Framed", "value.converter": "string"})
