from __future__ import annotations

import pytest

from penstock.dev.registry_store import LEVELS, RegistryError, RegistryStore, Schema

ONE = Schema('{"type":"record","name":"r","fields":[{"name":"a","type":"int"}]}')
# Readable by what knows ONE, and back: the new field has a default.
TWO = Schema('{"type":"record","name":"r","fields":[{"name":"a","type":"int"},{"name":"b","type":"int","default":0}]}')
# Cannot be read with TWO's schema and the other way round only field by field: `a` is gone.
THREE = Schema('{"type":"record","name":"r","fields":[{"name":"b","type":"int","default":0}]}')
WORSE = Schema('{"type":"record","name":"r","fields":[{"name":"a","type":"string"}]}')


@pytest.fixture
def path(tmp_path):
    return tmp_path / "schemas.jsonl"


@pytest.fixture
def store(path):
    opened = RegistryStore(path)
    yield opened
    opened.close()


def reopened(store, path):
    store.close()
    return RegistryStore(path)


def test_everything_survives_a_restart(store, path):
    store.register("s", ONE)
    store.register("s", TWO)
    store.register("t", TWO)
    store.set_level("t", "FULL")
    store.set_level(None, "NONE")
    store.delete("s", "1", permanent=False)
    again = reopened(store, path)
    assert again.subjects() == ["s", "t"]
    assert again.numbers("s") == [2]
    assert again.numbers("s", deleted=True) == [1, 2]
    assert (again.level("t", or_global=False), again.level(None, or_global=True)) == ("FULL", "NONE")
    assert again.find("t", TWO).schema_id == again.find("s", TWO).schema_id == 2
    assert again.schema(1) == ONE
    again.close()


def test_a_line_that_a_crash_cut_off_is_forgotten_and_the_next_one_is_whole(store, path):
    store.register("s", ONE)
    store.close()
    with path.open("a") as file:
        file.write('{"op": "regis')
    again = RegistryStore(path)
    assert again.register("s", TWO).schema_id == 2
    last = reopened(again, path)
    assert last.numbers("s") == [1, 2]
    last.close()


def test_the_same_schema_has_one_id_in_all_subjects_and_one_version_in_each(store):
    spaced = Schema(ONE.text.replace(":", " : "))
    first, second = store.register("s", ONE), store.register("t", spaced)
    assert first.schema_id == second.schema_id == store.register("s", spaced).schema_id
    assert store.numbers("s") == [1]
    assert store.uses(first.schema_id) == [("s", 1), ("t", 1)]


def test_a_version_number_is_never_given_twice(store):
    store.register("s", ONE)
    store.register("s", TWO)
    store.delete("s", "2", permanent=False)
    store.delete("s", "2", permanent=True)
    assert store.register("s", TWO).number == 3


def test_a_permanent_deletion_needs_a_deletion_before(store):
    store.register("s", ONE)
    with pytest.raises(RegistryError) as refused:
        store.delete("s", None, permanent=True)
    assert refused.value.code == 40405
    assert store.delete("s", None, permanent=False) == [1]
    assert store.subjects() == []
    assert store.delete("s", None, permanent=True) == [1]
    assert store.subjects(deleted=True) == []


@pytest.mark.parametrize(
    ("level", "accepted"),
    [
        ("NONE", [TWO, THREE, WORSE]),
        ("BACKWARD", [TWO, THREE]),  # THREE against ONE: it drops `a`, and `b` has a default
        ("BACKWARD_TRANSITIVE", [TWO, THREE]),
        ("FORWARD", [TWO]),  # ONE's readers need `a`
        ("FORWARD_TRANSITIVE", [TWO]),
        ("FULL", [TWO]),
        ("FULL_TRANSITIVE", [TWO]),
    ],
)
def test_each_level_answers_by_the_newest_version(store, level, accepted):
    store.register("s", ONE)
    store.set_level("s", level)
    earlier = [store.version("s", "latest")]
    assert [each for each in (TWO, THREE, WORSE) if not store.problems("s", each, earlier)] == accepted


@pytest.mark.parametrize("level", [level for level in LEVELS if level != "NONE"])
def test_only_transitive_levels_look_at_older_versions(store, level):
    # The first version is what WORSE cannot follow in either direction; the second allows everything.
    store.set_level("s", "NONE")
    store.register("s", WORSE)
    store.register("s", ONE)
    store.set_level("s", level)
    if level.endswith("_TRANSITIVE"):
        with pytest.raises(RegistryError, match="version 1:") as refused:
            store.register("s", TWO)
        assert (refused.value.status, refused.value.code) == (409, 409)
        assert store.numbers("s") == [1, 2]
    else:
        assert store.register("s", TWO).number == 3


def test_other_kinds_are_kept_but_their_compatibility_is_not_claimed(store):
    one = Schema('{"type":"object"}', "JSON")
    two = Schema('{"type":"string"}', "JSON")
    assert store.register("j", one).schema.kind == "JSON"
    assert store.register("j", one).number == 1
    with pytest.raises(RegistryError, match="Avro only") as refused:
        store.register("j", two)
    assert refused.value.status == 501
    store.set_level("j", "NONE")
    assert store.register("j", two).number == 2


def test_a_schema_may_use_types_of_another_subject(store):
    inner = store.register("inner", Schema('{"type":"record","name":"n.I","fields":[{"name":"x","type":"int"}]}'))
    reference = {"name": "n.I", "subject": "inner", "version": inner.number}
    outer = '{"type":"record","name":"n.O","fields":[{"name":"i","type":"I"}]}'
    assert store.register("outer", Schema(outer, references=(reference,))).schema.references == (reference,)
    with pytest.raises(RegistryError, match="Invalid schema") as refused:
        store.register("outer2", Schema(outer))
    assert (refused.value.status, refused.value.code) == (422, 42201)
