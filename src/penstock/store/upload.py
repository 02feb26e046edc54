"""Data objects: written once, whole, while the caller goes on encoding; and what to do when a key is taken.

One PUT up to `s3.part.size`; beyond it a multipart upload whose parts are sent while later ones are filled. Buffers
grow with their content.
"""

from __future__ import annotations

import functools
import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Literal

import google_crc32c

from penstock.crashpoints import reach
from penstock.errors import ForeignObjectError, StoreUnavailable, TakenOverError
from penstock.store.base import (
    ConflictError,
    Create,
    OutcomeUnknownError,
    RefusedError,
    Replace,
    Upload,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.store.base import Head, Part, Precondition, Store

CONNECTOR, SEQ, FIRST_OFFSET, RECORDS, CRC32C = (
    "penstock-connector",
    "penstock-intent",
    "penstock-first-offset",
    "penstock-records",
    "penstock-crc32c",
)
_THREADS = 8
_LOOKS = 10


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A data object that is there. `crc32c`: of its bytes, 8 hex digits."""

    size: int
    etag: str
    crc32c: str


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose objects these are: the connector and the log entry that recorded the plan.

    `existing`: `s3.existing.objects`, what to do with an object of somebody else under our key.
    """

    connector: str
    seq: int
    existing: Literal["fail", "overwrite"] = "fail"


@functools.lru_cache(maxsize=1)
def _pool(_process: int) -> ThreadPoolExecutor:
    """The upload threads of this process, for all its tasks."""
    return ThreadPoolExecutor(_THREADS, "upload")


@dataclass(slots=True)
class Uploads:
    """The uploads of one task: threads that send, and a bound on the bytes that wait to be sent."""

    store: Store
    owner: Owner
    part_size: int
    pool: ThreadPoolExecutor = field(default_factory=lambda: _pool(os.getpid()))
    slots: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(2 * _THREADS))

    def open(self, key: str, first_offset: int) -> ObjectWriter:
        """A writer for the object under `key`."""
        metadata = {CONNECTOR: self.owner.connector, SEQ: str(self.owner.seq), FIRST_OFFSET: str(first_offset)}
        return ObjectWriter(self, key, metadata)

    def submit(self, work: Callable[[], object]) -> Future[object]:
        """Do it on a thread; waits while too much is under way."""
        self.slots.acquire()

        def run() -> object:
            try:
                return work()
            finally:
                self.slots.release()

        return self.pool.submit(run)


