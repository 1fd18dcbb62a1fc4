"""The restart policy: how often something that may pass is tried again, and how long between."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from penstock.core import units
from penstock.core.errors import PenstockError
from penstock.core.log import Log
from penstock.runtime.stop import StopRequest
from penstock.spec.models import Restart

T = TypeVar("T")
_LOOK = 0.05


class Tries:
    """Failures in a row of something that runs for long, and when it is tried again."""

    def __init__(self, policy: Restart, log: Log) -> None:
        self._policy, self._log = policy, log
        self._failures = 0
        self._progress: object = None

    def failed(self, error: PenstockError, progress: object, **facts: Any) -> float | None:
        """The time, by the monotonic clock, of the next try; None if there is none.

        Where `progress` differs from the last time it went on in between, and counts as well.
        """
        if progress != self._progress:
            self._progress, self._failures = progress, 0
        if not error.conduct.retried or self._failures >= self._policy.attempts:
            return None
        self._failures += 1
        pause = pause_before(self._policy, self._failures)
        self._log.warning(
            "restarting", **facts, code=error.code, error=error.message, hint=error.hint,
            attempt=f"{self._failures} of {self._policy.attempts}", pause=f"{pause:.1f}s",
        )  # fmt: skip
        return time.monotonic() + pause


def pause_before(policy: Restart, failures: int) -> float:
    """The seconds to wait after so many failures in a row: doubled each time, and not in step."""
    first, longest = backoff(policy.backoff)
    return float(min(first * 2 ** (failures - 1), longest) * random.uniform(0.8, 1.2))


def backoff(text: str) -> tuple[float, float]:
    """The first and the longest pause of `1s..60s`. Raises ValueError."""
    first, _, longest = text.partition("..")
    return units.seconds(first), units.seconds(longest or first)


def patiently(call: Callable[[], T], policy: Restart, log: Log, stop: StopRequest) -> T:
    """What `call` returns, tried again while its error may pass and the policy allows.

    Raises its last error; also when a stop is asked for.
    """
    failures = 0
    while True:
        try:
            return call()
        except PenstockError as error:
            failures += 1
            if not error.conduct.retried or failures > policy.attempts or stop.asked.is_set():
                raise
            pause = pause_before(policy, failures)
            log.warning(
                "waiting", code=error.code, error=error.message, hint=error.hint,
                attempt=f"{failures} of {policy.attempts}", pause=f"{pause:.1f}s",
            )  # fmt: skip
            until = time.monotonic() + pause
            while time.monotonic() < until and not stop.asked.is_set():
                stop.look()
                time.sleep(_LOOK)
