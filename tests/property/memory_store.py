"""A store in memory that honours conditions, and whose answers a test can lose. Real servers are tested elsewhere."""

from __future__ import annotations

import hashlib
from collections import deque

from penstock.errors import StoreUnavailable
from penstock.store.base import Anything, Create, Head, Listed, NotFoundError, OutcomeUnknownError, RefusedError


class MemoryStore:
    """Puts, gets, lists. `put_faults` and `get_faults`: what becomes of the next requests under `faulty`.

    A put may be `lost` (never arrived), `unheard` (done, no answer) or `late` (no answer, arrives after the next
    request); a get may be `down`.
    """

    def __init__(self, faulty: str = "/log/") -> None:
        self.objects: dict[str, tuple[bytes, dict[str, str]]] = {}
        self.faulty = faulty
        self.put_faults: deque[str] = deque()
        self.get_faults: deque[str] = deque()
        self.late: list[tuple[str, bytes]] = []
        self.requests = 0

    def put(self, key, body, precondition, metadata=None):
        self.requests += 1
        fault = self.put_faults.popleft() if self.faulty in key and self.put_faults else "none"
        if fault == "lost":
            self._arrive()
            raise OutcomeUnknownError(key)
        if fault == "late":
            self._arrive()
            self.late.append((key, bytes(body)))
            raise OutcomeUnknownError(key)
        self._put(key, body, precondition, metadata)
        self._arrive()
        if fault == "unheard":
            raise OutcomeUnknownError(key)
        return self._etag(key)

    def get(self, key, start=None, end=None):
        self.requests += 1
        fault = self.get_faults.popleft() if self.faulty in key and self.get_faults else "none"
        if fault == "down":
            raise StoreUnavailable(key)
        if key not in self.objects:
            self._arrive()
            raise NotFoundError(key)
        return self.objects[key][0][start:end]

    def head(self, key):
        self.requests += 1
        if key not in self.objects:
            return None
        body, metadata = self.objects[key]
        return Head(len(body), self._etag(key), metadata)

    def list(self, prefix, start_after=""):
        self.requests += 1
        for key in sorted(self.objects):
            if key.startswith(prefix) and key > start_after:
                yield Listed(key, len(self.objects[key][0]), self._etag(key))

    def delete(self, key):
        self.objects.pop(key, None)

    def _put(self, key, body, precondition, metadata):
        is_there = key in self.objects
        if isinstance(precondition, Create):
            allowed = not is_there
        else:
            allowed = isinstance(precondition, Anything) or (is_there and self._etag(key) == precondition.etag)
        if not allowed:
            raise RefusedError(key)
        self.objects[key] = (bytes(body), dict(metadata or {}))

    def _arrive(self):
        """What was sent long ago reaches the server now."""
        for key, body in self.late:
            self.objects.setdefault(key, (body, {}))
        self.late = []

    def _etag(self, key):
        return hashlib.md5(self.objects[key][0], usedforsecurity=False).hexdigest()
