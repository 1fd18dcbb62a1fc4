"""The pace of listings: at most a share of a processor core."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

MAX_SHARE = 0.1
UNLIMITED_SECONDS = 0.02
"""The processor time of a listing that needs no pause."""


class ListingPace:
    """Pauses between listings, by the processor time of the last one."""

    def __init__(self) -> None:
        self._next = 0.0

    def is_due(self) -> bool:
        """Returns whether the pause after the last listing is over."""
        return time.monotonic() >= self._next

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Measures a listing."""
        begin = time.thread_time()
        yield
        self.record(time.thread_time() - begin)

    def record(self, seconds: float) -> None:
        """Sets the pause after a listing of some processor time."""
        pause = seconds * (1 / MAX_SHARE - 1) if seconds > UNLIMITED_SECONDS else 0.0
        self._next = time.monotonic() + pause
