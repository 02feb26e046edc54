"""Records of a block-GZIP object from an offset on: its index, then only the bytes that are asked for.

Within a member offsets are known where none is missing; a member with gaps (compacted topics, transactions) is read
from its beginning, and its records have no offset of their own.
"""

from __future__ import annotations

import io
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from penstock.errors import PenstockError
from penstock.formats.blockgzip import INDEX_EXTENSION, Index, Member
from penstock.frames import unframed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.frames import Frames
    from penstock.store.base import Store

_PIECE = 16 * 1024 * 1024
_CHUNK = 64 * 1024
_GZIP = 31


@dataclass(frozen=True, slots=True)
class Found:
    """A record of an object. `offset`: None where only its member is known."""

    offset: int | None
    key: bytes | None
    value: bytes


def readable(key: bytes | None, value: bytes, frames: Frames) -> dict[str, str | None]:
    """A record for people: bytes as text, with backslashes where they are none; the key where frames have one."""
    shown: dict[str, str | None] = {"value": value.decode("utf-8", "backslashreplace")}
    if frames.keys:
        shown["key"] = None if key is None else key.decode("utf-8", "backslashreplace")
    return shown


def read_index(store: Store, key: str) -> tuple[Member, ...]:
    """The members of the object `key`. Raises `NotFoundError` without an index, `PenstockError` for a damaged one."""
    name = key.removesuffix(".gz") + INDEX_EXTENSION
    body = store.get(name)
    try:
        members = tuple(msgspec.json.decode(body, type=Index).chunks)
    except msgspec.MsgspecError as error:
        msg = f"`{name}` is no index of block-GZIP ({error}); bring it back from a bucket version"
        raise PenstockError(msg) from error
    at = 0
    for member in members:
        if member.byte_offset != at or member.byte_length <= 0:
            msg = f"`{name}` is damaged: a member at byte {member.byte_offset}, where the one before ended at {at}"
            raise PenstockError(msg)
        at += member.byte_length
    return members


def records(
    store: Store, key: str, index: tuple[Member, ...], frames: Frames, start: int = 0, limit: int | None = None
) -> Iterator[Found]:
    """Records from the offset `start` on, `limit` of them at most, by one request for their members.

    More than 16 MiB of compressed bytes are asked for in pieces. Raises `PenstockError` where something is damaged.
    """
    members = _enough(index, start, limit)
    if not members:
        return
    source = _Range(store, key, members[0].byte_offset, members[-1].byte_offset + members[-1].byte_length)
    left = limit
    for member in members:
        count = 0
        for record_key, value in _split(_unpacked(source, key, member), frames, key):
            offset = member.first_record_offset + count if _is_whole(member) else None
            count += 1
            if offset is not None and offset < start:
                continue
            if left is not None and left <= 0:
                return
            yield Found(offset, record_key, value)
            left = None if left is None else left - 1
        if count != member.num_records:
            msg = f"`{key}` is damaged: {count} records at byte {member.byte_offset}, {member.num_records} by its index"
            raise PenstockError(msg)


def _is_whole(member: Member) -> bool:
    """Whether no offset is missing within a member."""
    return member.next_record_offset - member.first_record_offset == member.num_records


def _enough(members: tuple[Member, ...], start: int, limit: int | None) -> list[Member]:
    """The members from `start` on that hold `limit` records."""
    chosen: list[Member] = []
    count = 0
    for member in members:
        if member.next_record_offset <= start:
            continue
        if limit is not None and count >= limit:
            break
        chosen.append(member)
        before = max(start - member.first_record_offset, 0) if _is_whole(member) else 0
        count += member.num_records - before
    return chosen


@dataclass(slots=True)
class _Range:
    """Bytes `[at, end)` of an object, fetched in as few pieces as may be."""

    store: Store
    key: str
    at: int
    end: int
    _held: io.BytesIO = field(default_factory=io.BytesIO)

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; none at the end."""
        data = self._held.read(size)
        if not data and self.at < self.end:
            stop = min(self.at + _PIECE, self.end)
            self._held, self.at = io.BytesIO(self.store.get(self.key, self.at, stop)), stop
            data = self._held.read(size)
        return data


def _unpacked(source: _Range, key: str, member: Member) -> Iterator[bytes]:
    """What a member holds, in pieces."""
    unpack, left = zlib.decompressobj(_GZIP), member.byte_length
    try:
        while left and (data := source.read(min(left, _CHUNK))):
            left -= len(data)
            yield unpack.decompress(data)
    except zlib.error as error:
        msg = f"`{key}` is damaged: no gzip member of {member.byte_length} bytes at byte {member.byte_offset} ({error})"
        raise PenstockError(msg) from error
    if left or not unpack.eof:
        msg = f"`{key}` is damaged: the gzip member at byte {member.byte_offset} does not end where its index says"
        raise PenstockError(msg)


def _split(pieces: Iterator[bytes], frames: Frames, key: str) -> Iterator[tuple[bytes | None, bytes]]:
    """The records of one member: (key or None, value)."""
    try:
        yield from unframed(pieces, frames)
    except ValueError as error:
        msg = f"`{key}` is damaged, or was written with other delimiters: a member ends within a record"
        raise PenstockError(msg) from error
