"""What records say never gets an object out of its topic's place, whatever it is."""

import posixpath
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.columns import Part
from penstock.keys import Layout, escaped
from penstock.model import Records, Slices, TopicPartition
from penstock.partitioners import PartitionerOptions, build

TP = TopicPartition("t", 0)
HOSTILE = ("..", ".", "/", "//", "../", "\x00", "\n", "\x7f", "\x85", "\ufffe", "\\", "%2E", "..%2F", "~", "é", "a", "")
VALUES = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=4), max_size=6).map("".join)
TEMPLATE = "raw/{{field:f}}/{{topic}}/{{partition}}+{{start_offset}}"


def batch(value, schema_name):
    raw = np.frombuffer(value.encode("utf-8", "surrogatepass"), np.uint8)
    values = Slices(raw, np.array([0, len(raw)]))
    records = Records(TP, np.array([7]), np.array([0]), values, 8)
    part = Part("string", np.array([0]), texts=values)
    return SimpleNamespace(records=records, field=lambda _: (part,), schema_names=lambda: (None, (schema_name,)))


@pytest.mark.parametrize("affix", ["NONE", "PREFIX", "SUFFIX"])
@given(value=VALUES, schema_name=VALUES)
def test_field_values_and_schema_names_stay_below_the_topic(affix, value, schema_name):
    partitioner = build("field", PartitionerOptions(fields=("f",), schema_affix=affix))
    (label,) = partitioner.encode(batch(value, schema_name)).names
    key = Layout().key(TP, label, 7)
    check(key, "topics/t/")
    assert Layout().parse(key).start == 7


@given(value=VALUES)
def test_field_values_in_a_template_stay_in_their_segment(value):
    partitioner = build("default", PartitionerOptions(template=TEMPLATE, one_topic=False))
    (label,) = partitioner.encode(batch(value, None)).names
    key = Layout(template=TEMPLATE).key(TP, label, 7)
    check(key, "raw/")
    assert key.endswith("/t/0+7.bin")
    assert key.count("/") == TEMPLATE.count("/")


@given(label=VALUES)
def test_labels_of_a_partitioner_of_ones_own_stay_below_the_topic(label):
    check(Layout().key(TP, label, 7), "topics/t/")


def check(key, prefix):
    assert key.startswith(prefix)
    assert posixpath.normpath(key).startswith(prefix)
    assert not {".", ".."} & set(key.split("/"))
    assert escaped(key) == key
    assert key.isprintable() or not any(ord(letter) < 0xA0 and not letter.isprintable() for letter in key)
    assert len(key.encode()) < 1024
