"""Data objects: written once, whole, while the caller goes on encoding.

One PUT up to `s3.part.size`; beyond it a multipart upload whose parts are sent while later ones are filled. What waits
to fill a part grows with its content, within the task's budget of memory.
"""

from __future__ import annotations

import functools
import logging
import os
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Condition
from typing import TYPE_CHECKING, TypeVar

import google_crc32c
import numpy as np

from penstock.crashpoints import reach
from penstock.errors import StoreUnavailable
from penstock.spool import Budget
from penstock.store.base import Create
from penstock.store.create import Content, StoredObject, create, first_condition
from penstock.store.ownership import CONNECTOR, CRC32C, FIRST_OFFSET, RECORDS, SEQ, Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.spool import Held, Spool
    from penstock.store.base import Part, Precondition, Store, Upload
    from penstock.store.tags import Tagging

__all__ = [
    "CONNECTOR",
    "CRC32C",
    "FIRST_OFFSET",
    "RECORDS",
    "SEQ",
    "ObjectWriter",
    "Owner",
    "StoredObject",
    "Uploads",
    "abort_leftovers",
]

T = TypeVar("T")
_THREADS = 8
_TWO = 2
_MOST_UPLOADS = 2 * _THREADS
_MEMORY = 192 * 1024 * 1024
_MOST_PARTS = 10_000  # S3's own limit
_log = logging.getLogger("penstock.store")


@functools.lru_cache(maxsize=1)
def _pool(_process: int) -> ThreadPoolExecutor:
    """The upload threads of this process, for all its tasks."""
    return ThreadPoolExecutor(_THREADS, "upload")


@dataclass(slots=True)
class Uploads:
    """The uploads of one task: threads that send, and a bound on what waits to be sent.

    `memory`: bytes for what is sent and what is collected. A quarter may be under way; more only to make it two.
    """

    store: Store
    owner: Owner
    part_size: int
    tagging: Tagging | None = None
    pool: ThreadPoolExecutor = field(default_factory=lambda: _pool(os.getpid()))
    memory: int = _MEMORY
    budget: Budget = field(default_factory=Budget)
    _room: Condition = field(default_factory=Condition)
    _waiting: int = 0
    _sending: int = 0
    _bytes: int = 0

    def open(self, key: str, first_offset: int) -> ObjectWriter:
        """A writer for the object under `key`."""
        return ObjectWriter(self, key, self.owner.metadata(first_offset), self.budget.spool(), first_offset)

    def submit(self, work: Callable[[], T], held: Held | None = None) -> Future[T]:
        """Do it on a thread; waits while too much is under way. `held`: what it sends, given back when it is done.

        What has no room beside anything else goes alone. Work is begun in the order of its submission, so it may wait
        for what was submitted before it, and must submit nothing itself.
        """
        size = 0 if held is None else len(held)
        with self._room:
            self._room.wait_for(lambda: self._has_room(size))
            self._waiting += 1
            self._sending += bool(size)
            self._bytes += size
        future = self.pool.submit(work)
        future.add_done_callback(lambda _: self._release(size, held))
        return future

    def _has_room(self, size: int) -> bool:
        bound = self.memory if self._sending < _TWO else self.memory // 4
        fits = self._sending == 0 or size == 0 or self._bytes + size <= bound
        return fits and self._waiting < _MOST_UPLOADS

    def _release(self, size: int, held: Held | None) -> None:
        if held is not None:
            held.release()
        with self._room:
            self._waiting -= 1
            self._sending -= bool(size)
            self._bytes -= size
            self._room.notify_all()


