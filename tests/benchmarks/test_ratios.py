"""What is done to every record stays as many times faster than plain Python as it is: a gate that noise does not shut.

Subject and yardstick run in turns on one thread and are timed by that thread's CPU time; the best call of each counts,
and only a ratio that no round reaches fails. Gates are a bit under half of what was measured, so a subject that has
become two and a half times slower fails. Change a gate together with what it guards.
"""

import pytest
from benchmarks.micro import Subject, seconds_per_record, subjects, yardstick

GATES = {
    "walk": 13,
    "walk, lz4": 6.5,
    "cutter, flush.size": 75,
    "cutter, hourly": 75,
    "field of Avro": 6,
    "JSON validated": 4.3,
    "Avro checked": 7,
    "encode avro": 55,
    "encode avro, snappy": 3,
    "encode avro, every other row": 55,
    "encode parquet": 1.1,
    "encode block-gzip": 0.15,  # nearly all of it is zlib's
    "encode json": 1000,
}
ROUNDS = 40


@pytest.fixture(scope="module")
def stick():
    return yardstick()


@pytest.fixture(scope="module")
def work():
    return subjects()


def best_ratio(subject, stick, gate):
    """How many times faster the subject is than the yardstick, by the best call of each; ends once it is enough."""
    subject.work()  # what is compiled is loaded
    ours = plain = float("inf")
    for _ in range(ROUNDS):
        plain = min(plain, seconds_per_record(stick))
        ours = min(ours, seconds_per_record(subject))
        if plain / ours >= gate:
            break
    return plain / ours


@pytest.mark.parametrize("name", GATES)
def test_no_step_of_a_record_s_way_has_become_much_slower(name, work, stick):
    ratio = best_ratio(work[name], stick, GATES[name])
    assert ratio >= GATES[name], f"{name}: {ratio:.1f} times the yardstick, wanted {GATES[name]}"


def test_every_subject_has_a_gate(work):
    assert GATES.keys() == work.keys()


@pytest.mark.parametrize("gate", [3.0, 100.0])
def test_the_gate_tells_half_as_fast_from_twice_as_fast(gate, stick):
    slow = Subject(stick.work, round(stick.records * gate / 2))
    fast = Subject(stick.work, round(stick.records * gate * 2))
    assert best_ratio(slow, stick, gate) < gate
    assert best_ratio(fast, stick, gate) >= gate
