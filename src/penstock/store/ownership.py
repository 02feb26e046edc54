"""Whose a data object is, as its user metadata says, and what that means where it stands in our way: pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from penstock.errors import ForeignObjectError, TakenOverError
from penstock.store.base import Replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.store.base import Head

CONNECTOR, SEQ, FIRST_OFFSET, RECORDS, CRC32C = (
    "penstock-connector",
    "penstock-intent",
    "penstock-first-offset",
    "penstock-records",
    "penstock-crc32c",
)
COMPLETE_UNTIL = "penstock-complete-until"
"""On a `_SUCCESS` marker: the end of its time partition, in milliseconds since 1970 UTC."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose objects these are: the connector and the log entry that recorded the plan.

    `existing`: `s3.existing.objects`, what to do with an object of somebody else under our key.
    """

    connector: str
    seq: int
    existing: Literal["fail", "overwrite"] = "fail"

    def metadata(self, first_offset: int) -> dict[str, str]:
        """What every data object says of itself."""
        return {CONNECTOR: self.connector, SEQ: str(self.seq), FIRST_OFFSET: str(first_offset)}


def judge(key: str, found: Head, owner: Owner, mine: Mapping[str, str]) -> Replace | Literal["ours"]:
    """What to do about the object `found` where one with the metadata `mine` is to be created (design section 3).

    `ours`: this plan's object, by a retried task, by our own first attempt, or by a zombie; it is never changed, even
    if another build compressed it to other bytes. `Replace`: a left-over of an older plan, named by no commit.

    Raises:
        TakenOverError: a newer plan of this connector wrote it.
        ForeignObjectError: somebody else did, and `s3.existing.objects` is `fail`.
    """
    theirs, seq = found.metadata.get(CONNECTOR), found.metadata.get(SEQ, "")
    if theirs != owner.connector or not (seq.isascii() and seq.isdecimal()):
        whose = f"written by connector `{theirs}`" if theirs else "not written by Penstock"
        return _foreign(key, whose, found, owner)
    if int(seq) > owner.seq:
        msg = f"connector `{owner.connector}`: a newer instance already wrote `{key}`; this one stops"
        raise TakenOverError(msg)
    if int(seq) < owner.seq:
        return Replace(found.etag)
    for name in (FIRST_OFFSET, RECORDS):
        if name in mine and found.metadata.get(name, mine[name]) != mine[name]:
            what = f"of a state log that was deleted ({name} `{found.metadata[name]}`, here `{mine[name]}`)"
            return _foreign(key, what, found, owner)
    return "ours"


def _foreign(key: str, whose: str, found: Head, owner: Owner) -> Replace:
    if owner.existing == "overwrite":
        return Replace(found.etag)
    msg = (
        f"there is already an object `{key}`, {whose}; move it away, choose another topics.dir, "
        "or set s3.existing.objects to `overwrite`"
    )
    raise ForeignObjectError(msg)