@dataclass(slots=True)
class ObjectWriter:
    """Collects one object's bytes and sends them. For one thread; ends with one of `close` and `abandon`."""

    uploads: Uploads
    key: str
    metadata: dict[str, str]
    pending: Spool
    start: int = 0
    _size: int = 0
    _crc: int = 0
    _begun: Future[tuple[Upload, Precondition]] | None = None
    _parts: list[Future[Part]] = field(default_factory=list)

    def write(self, buffer: bytes | memoryview) -> None:
        """Append bytes; they are copied."""
        rest = memoryview(buffer)
        while rest:
            if len(self.pending) == self.uploads.part_size:
                self._send_part()
            room = self.uploads.part_size - len(self.pending)
            self.pending.write(rest[:room])
            rest = rest[room:]

    def close(self, metadata: Mapping[str, str], end: int | None = None) -> Future[StoredObject]:
        """Send the rest. The future has the object, or raises what stopped it (`penstock.store.create`).

        `metadata`: what is known only now; it is kept where the object is one PUT. `end`: the offset behind its last
        record, for its tags.
        """
        tags = self._tags(metadata, end)
        if self._begun is not None:
            self._send_part()
            return self.uploads.submit(lambda: self._tagged(self._complete(), tags))
        body = self._take()
        content = self._content({**self.metadata, **_named(metadata), CRC32C: f"{self._crc:08x}"})
        return self.uploads.submit(lambda: self._tagged(self._put(body, content), tags), body)

    def _tags(self, metadata: Mapping[str, str], end: int | None) -> dict[str, str]:
        tagging = self.uploads.tagging
        return {} if tagging is None or end is None else tagging.of(self.start, end, metadata.get("records", ""))

    def _tagged(self, stored: StoredObject, tags: dict[str, str]) -> StoredObject:
        """The object with its tags: also one that an earlier try left, which may have crashed before it got them."""
        if self.uploads.tagging is not None and tags:
            self.uploads.tagging.put(self.uploads.store, self.key, tags)
        return stored

    def abandon(self) -> None:
        """The object is not wanted: nothing of it stays."""
        self.pending.clear()
        self._abort()

    def _take(self) -> Held:
        """What waits to be sent, counted and checksummed."""
        body = self.pending.take()
        self._size += len(body)
        for piece in body.pieces:
            self._crc = google_crc32c.extend(self._crc, np.frombuffer(piece, np.uint8))
        return body

    def _content(self, metadata: Mapping[str, str], parts: tuple[Part, ...] = ()) -> Content:
        return Content(self.key, self._size, f"{self._crc:08x}", metadata, parts)

    def _send_part(self) -> None:
        if self._begun is None:
            self._begun = self.uploads.submit(self._begin)
        begun, number = self._begun, len(self._parts) + 1
        if number > _MOST_PARTS:
            msg = f"the object `{self.key}` needs more than {_MOST_PARTS} parts; raise s3.part.size"
            raise StoreUnavailable(msg, transient=False)
        body = self._take()

        def send() -> Part:
            part = self.uploads.store.part(begun.result()[0], number, body)
            reach("part.after")
            return part

        self._parts.append(self.uploads.submit(send, body))

    def _begin(self) -> tuple[Upload, Precondition]:
        condition = first_condition(self.uploads.store, self.key, self.uploads.owner, self.metadata)
        return self.uploads.store.begin(self.key, self.metadata), condition

    def _put(self, body: Held, content: Content) -> StoredObject:
        reach("object.before")
        store = self.uploads.store

        def put(condition: Precondition) -> str:
            return store.put(self.key, body, condition, content.metadata)

        stored = create(store, content, self.uploads.owner, put, Create())
        reach("object.after")
        return stored

    def _complete(self) -> StoredObject:
        """Make the parts an object. An upload that does not become it is aborted, whatever the reason."""
        is_ended = False
        try:
            parts = tuple(part.result() for part in self._parts)
            upload, condition = self._upload()
            reach("complete.before")

            def complete(condition: Precondition) -> str:
                nonlocal is_ended
                etag = self.uploads.store.complete(upload, parts, condition)
                is_ended = True
                return etag

            content = self._content(self.metadata, parts)
            stored = create(self.uploads.store, content, self.uploads.owner, complete, condition)
        finally:
            if not is_ended:
                self._abort()
        reach("object.after")
        return stored

    def _upload(self) -> tuple[Upload, Precondition]:
        assert self._begun is not None  # noqa: S101 - there are parts
        return self._begun.result()

    def _abort(self) -> None:
        """Abort what was begun, once no part is under way. Where that fails, the next start sweeps it."""
        if self._begun is None:
            return
        wait(self._parts)
        if self._begun.exception() is not None:
            return
        try:
            self.uploads.store.abort(self._begun.result()[0])
        except StoreUnavailable as error:
            _log.warning("upload.left key=%s reason=%s", self.key, error)


def _named(metadata: Mapping[str, str]) -> dict[str, str]:
    """Metadata under the names that it has on objects."""
    return {name if name.startswith("penstock-") else f"penstock-{name}": value for name, value in metadata.items()}


def abort_leftovers(store: Store, prefix: str) -> int:
    """Abort the multipart uploads that an earlier process left under a prefix; how many there were.

    `prefix`: a directory that no other connector writes to. Listed again until nothing new appears, since a store may
    cut its listing short without saying so.
    """
    aborted: set[Upload] = set()
    while found := [upload for upload in store.uploads(prefix) if upload not in aborted]:
        for upload in found:
            store.abort(upload)
        aborted.update(found)
    return len(aborted)
