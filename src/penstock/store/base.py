"""An object store as Penstock sees it: a few verbs, and the precondition of a write as a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from penstock.errors import PenstockError, StoreUnavailable
from penstock.spool import Held

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Create:
    """Only if there is no object under the key."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Only if the object under the key is the one with this ETag."""

    etag: str


@dataclass(frozen=True, slots=True)
class Anything:
    """Whatever is there."""


Precondition = Create | Replace | Anything


@dataclass(frozen=True, slots=True)
class Head:
    """What a store says of an object without its bytes."""

    size: int
    etag: str
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listed:
    """An object in a listing."""

    key: str
    size: int
    etag: str


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a multipart upload that is there."""

    number: int
    etag: str


@dataclass(frozen=True, slots=True)
class Upload:
    """A multipart upload that was begun."""

    key: str
    upload_id: str


class RefusedError(PenstockError):
    """The precondition of a write does not hold: nothing was written."""


class ConflictError(PenstockError):
    """Two conditional writes met, or a multipart upload is gone: neither done nor refused; it starts anew."""


class NotFoundError(PenstockError):
    """There is no object under the key."""


class OutcomeUnknownError(StoreUnavailable):
    """A write may or may not have happened: look before acting."""


Body: TypeAlias = bytes | Held
"""What is sent: bytes, or pieces of them that are held until they were."""


class Store(Protocol):
    """The verbs. Each raises `StoreUnavailable` where the store does not answer or refuses."""

    def put(self, key: str, body: Body, precondition: Precondition, metadata: Mapping[str, str] | None = None) -> str:
        """Write an object whole; its ETag. Raises RefusedError, ConflictError, OutcomeUnknownError."""
        ...

    def get(self, key: str, start: int | None = None, end: int | None = None) -> bytes:
        """The object, or its bytes `[start, end)`. Raises NotFoundError."""
        ...

    def head(self, key: str) -> Head | None:
        """What is under the key, or None."""
        ...

    def list(self, prefix: str, start_after: str = "") -> Iterator[Listed]:
        """Objects in the order of their keys."""
        ...

    def tag(self, key: str, tags: Mapping[str, str]) -> None:
        """Put an object's tags in the place of those it has. Raises NotFoundError."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object; nothing happens if there is none."""
        ...

    def begin(self, key: str, metadata: Mapping[str, str]) -> Upload:
        """Begin a multipart upload."""
        ...

    def part(self, upload: Upload, number: int, body: Body) -> Part:
        """Upload one part; numbers begin at 1."""
        ...

    def complete(self, upload: Upload, parts: Sequence[Part], precondition: Precondition) -> str:
        """Make the parts one object; its ETag. Raises RefusedError, ConflictError, OutcomeUnknownError."""
        ...

    def abort(self, upload: Upload) -> None:
        """Forget a multipart upload; nothing happens if it is gone."""
        ...

    def uploads(self, prefix: str) -> Iterator[Upload]:
        """Multipart uploads under the prefix that were begun and neither completed nor aborted."""
        ...

    def check(self) -> None:
        """Whether the bucket is there and may be used."""
        ...
