"""The only retry loop for S3 requests: exponential back-off with full jitter (seed 001, "Automatic Retries")."""

from __future__ import annotations

import logging
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_CAP_MS = 24 * 60 * 60 * 1000
_log = logging.getLogger("penstock.store")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`s3.part.retries` and `s3.retry.backoff.ms`; `sleep` takes seconds, `jitter` gives a number in [0, 1)."""

    retries: int = 3
    backoff_ms: int = 200
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = field(default=random.random)

    def longest_wait_ms(self, retry: int) -> int:
        """The most that is waited before the `retry`-th retry, counted from 1."""
        return int(min(self.backoff_ms * 2 ** (retry - 1), _CAP_MS))

    def call(self, request: Callable[[], T], passing: Callable[[BaseException], bool]) -> T:
        """The request's result; an error that is `passing` is retried, the last one is raised."""
        retrying = Retrying(
            stop=stop_after_attempt(self.retries + 1),
            wait=self._wait,
            retry=retry_if_exception(passing),
            sleep=self.sleep,
            before_sleep=_announce,
            reraise=True,
        )
        return retrying(request)

    def _wait(self, state: RetryCallState) -> float:
        return self.jitter() * self.longest_wait_ms(state.attempt_number) / 1000


def _announce(state: RetryCallState) -> None:
    error = None if state.outcome is None else state.outcome.exception()
    _log.warning("s3.retry retry=%d wait_s=%.3f reason=%s", state.attempt_number, state.upcoming_sleep, error)
