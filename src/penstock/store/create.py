"""One data object is created although retries, crashes, zombies and strangers may have been at its key before."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import google_crc32c

from penstock.errors import StoreUnavailable
from penstock.store.base import ConflictError, Create, NotFoundError, OutcomeUnknownError, RefusedError
from penstock.store.ownership import CRC32C, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.store.base import Head, Part, Precondition, Store
    from penstock.store.ownership import Owner

_LOOKS = 10
_UNHEARD = 2  # each comes after all retries
_BLOCK = 8 * 1024 * 1024
_HEX = re.compile(r"(?:[0-9a-f]{2})+")


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A data object that is there. `crc32c`: of its bytes, 8 hex digits."""

    size: int
    etag: str
    crc32c: str


@dataclass(frozen=True, slots=True)
class Content:
    """What is to stand under `key`. `parts`: those it was sent in, none where it is one PUT."""

    key: str
    size: int
    crc32c: str
    metadata: Mapping[str, str]
    parts: Sequence[Part] = ()


def first_condition(store: Store, key: str, owner: Owner, mine: Mapping[str, str]) -> Precondition:
    """The condition under which a long upload to `key` will end, asked before its first byte is sent.

    So a foreign object is named before gigabytes are sent. Raises as `judge`.
    """
    found = store.head(key)
    verdict = "ours" if found is None else judge(key, found, owner, mine)
    return verdict if verdict != "ours" else Create()


def create(
    store: Store, content: Content, owner: Owner, write: Callable[[Precondition], str], condition: Precondition
) -> StoredObject:
    """The object, written by `write` under a condition, or found to be this plan's already.

    Where a write is refused or its outcome unknown, what stands there decides.

    Raises:
        TakenOverError: as `judge`.
        ForeignObjectError: as `judge`.
        StoreUnavailable: it could not be written now.
    """
    unheard = 0
    for _ in range(_LOOKS):
        try:
            return StoredObject(content.size, write(condition), content.crc32c)
        except (RefusedError, ConflictError, OutcomeUnknownError) as error:
            problem = error
        looked = _look(store, content, owner)
        if isinstance(looked, StoredObject):
            return looked
        unheard += isinstance(problem, OutcomeUnknownError)
        if unheard >= _UNHEARD or (content.parts and isinstance(problem, ConflictError)):
            break  # an outage, or S3 wants the upload to start anew: the next execution of the plan comes later
        condition = looked
    msg = f"the object `{content.key}` could not be written: {problem}"
    raise StoreUnavailable(msg)


def _look(store: Store, content: Content, owner: Owner) -> StoredObject | Precondition:
    """This plan's object if it stands there, else the condition for the next try."""
    found = store.head(content.key)
    if found is None:
        return Create()
    verdict = judge(content.key, found, owner, content.metadata)
    return verdict if verdict != "ours" else _as_it_stands(store, content, found) or Create()


def _as_it_stands(store: Store, content: Content, found: Head) -> StoredObject | None:
    """This plan's object, whose bytes may be another build's; None if it is gone again."""
    crc = found.metadata.get(CRC32C)
    if crc is None and found.size == content.size and found.etag == _etag_of(content.parts):
        crc = content.crc32c
    if crc is None:
        crc = _crc_of(store, content.key, found.size)
    return None if crc is None else StoredObject(found.size, found.etag, crc)


def _etag_of(parts: Sequence[Part]) -> str | None:
    """The ETag that S3 gives to an object of these parts; None where the server makes them otherwise."""
    digests = [part.etag.strip('"') for part in parts]
    if not all(_HEX.fullmatch(digest) for digest in digests):
        return None
    whole = hashlib.md5(bytes.fromhex("".join(digests)), usedforsecurity=False).hexdigest()
    return f'"{whole}-{len(parts)}"'


def _crc_of(store: Store, key: str, size: int) -> str | None:
    """The checksum of an object whose metadata has none, by reading it; None if it is gone."""
    crc = 0
    try:
        for start in range(0, size, _BLOCK):
            crc = google_crc32c.extend(crc, store.get(key, start, min(start + _BLOCK, size)))
    except NotFoundError:
        return None
    return f"{crc:08x}"
