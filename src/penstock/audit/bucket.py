"""The objects that count against a listing of the bucket, and what else lies there. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.audit.findings import Finding
from penstock.store.base import Listed
from penstock.store.ownership import COMPLETE_UNTIL, CONNECTOR, SEQ

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.audit.history import History
    from penstock.keys import Layout
    from penstock.model import CommittedObject
    from penstock.store.base import Head

_COMPANION = re.compile(r"\.(?:keys|headers)(?:\.[a-z]+)+$")


def differences(objects: Mapping[str, CommittedObject], stored: Mapping[str, Listed | None]) -> Iterator[Finding]:
    """Objects that count and are not there, or not as they were committed.

    An ETag of its own is no finding: a copied or re-encrypted object has another one and the same contents.
    """
    for key, each in sorted(objects.items()):
        found = stored.get(key)
        if found is None:
            what = f"was committed with offsets [{each.start}, {each.end}) and is not there"
            yield Finding("object.missing", key, what)
        elif found.size != each.size:
            yield Finding("object.size", key, f"has {found.size} bytes; {each.size} were committed")


def changed_etags(objects: Mapping[str, CommittedObject], stored: Mapping[str, Listed | None]) -> Iterator[Finding]:
    """Where contents are not read: objects of the right size that are not the ones that were written."""
    for key, each in sorted(objects.items()):
        found = stored.get(key)
        if found is not None and found.size == each.size and _bare(found.etag) != _bare(each.etag):
            what = f"has ETag {_bare(found.etag)}; {_bare(each.etag)} was committed; verify its contents as well"
            yield Finding("object.etag", key, what)


def _bare(etag: str) -> str:
    """Some servers put quotes around it, some only in some answers."""
    return etag.strip('"')


def listed(key: str, head: Head) -> Listed:
    """What a look at one object says, as a listing would."""
    return Listed(key, head.size, head.etag)


@dataclass(frozen=True, slots=True)
class Stranger:
    """An object that no entry names. `head`: what the store says of it; None if it is gone by now."""

    key: str
    head: Head | None


def is_earlier(key: str, layouts: tuple[Layout, ...], history: History) -> bool:
    """Whether an object holds offsets before the first position of its topic-partition, as Kafka Connect's do."""
    for layout in layouts:
        parsed = layout.parse(_COMPANION.sub(layout.extension, key))
        if parsed is not None and parsed.tp in history.begun:
            return parsed.start < history.begun[parsed.tp]
    return False


def judge(stranger: Stranger, connector: str, history: History, running: frozenset[int]) -> Finding | None:
    """What an object is that no entry names; None for one that is about to be committed, or gone.

    `running`: plans whose objects may still be committed. `object.orphaned`: ours, and whoever lists the bucket reads
    its records twice or too early. `object.foreign`: somebody else's.
    """
    head, key = stranger.head, stranger.key
    if head is None:
        return None
    if key in history.taken_back:
        what = f"was taken back by the reset in entry {history.taken_back[key]}; delete it"
        return Finding("object.orphaned", key, what)
    whose = head.metadata.get(CONNECTOR)
    if whose != connector:
        what = f"was written by connector `{whose}`" if whose else "was not written by Penstock"
        return Finding("object.foreign", key, f"{what}, under a topic of this connector; move it away")
    if COMPLETE_UNTIL in head.metadata:
        return _marker(key, int(head.metadata[COMPLETE_UNTIL]), history)
    seq = head.metadata.get(SEQ, "")
    if seq in {str(each) for each in running}:
        return None
    what = f"is ours, of plan {seq}, and no entry names it: a left-over, or a copy; delete it"
    return Finding("object.orphaned", key, what)


def _marker(key: str, until_ms: int, history: History) -> Finding | None:
    """A marker may be there before the log says so, while a connector runs; not once a reset said otherwise."""
    topics = [topic for topic in {tp.topic for tp in history.head.resets} if f"/{topic}/" in f"/{key}"]
    if not topics or until_ms <= history.head.complete.get(topics[0], until_ms - 1):
        return None
    what = "says that a time partition is complete whose records a reset writes anew; delete it until they are"
    return Finding("object.orphaned", key, what)
