import pytest

from penstock.errors import ForeignObjectError, TakenOverError
from penstock.store.base import Head, Replace
from penstock.store.ownership import CONNECTOR, FIRST_OFFSET, RECORDS, SEQ, Owner, judge

OWNER = Owner("x", 5)
MINE = {**OWNER.metadata(3), RECORDS: "7"}


def found(**change):
    """An object with our own metadata but for what `change` says; None takes a name away."""
    names = {"connector": CONNECTOR, "seq": SEQ, "offset": FIRST_OFFSET, "records": RECORDS}
    metadata = {**MINE, **{names[name]: value for name, value in change.items()}}
    return Head(9, '"e"', {name: value for name, value in metadata.items() if value is not None})


@pytest.mark.parametrize("standing", [found(), found(records=None), found(offset=None)])
def test_the_same_plans_object_is_ours(standing):
    assert judge("k", standing, OWNER, MINE) == "ours"


@pytest.mark.parametrize("standing", [found(seq="4"), found(seq="4", records="9"), found(seq="0", offset=None)])
def test_an_older_plans_object_is_a_left_over(standing):
    assert judge("k", standing, OWNER, MINE) == Replace('"e"')


@pytest.mark.parametrize("existing", ["fail", "overwrite"])
@pytest.mark.parametrize("standing", [found(seq="6"), found(seq="10", records="9")])
def test_a_newer_plans_object_stops_us_even_if_foreign_ones_are_overwritten(standing, existing):
    with pytest.raises(TakenOverError, match="`k`"):
        judge("k", standing, Owner("x", 5, existing), MINE)


@pytest.mark.parametrize(
    ("standing", "words"),
    [
        (Head(9, '"e"', {}), "not written by Penstock"),
        (found(connector="y"), "written by connector `y`"),
        (found(connector=None), "not written by Penstock"),
        (found(seq=None), "connector `x`"),
        (found(seq="five"), "connector `x`"),
        (found(seq="\u0665"), "connector `x`"),
        (found(seq="-1"), "connector `x`"),
        (found(records="8"), "state log that was deleted"),
        (found(offset="2"), "state log that was deleted"),
    ],
)
def test_anything_else_is_foreign(standing, words):
    with pytest.raises(ForeignObjectError, match=f"`k`, .*{words}.*s3.existing.objects"):
        judge("k", standing, OWNER, MINE)
    assert judge("k", standing, Owner("x", 5, "overwrite"), MINE) == Replace('"e"')
