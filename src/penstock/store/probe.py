"""Whether a store keeps what exactly-once is built on: asked of the store itself, not of its documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from penstock.errors import StoreUnavailable
from penstock.store.base import Anything, ConflictError, Create, NotFoundError, RefusedError, Replace
from penstock.store.faults import status_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.store.base import Store

_FORBIDDEN = 403
_NOBODYS = '"00000000000000000000000000000000"'


def refuses_overwrites(store: Store, key: str) -> bool:
    """Whether every conditional write is refused where its condition fails; leaves nothing behind under `key`.

    Create-only PUT, create-only completion of a multipart upload, and PUT over an object that changed meanwhile.
    """
    try:
        store.put(key, b"probe", Anything())
        tries: tuple[Callable[[], object], ...] = (
            lambda: store.put(key, b"probe again", Create()),
            lambda: _complete(store, key),
            lambda: store.put(key, b"probe again", Replace(_NOBODYS)),
        )
        return all(_is_refused(each) for each in tries)
    finally:
        store.delete(key)


def _is_refused(write: Callable[[], object]) -> bool:
    try:
        write()
    except (RefusedError, ConflictError, NotFoundError):  # not found: an upload that another start swept
        return True
    except StoreUnavailable as error:
        cause = error.__cause__
        if error.transient or (isinstance(cause, ClientError) and status_of(cause) == _FORBIDDEN):
            raise
    return False


def _complete(store: Store, key: str) -> str:
    upload = store.begin(key, {})
    try:
        return store.complete(upload, [store.part(upload, 1, b"probe again")], Create())
    finally:
        store.abort(upload)
