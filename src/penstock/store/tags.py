"""Tags of data objects: which records they hold, and what the user says of all of them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from penstock.errors import StoreUnavailable
from penstock.store.base import NotFoundError

if TYPE_CHECKING:
    from penstock.store.base import Store

_log = logging.getLogger("penstock.store")


@dataclass(frozen=True, slots=True)
class Tagging:
    """`s3.object.tagging`. `pairs`: the user's own tags; `on_error`: `s3.object.behavior.on.tagging.error`."""

    pairs: tuple[tuple[str, str], ...] = ()
    on_error: Literal["ignore", "fail"] = "ignore"

    def of(self, start: int, end: int, records: str) -> dict[str, str]:
        """The tags of an object with the records `[start, end)`; endOffset is that of its last one, as ever."""
        return {**dict(self.pairs), "startOffset": str(start), "endOffset": str(end - 1), "recordCount": records}

    def put(self, store: Store, key: str, tags: dict[str, str]) -> None:
        """Tag an object that is there. Doing it again is harmless: a retried task does, before anything is committed.

        Raises:
            StoreUnavailable: it failed, and `on_error` is `fail`.
        """
        try:
            store.tag(key, tags)
        except (StoreUnavailable, NotFoundError) as error:
            if self.on_error == "fail":
                msg = f"the object `{key}` could not be tagged: {error}"
                transient = getattr(error, "transient", True)
                raise StoreUnavailable(msg, transient=transient) from error
            _log.warning("object.untagged key=%s reason=%s", key, error)
