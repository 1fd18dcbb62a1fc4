"""Retry of transient errors: restarts of queries and receivers, and calls before a run."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from penstock.core.errors import PenstockError
from penstock.core.log import Log
from penstock.observe.execution import Execution
from penstock.runtime.stop import StopRequest
from penstock.spec.runtime_models import Restart

T = TypeVar("T")
POLL_SECONDS = 0.05


BOUNDED_ATTEMPTS = 8
"""The restarts of a run that ends by itself. Their pauses take three minutes by default."""


def restart_policy(policy: Restart, *, endless: bool) -> Restart:
    """Returns a policy with the default number of attempts of a run."""
    if endless or policy.attempts is not None:
        return policy
    return policy.model_copy(update={"attempts": BOUNDED_ATTEMPTS})


class RetryState:
    """Failures of a query or receiver, and the time of its next start.

    `event` is the log event of an attempt. `execution` records each failure.
    """

    def __init__(
        self,
        policy: Restart,
        log: Log,
        event: str = "restarting",
        execution: Execution | None = None,
    ) -> None:
        self._policy, self._log, self._event = policy, log, event
        self._execution = execution
        self._failures: deque[float] = deque()
        self._progress: object = None

    def next_attempt(self, error: PenstockError, progress: object, **facts: Any) -> float | None:
        """Counts a failure and returns the monotonic time of the next start.

        None means that the policy allows no further attempt. A `progress` other than that of the
        last failure resets the count: the query or receiver has worked in between.
        """
        now = time.monotonic()
        if progress != self._progress:
            self._progress = progress
            self._failures.clear()
        pause = self._policy.delay(len(self._failures) + 1)
        while self._failures and now - self._failures[0] > self._policy.window:
            self._failures.popleft()
        limit = self._policy.attempts
        if not error.policy.retried or (limit is not None and len(self._failures) >= limit):
            if self._execution is not None:
                self._execution.fail(error)
            return None
        self._failures.append(now)
        if self._execution is not None:
            self._execution.retry(error, pause)
        _log_attempt(self._log, self._event, error, len(self._failures), limit, pause, **facts)
        return now + pause


def retry(
    call: Callable[[], T],
    policy: Restart,
    log: Log,
    stop: StopRequest,
    on_failure: Callable[[PenstockError, float], None] = lambda error, pause: None,
) -> T:
    """Returns the result of `call`, retried with backoff while its error is transient.

    `on_failure` receives each error and the seconds to the next attempt. Raises the last error when
    the policy allows no further attempt or a stop is requested.
    """
    failures = 0
    while True:
        try:
            return call()
        except PenstockError as error:
            failures += 1
            limit = policy.attempts
            allowed = limit is None or failures <= limit
            if not (error.policy.retried and allowed) or stop.requested.is_set():
                raise
            pause = policy.delay(failures)
            _log_attempt(log, "retrying", error, failures, limit, pause)
            on_failure(error, pause)
            _sleep(pause, stop)


def _log_attempt(
    log: Log, event: str, error: PenstockError, attempt: int, limit: int | None, pause: float,
    **facts: Any,
) -> None:  # fmt: skip
    log.warning(
        event, **facts, code=error.code, error=error.message, hint=error.hint,
        attempt=f"{attempt}" if limit is None else f"{attempt} of {limit}", pause=f"{pause:.1f}s",
    )  # fmt: skip


def _sleep(seconds: float, stop: StopRequest) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not stop.requested.is_set():
        stop.poll()
        time.sleep(POLL_SECONDS)
