"""Whether a store keeps what exactly-once is built on: asked of the store itself, not of its documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.store.base import ConflictError, Create, RefusedError

if TYPE_CHECKING:
    from penstock.store.base import Store


def refuses_overwrites(store: Store, key: str) -> bool:
    """Whether a create-only PUT is refused where an object is; leaves nothing behind under `key`."""
    try:
        store.put(key, b"probe", Create())
        try:
            store.put(key, b"probe again", Create())
        except (RefusedError, ConflictError):
            return True
        return False
    finally:
        store.delete(key)