@dataclass(slots=True)
class ObjectWriter:
    """Collects one object's bytes and sends them."""

    uploads: Uploads
    key: str
    metadata: dict[str, str]
    _pending: list[bytes] = field(default_factory=list)
    _waiting: int = 0
    _size: int = 0
    _crc: int = 0
    _upload: Upload | None = None
    _parts: list[Future[object]] = field(default_factory=list)

    def write(self, buffer: bytes | memoryview) -> None:
        """Append bytes; they are copied."""
        data = bytes(buffer)
        self._pending.append(data)
        self._waiting += len(data)
        self._size += len(data)
        self._crc = google_crc32c.extend(self._crc, data)
        while self._waiting > self.uploads.part_size:
            self._send_part(self._take(self.uploads.part_size))

    def close(self, metadata: Mapping[str, str]) -> Future[StoredObject]:
        """Send the rest. The future has the object, or raises what stopped it."""
        rest = self._take(self._waiting)
        stored: Future[StoredObject] = Future()
        crc = f"{self._crc:08x}"
        full = {**self.metadata, **metadata, CRC32C: crc}
        if self._upload is not None:
            self._send_part(rest)

        def work() -> None:
            try:
                etag = self._put(rest, full) if self._upload is None else self._complete(self._upload)
                stored.set_result(StoredObject(self._size, etag, crc))
            except BaseException as error:  # noqa: BLE001 - handed to whoever waits for the future
                stored.set_exception(error)

        self.uploads.submit(work)
        return stored

    def abandon(self) -> None:
        """The object is not wanted: nothing of it stays."""
        self._pending = []
        if self._upload is not None:
            for part in self._parts:
                part.exception()
            self.uploads.store.abort(self._upload)

    def _take(self, size: int) -> bytes:
        """The first `size` bytes that wait."""
        data = b"".join(self._pending)
        self._pending = [data[size:]] if len(data) > size else []
        self._waiting = len(data) - size
        return data[:size]

    def _send_part(self, body: bytes) -> None:
        if self._upload is None:
            self._upload = self.uploads.store.begin(self.key, self.metadata)
        upload, number = self._upload, len(self._parts) + 1

        def send() -> Part:
            part = self.uploads.store.part(upload, number, body)
            reach("part.after")
            return part

        self._parts.append(self.uploads.submit(send))

    def _put(self, body: bytes, metadata: Mapping[str, str]) -> str:
        reach("object.before")
        store = self.uploads.store
        etag = self._settle(lambda condition: store.put(self.key, body, condition, metadata), metadata[CRC32C])
        reach("object.after")
        return etag

    def _complete(self, upload: Upload) -> str:
        parts: list[Part] = [part.result() for part in self._parts]  # type: ignore[misc] # submit() is untyped
        reach("complete.before")
        try:
            etag = self._settle(lambda condition: self.uploads.store.complete(upload, parts, condition), None)
        except BaseException:
            self.uploads.store.abort(upload)
            raise
        reach("object.after")
        return etag

    def _settle(self, write: Callable[[Precondition], str], crc: str | None) -> str:
        """Write create-only; where the key is taken, or the outcome unknown, let what is there decide."""
        condition: Precondition = Create()
        for _ in range(_LOOKS):
            try:
                return write(condition)
            except (RefusedError, ConflictError, OutcomeUnknownError) as error:
                found = self.uploads.store.head(self.key)
                if found is None:
                    condition, problem = Create(), error
                    continue
                if is_ours(found, self.uploads.owner, self._size, crc):
                    return found.etag
                condition, problem = replaceable(self.key, found, self.uploads.owner), error
        msg = f"the object `{self.key}` could not be written: {problem}"
        raise StoreUnavailable(msg)


def is_ours(found: Head, owner: Owner, size: int, crc: str | None) -> bool:
    """Whether it is this very plan's object: a retried task's, or our own first attempt."""
    same = found.metadata.get(CONNECTOR) == owner.connector and found.metadata.get(SEQ) == str(owner.seq)
    return same and found.size == size and (crc is None or found.metadata.get(CRC32C, crc) == crc)


def replaceable(key: str, found: Head, owner: Owner) -> Precondition:
    """The precondition under which an object that is not this plan's may be replaced.

    An older plan's object that no commit names is a left-over: a file at or behind the position is in no commit.

    Raises:
        TakenOverError: a newer plan of this connector wrote it.
        ForeignObjectError: somebody else did, and `s3.existing.objects` is `fail`.
    """
    theirs, seq = found.metadata.get(CONNECTOR), found.metadata.get(SEQ, "")
    if theirs == owner.connector and seq.isdecimal():
        if int(seq) > owner.seq:
            msg = f"connector `{owner.connector}`: a newer instance already wrote `{key}`; this one stops"
            raise TakenOverError(msg)
        return Replace(found.etag)
    if owner.existing == "overwrite":
        return Replace(found.etag)
    whose = f"written by connector `{theirs}`" if theirs else "not written by Penstock"
    msg = (
        f"there is already an object `{key}`, {whose}; move it away, choose another topics.dir, "
        "or set s3.existing.objects to `overwrite`"
    )
    raise ForeignObjectError(msg)


def abort_leftovers(store: Store, prefix: str) -> int:
    """Abort the multipart uploads that an earlier process left under a prefix; how many there were."""
    found = list(store.uploads(prefix))
    for upload in found:
        store.abort(upload)
    return len(found)
